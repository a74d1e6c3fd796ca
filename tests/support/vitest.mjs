#!/usr/bin/env node
// Stand-in of vitest's command line: it runs `test` and `expect().toBe` of test/*.test.ts without their types, reports as vitest does
// on screen and in JSON, and writes a cache beside its package, as vite does.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(import.meta.url);
const cache = new URL("../.vite/results.json", import.meta.url);
fs.mkdirSync(new URL(".", cache), { recursive: true });
fs.writeFileSync(cache, "{}");

let tests = [];
const api = {
  test(title, run) {
    const result = { title, fullName: title, ancestorTitles: [], status: "passed", failureMessages: [] };
    try {
      run();
    } catch (error) {
      Object.assign(result, { status: "failed", failureMessages: [String(error)] });
    }
    tests.push(result);
  },
  expect: (value) => ({
    toBe(wanted) {
      if (value !== wanted) throw new Error(`expected ${value} to be ${wanted}`);
    },
  }),
};

function load(file) {
  const text = fs.readFileSync(file, "utf8").replace(/: number/g, "");
  const script = text
    .replace(/^import (\{[^}]*\}) from "([^"]*)";$/gm, 'const $1 = find("$2");')
    .replace(/export const (\w+)/g, "const $1 = exports.$1");
  const exports = {};
  new Function("exports", "find", script)(exports, (name) => {
    if (name === "vitest") return api;
    if (name.startsWith(".")) return load(path.resolve(path.dirname(file), `${name}.ts`));
    return require(require.resolve(name, { paths: [path.dirname(file)] }));
  });
  return exports;
}

const testResults = fs.readdirSync("test").filter((one) => one.endsWith(".test.ts")).map((one) => {
  tests = [];
  const name = path.resolve("test", one);
  load(name);
  const status = tests.some((test) => test.status === "failed") ? "failed" : "passed";
  return { name, status, message: "", assertionResults: tests };
});
const all = testResults.flatMap((one) => one.assertionResults);
for (const { title, status } of all) {
  console.log(`\x1b[32m ${status === "passed" ? "✓" : "×"}\x1b[39m ${title}`);
}
const failed = all.filter((one) => one.status === "failed").length;
const output = process.argv.find((word) => word.startsWith("--outputFile.json="))?.split("=")[1];
if (output) {
  const counts = { numTotalTests: all.length, numPassedTests: all.length - failed, numFailedTests: failed };
  fs.writeFileSync(output, JSON.stringify({ ...counts, success: failed === 0, testResults }));
}
process.exitCode = failed ? 1 : 0;

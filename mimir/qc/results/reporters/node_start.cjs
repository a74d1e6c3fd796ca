// Start of node's test runner, vitest and jest with a report; preloaded by NODE_OPTIONS. Other programs keep their assertions too.
const { spawnSync } = require("node:child_process");
const { writeFileSync } = require("node:fs");
const { basename } = require("node:path");
require("./node_assertions.cjs");

const folder = process.env.MIMIR_RESULTS;
const options = process.execArgv;
const [, script = ""] = process.argv;
const program = basename(script).replace(/\.[cm]?js$/, "");

// Node wants as many destinations as reporters.
function reporterOptions() {
  const own = [`--test-reporter=${__dirname}/node_reporter.mjs`, "--test-reporter-destination=/dev/null"];
  const has = (name) => options.some((word) => word === name || word.startsWith(`${name}=`));
  if (has("--test-reporter-destination")) return own;
  if (has("--test-reporter")) return [...own, "--test-reporter-destination=stdout"];
  return [...own, "--test-reporter=spec", "--test-reporter-destination=stdout"];
}

function startAgain() {
  const words = [`--require=${__dirname}/node_assertions.cjs`, ...reporterOptions(), ...options, ...process.argv.slice(1)];
  const env = { ...process.env, NODE_OPTIONS: "" };
  const { status, signal } = spawnSync(process.execPath, words, { stdio: "inherit", env });
  if (signal) process.kill(process.pid, signal);
  process.exit(status ?? 1);
}

function refuse() {
  const why = `node ${process.versions.node} is too old to report single tests, so the exit code decides.`;
  writeFileSync(`${folder}/node-${process.pid}.jsonl`, JSON.stringify(["fallback", why]) + "\n");
}

function addReport() {
  delete process.env.MIMIR_RESULTS;
  const report = `${folder}/${program}-${process.pid}.json`;
  process.argv.push(
    ...(program === "jest"
      ? ["--json", `--outputFile=${report}`]
      : ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`]),
  );
}

if (folder && !process.env.NODE_TEST_CONTEXT) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  const isRunner = /[\\/](vitest|jest|jest-cli)[\\/]|[\\/]\.bin[\\/]/.test(script);
  if (options.includes("--test")) {
    if (major > 18 || (major === 18 && minor >= 19)) startAgain();
    else refuse();
  } else if (isRunner && (program === "vitest" || program === "jest")) addReport();
}

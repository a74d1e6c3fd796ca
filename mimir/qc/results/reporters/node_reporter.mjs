// Reporter of `node --test`: one line of JSON for each result, as `mimir_results.py` writes it.
import { openSync, readFileSync, writeSync } from "node:fs";
import { relative } from "node:path";

const folder = process.env.MIMIR_RESULTS;
const inside = (file) => relative(process.env.MIMIR_WORKSPACE || process.cwd(), file);

function stateOf(type, data) {
  if (data.skip !== undefined) return "skipped";
  if (data.todo !== undefined) return type === "test:pass" ? "skipped" : "xfailed";
  return type === "test:pass" ? "passed" : "failed";
}

// A file that ends before its first test is reported as passed if it ends with 0.
function stateOfFile(type, file) {
  if (type !== "test:pass") return "errored";
  try {
    return /node:test|["']test["']/.test(readFileSync(file, "utf8")) ? "errored" : "passed";
  } catch {
    return "errored";
  }
}

function suiteFailed(data) {
  return data.details?.error?.failureType !== "subtestsFailed";
}

export default async function* report(source) {
  const out = folder ? openSync(`${folder}/node-${process.pid}.jsonl`, "ax", 0o666) : -1;
  const write = (kind, text) => out >= 0 && writeSync(out, JSON.stringify([kind, text]) + "\n");
  const parents = new Map();
  write("runner", "node");
  for await (const { type, data } of source) {
    if (type === "test:start") {
      const names = (parents.get(data.file) ?? []).slice(0, data.nesting);
      parents.set(data.file, [...names, data.name]);
    }
    if (type !== "test:pass" && type !== "test:fail") continue;
    const file = data.file ?? "";
    if (data.nesting === 0 && data.name === file) {
      write(stateOfFile(type, file), inside(file));
      continue;
    }
    if (data.details?.type === "suite" && (type === "test:pass" || !suiteFailed(data))) continue;
    const above = (parents.get(data.file) ?? []).slice(0, data.nesting);
    write(stateOf(type, data), `${inside(file)}::${[...above, data.name].join(" > ")}`);
  }
  write("end", "");
  yield "";
}

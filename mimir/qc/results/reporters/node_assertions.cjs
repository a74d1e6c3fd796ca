// The work shares a process with its tests, so it could replace assertions: they are read-only.
const assert = require("node:assert");

for (const home of [assert, assert.strict])
  for (const name of Object.keys(home)) Object.defineProperty(home, name, { writable: false, configurable: false });

// A hook of the loader could give the tests another module.
process.on("exit", () => {
  if (require("node:assert") === assert) return;
  process.stderr.write("The work replaced node:assert, by which tests compare.\n");
  process.reallyExit(1);
});

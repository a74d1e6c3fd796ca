// The work shares a process with its tests, so it could replace assertions: they are read-only.
const assert = require("node:assert");

for (const home of [assert, assert.strict])
  for (const name of Object.keys(home)) Object.defineProperty(home, name, { writable: false, configurable: false });

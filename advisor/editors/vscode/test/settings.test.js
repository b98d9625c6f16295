"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const manifest = require("../package.json");
const { machineItems, parseSize, serverOptions, sizesWith } = require("../src/settings");

test("a size is a name and a positive number", () => {
  assert.deepEqual(parseSize("N = 4096"), { name: "N", value: 4096 });
  assert.deepEqual(parseSize(" message.alpha=1e-3 "), { name: "message.alpha", value: 0.001 });
  assert.deepEqual(parseSize("N"), { name: "N" });
  assert.deepEqual(parseSize("N ="), { name: "N" });
  for (const wrong of ["", "N = x", "N = -1", "N = 0", "N = 1 2", "4096", "N = Infinity"]) {
    assert.ok(parseSize(wrong).problem, wrong);
  }
});

test("a size is bound and unbound without touching the others", () => {
  const sizes = Object.freeze({ N: 1, b: 3 });
  assert.deepEqual(sizesWith(sizes, "N", 2), { b: 3, N: 2 });
  assert.deepEqual(sizesWith(sizes, "N", undefined), { b: 3 });
  assert.deepEqual(sizesWith(undefined, "N", 2), { N: 2 });
});

test("the chosen machine comes first", () => {
  const machines = [
    { name: "sp2", title: "IBM SP-2" },
    { name: "t3e", title: "Cray T3E" },
  ];
  assert.deepEqual(
    machineItems(machines, "t3e").map((item) => [item.label, item.description, item.picked]),
    [
      ["t3e", "Cray T3E", true],
      ["sp2", "IBM SP-2", false],
    ],
  );
});

test("the server is started as the settings say", () => {
  assert.deepEqual(serverOptions(["python", "-m", "advisor", "lsp"]), {
    command: "python",
    args: ["-m", "advisor", "lsp"],
  });
  const standard = manifest.contributes.configuration.properties["advise.server.command"].default;
  assert.deepEqual(serverOptions(undefined), serverOptions(standard));
});

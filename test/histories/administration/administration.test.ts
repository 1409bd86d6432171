// Random histories (simulated sequences) of actions on people and operators: there is always an administrator. If a rule
// that ensures this is taken out, a history must show it.

import { expect, setDefaultTimeout, test } from "bun:test";
import { seed, times } from "../../harness/depth.ts";
import { type Defect, defects, modelHistory } from "./model.ts";
import { runAdministration } from "./run.ts";

setDefaultTimeout(300_000);
const first = 1 + (seed % 1_000_000);

test("no act takes the last administrator away, in any order of statements", async () => {
  const run = await runAdministration({ first, count: times(1_000, 20_000), kind: "model" });
  expect(run.violation).toBeNull();
  expect(run.refusals).toBeGreaterThan(0);
});

test("the product's acts come out as the model's, and at once they leave an administrator", async () => {
  expect((await runAdministration({ first, count: times(15, 300), kind: "stored" })).violation).toBeNull();
});

test.each(Object.keys(defects) as Defect[])("a rule that is taken out is missed: %s", (defect) => {
  const seeds = Array.from({ length: 5_000 }, (_, at) => at + 1);
  expect(seeds.some((seed) => modelHistory(seed, defect).violation !== null)).toBe(true);
});

// Random histories (simulated sequences) of actions on people and operators: an administrator always remains.

import { expect, setDefaultTimeout, test } from "bun:test";
import { seed, times } from "../../harness/depth.ts";
import { runAdministration } from "./run.ts";

setDefaultTimeout(300_000);
const first = 1 + (seed % 1_000_000);

test("the product's acts leave an administrator, also at once", async () => {
  const run = await runAdministration({ first, count: times(15, 300), kind: "stored" });
  expect(run.violation).toBeNull();
  expect(run.refusals).toBeGreaterThan(0);
});

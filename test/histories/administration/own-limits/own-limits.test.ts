// Histories (simulated sequences) of limits: no action of a person raises a limit that counts for that person
// (docs/access.md, Limits of one's own), and concurrent actions never fail with a database error.

import { expect, setDefaultTimeout, test } from "bun:test";
import { seed, times } from "../../../harness/depth.ts";
import { runAdministration } from "../run.ts";

setDefaultTimeout(300_000);
const first = 1 + (seed % 1_000_000);

test("no act raises what counts for its actor", async () => {
  const run = await runAdministration({ first, count: times(6, 300), kind: "own-limits" });
  expect(run.violation).toBeNull();
  expect(run.refusals).toBeGreaterThan(0);
});

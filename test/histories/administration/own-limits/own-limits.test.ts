// Histories of limits: no action of a person raises a limit that counts for that person, in any order of statements
// (docs/access.md, Limits of one's own), and actions never deadlock. The rule is the product's own; if a part of it is
// taken out, histories show it. They run in memory, where actions end as on Postgres.

import { expect, setDefaultTimeout, test } from "bun:test";
import { times } from "../../../harness/depth.ts";
import { runAdministration } from "../run.ts";
import { type Defect, defects } from "./defects.ts";
import { Beginnings, ownLimitsHistory } from "./history.ts";

setDefaultTimeout(300_000);
const first = 1 + Math.floor(Math.random() * 1_000_000);

test("no act raises what counts for its actor", async () => {
  const run = await runAdministration({ first, count: times(500, 20_000), kind: "own-limits" });
  expect(run.violation).toBeNull();
  expect(run.refusals).toBeGreaterThan(0);
});

test("the acts come out on Postgres as in memory, at once too", async () => {
  const run = await runAdministration({ first, count: times(8, 60), kind: "own-limits-stored" });
  expect(run.violation).toBeNull();
});

/** The seeds with which the search for a rare violation begins, so that it is short. Without them it would be long. */
const begins: Partial<Record<Defect, number>> = {
  "the organization is not locked": 1021,
  "a raise may last longer": 4892,
  "only raised limits count": 552,
  "the person does not count": 262,
  "models do not count": 153,
};

test.each(Object.keys(defects) as Defect[])("a part of the rule that is taken out is missed: %s", async (defect) => {
  const beginnings = new Beginnings();
  let violation: string | null = null;
  const from = begins[defect] ?? 1;
  for (let seed = from; seed < from + 5_000 && violation === null; seed++) {
    ({ violation } = await ownLimitsHistory(seed, { defect, beginnings }));
  }
  expect(violation).not.toBeNull();
});

/**
 * Compares a file of organizations with the current state: settings that the file does not mention count as unchanged,
 * even if they were read.
 */
import { expect, test } from "bun:test";
import { differences } from "../../../src/admin/management/apply/difference.ts";
import type { State } from "../../../src/admin/management/apply/state.ts";
import { valueShown } from "../../../src/admin/management/limit-shape.ts";
import { examplePerson } from "../../../src/admin/management/people.ts";
import { noBudget } from "../../../src/admin/store/budget.ts";

const own = valueShown({ ...noBudget, week: 5 }, "USD");
const limits = new Map([["acme", { own, keys: null, members: null, models: {} }]]);
const byHand = examplePerson.memberships.map((one) => ({ ...one, source: "hand" as const }));
const state: State = {
  plans: new Map(),
  organizations: new Map(),
  renamed: new Map(),
  open: new Set(["acme"]),
  people: [{ person: { ...examplePerson, memberships: byHand }, limits }],
};
const pruning = { prunes: true, now_ms: 0 };

test("pruning takes from people only where the file has a section of them", () => {
  expect(differences({ organizations: {} }, state, pruning).phases).toEqual([]);
  expect(differences({ organizations: {}, people: {} }, state, pruning).phases.flat()).toMatchObject([
    { kind: "person", path: ["people", `${examplePerson.issuer} ${examplePerson.subject}`] },
  ]);
});

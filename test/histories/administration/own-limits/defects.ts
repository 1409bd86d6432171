// The rule of one's own limits as the product has it, and versions with a part taken out, in which histories must find a
// violation.

import type { CountingLimits, OwnLimits } from "../../../../src/admin/store/own-limits.ts";
import { heldToOwnLimits } from "../../../../src/stores/postgres/own-limits.ts";
import type { Committed, Memory, Rule } from "../memory/memory.ts";
import type { Databases } from "../memory/stores.ts";

interface Change extends Rule {
  /** The kinds of actions to which the rule does not apply. */
  free?: (keyof Databases)[];
}

const without = (leavesOut: (row: CountingLimits) => boolean) => (rows: CountingLimits[]) =>
  rows.filter((row) => !leavesOut(row));

export const defects = {
  "nobody is held to it": { free: ["teams", "limits", "keys", "people", "actingOn"] },
  "removals of teams are free": { free: ["teams"] },
  "limits of others than people are free": { free: ["limits"] },
  "new keys are free": { free: ["keys"] },
  "limits of people are free": { free: ["actingOn"] },
  "the organization is not locked": { unlocked: "organization" },
  "the person is not locked": { unlocked: "person" },
  "a raise in force does not count": {
    reads: (rows) => rows.map((row) => ({ ...row, raised: row.limits, raisedUntil: null })),
  },
  "a raise may last longer": { reads: (rows) => rows.map((row) => ({ ...row, raisedUntil: null })) },
  "only raised limits count": { reads: (rows) => rows.map((row) => ({ ...row, limits: row.raised })) },
  "teams do not count": { reads: without(({ place }) => place === "team") },
  "the person does not count": { reads: without(({ place }) => place === "person") },
  "keys do not count": { reads: without(({ entrance, place }) => place === "key" && entrance !== "new") },
  "keys to come do not count": { reads: without(({ entrance }) => entrance === "new") },
  "models do not count": { reads: without(({ models }) => models !== "") },
  "windows alone count": {
    reads: (rows) => rows.map((row) => ({ ...row, limits: row.limits.slice(0, 3), raised: row.raised.slice(0, 3) })),
  },
} satisfies Record<string, Change>;
export type Defect = keyof typeof defects;

/** The database that each kind of action uses, for an actor to whom the rule of one's own limits may apply. */
export function databasesOf(
  memory: Memory,
  own: OwnLimits | null,
  { defect, committed }: { defect: Defect | null; committed: Committed | null },
): Databases {
  const change: Change = defect ? defects[defect] : {};
  const db = memory.database(committed, change);
  const of = (kind: keyof Databases, other: string | null = null) =>
    change.free?.includes(kind) ? db : heldToOwnLimits(db, own, other);
  return {
    teams: of("teams"),
    limits: of("limits"),
    keys: of("keys"),
    people: of("people"),
    actingOn: (person) => of("actingOn", person),
  };
}

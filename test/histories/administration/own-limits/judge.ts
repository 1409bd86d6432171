// Judges whether an action has raised a limit that counts for a person. The limits are computed anew from the tables, in
// another way than in the product.

import { noBudget } from "../../../../src/admin/store/budget.ts";
import type { Budget } from "../../../../src/core/store/budget.ts";
import { memberId, type Reading, teamOf } from "../memory/tables.ts";

const names = Object.keys(noBudget) as (keyof Budget)[];

/** A person in an organization. */
export interface Whose {
  organizationId: string;
  personId: string;
}

/** What limits the requests of one key: each limit by its name, with the raise above it. */
interface Limiting {
  name: string;
  budget: Budget;
  raise: { limits: Budget; until: Date } | null;
}

/**
 * The limit that was raised, in words, or null. Compared are the limits of each key of the person that works after the
 * action, and of a key that could be made next.
 */
export function raisedBy(before: Reading, after: Reading, whose: Whose): string | null {
  const ends = [...before.all("values"), ...after.all("values")].flatMap(({ until }) => until ?? []);
  const instants = [after.now, ...ends];
  for (const key of [null, ...keysOf(after, whose)]) {
    const isNew = key === null || !keysOf(before, whose).includes(key);
    const was = limitingOf(before, whose, isNew ? null : key);
    const is = new Map(limitingOf(after, whose, key).map((one) => [one.name, one]));
    for (const one of was)
      for (const limit of names)
        for (const at of instants) {
          const [least, now] = [limitAt(one, limit, at), limitAt(is.get(one.name), limit, at)];
          if (least !== null && (now === null || now > least))
            return `${one.name} had ${limit} ${least}, and has ${now ?? "none"} (${key ?? "a key to come"})`;
        }
  }
  return null;
}

function keysOf(of: Reading, { organizationId, personId }: Whose): string[] {
  return of
    .all("keys")
    .filter((key) => key.personId === personId && key.organizationId === organizationId && !key.revokedAt)
    .map(({ id }) => id);
}

function limitingOf(of: Reading, { organizationId, personId }: Whose, key: string | null): Limiting[] {
  const membership = teamOf(of, organizationId, personId);
  const team = key === null ? membership?.id : of.get("subjects", key)?.teamId;
  return [
    ...limitings(of, "the person", memberId(organizationId, personId)),
    ...(key === null ? [newKey(of, organizationId, membership?.id ?? null)] : limitings(of, "the key", key)),
    ...(team ? limitings(of, `the team ${team}`, team) : []),
  ];
}

/** The limits that a new key gets. Each limit is its team's, or else the organization's. */
function newKey(of: Reading, organizationId: string, team: string | null): Limiting {
  const given = [team, organizationId].map((id) => of.get("values", `${id} keys `)?.limits);
  const budget = { ...noBudget };
  for (const name of names) budget[name] = given.map((one) => one?.[name] ?? null).find((one) => one !== null) ?? null;
  return { name: "the key", budget, raise: null };
}

/** The limits of a subject for all models, and for each pattern. */
function limitings(of: Reading, name: string, id: string): Limiting[] {
  const raiseFor = (models: string) => {
    const row = of.get("values", `${id} raise ${models}`);
    return row?.until ? { limits: row.limits, until: row.until } : null;
  };
  const patterns = of.all("values").filter((one) => one.subjectId === id && one.kind === "own" && one.models !== "");
  return [
    { name, budget: of.get("subjects", id)?.budget ?? noBudget, raise: raiseFor("") },
    ...patterns.map(({ models, limits }) => ({
      name: `${name} for ${models}`,
      budget: limits,
      raise: raiseFor(models),
    })),
  ];
}

function limitAt(one: Limiting | undefined, name: keyof Budget, at: Date): number | null {
  const limit = one?.budget[name] || null;
  const raised = one?.raise && one.raise.until > at ? one.raise.limits[name] : null;
  return limit === null ? null : Math.max(limit, raised ?? 0);
}

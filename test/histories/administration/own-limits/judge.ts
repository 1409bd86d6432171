// Whether an act has raised what counts for a person: said anew, from the tables, and not as the product says it.

import { type Budget, noBudget } from "../../../../src/core/store/budget.ts";
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

/** In words, or null. A key is any of the person's that works after the act, or one that could be made next. */
export function raisedBy(before: Reading, after: Reading, whose: Whose): string | null {
  const instants = [after.now, ...[...before.all("raises"), ...after.all("raises")].map(({ until }) => until)];
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
  const given = (membership && of.get("keyDefaults", membership.id)) ?? of.get("keyDefaults", organizationId);
  return [
    limiting(of, "the person", memberId(organizationId, personId)),
    key === null ? { name: "the key", budget: given ?? noBudget, raise: null } : limiting(of, "the key", key),
    ...(team ? [limiting(of, `the team ${team}`, team)] : []),
  ];
}

const limiting = (of: Reading, name: string, id: string): Limiting => ({
  name,
  budget: of.get("subjects", id)?.budget ?? noBudget,
  raise: of.get("raises", id) ?? null,
});

function limitAt(one: Limiting | undefined, name: keyof Budget, at: Date): number | null {
  const limit = one?.budget[name] ?? null;
  const raised = one?.raise && one.raise.until > at ? one.raise.limits[name] : null;
  return limit === null ? null : Math.max(limit, raised ?? 0);
}

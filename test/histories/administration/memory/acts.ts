// Steps that the actions in memory share. They lock, read and write in the same order as src/stores/postgres.

import { isDeepStrictEqual } from "node:util";
import { budgetNames, noBudget } from "../../../../src/admin/store/budget.ts";
import type { Budget } from "../../../../src/core/store/budget.ts";
import { not_limited } from "../../../../src/core/store/rates.ts";
import type { MemoryTransaction } from "./memory.ts";
import { limitValueOf, memberId, type Reading, type SubjectRow, teamOf, type ValueRow } from "./tables.ts";

export const saysAny = (budget: Budget): boolean => Object.values(budget).some((limit) => limit !== null);

/** The lock of the audit trail, which an action takes at its end if it wrote something. */
export const audit = (tx: MemoryTransaction): Promise<void> => tx.lock("audit");

/** Notes that limits have changed: the row with the number of the last change is locked until the commit. */
export const limitsChanged = (tx: MemoryTransaction): Promise<void> => tx.lock("limit changes");

export type Origins = { [Name in keyof Budget]: "own" | "team" | "organization" | null };

/** The values in force: for each limit, the first value that sets it, and whose value that is. */
export function chosen(values: readonly (readonly [Origins[keyof Budget], Budget | undefined])[]) {
  const limits = budgetNames.map((name) => {
    const [origin = null, value] = values.find(([, one]) => (one?.[name] ?? null) !== null) ?? [];
    const limit = value?.[name] ?? null;
    return [name, { origin, limit: limit === not_limited ? null : limit }] as const;
  });
  return {
    inForce: Object.fromEntries(limits.map(([name, { limit }]) => [name, limit])) as unknown as Budget,
    origins: Object.fromEntries(limits.map(([name, { origin }]) => [name, origin])) as unknown as Origins,
  };
}

/**
 * A subject of the ledger, its team, and which limits of the team and the organization it gets: those for keys or for
 * members.
 */
interface Concerned {
  id: string;
  personId: string | null;
  teamId: string | null;
  gets: "keys" | "members" | null;
}

/**
 * The subjects that the SQL function limits_in_force returns. A key that was revoked is among them only if it is asked
 * for.
 */
export function subjectsOf(of: Reading, organizationId: string, asked: readonly string[] = []): Concerned[] {
  const here = (one: { organizationId: string }) => one.organizationId === organizationId;
  const people = [...of.all("memberships"), ...of.all("subjects")].filter(here).map(({ personId }) => personId);
  const teams = of.all("teams").filter(here);
  const keys = of.all("keys").filter((key) => here(key) && (!key.revokedAt || asked.includes(key.id)));
  return [
    ...teams.map(({ id }): Concerned => ({ id, personId: null, teamId: null, gets: null })),
    ...[...new Set(people)]
      .filter((one) => one !== null)
      .map((personId): Concerned => {
        const team = teamOf(of, organizationId, personId);
        return { id: memberId(organizationId, personId), personId, teamId: team?.id ?? null, gets: "members" };
      }),
    ...keys.map(({ id }): Concerned => {
      return { id, personId: null, teamId: of.get("subjects", id)?.teamId ?? null, gets: "keys" };
    }),
  ];
}

export function inForceOf(of: Reading, organizationId: string, { id, teamId, gets }: Concerned) {
  return chosen([
    ["own", limitValueOf(of, id, "own")],
    ["team", gets && teamId !== null ? limitValueOf(of, teamId, gets) : undefined],
    ["organization", gets ? limitValueOf(of, organizationId, gets) : undefined],
  ]);
}

/** Does what the SQL function limits_refresh does. */
export async function refreshLimits(
  tx: MemoryTransaction,
  organizationId: string,
  concerned: readonly string[] | null,
) {
  await tx.lock(organizationId, "no key update");
  await tx.lock(`ledger ${organizationId}`);
  const organization = tx.get("organizations", organizationId);
  const own = limitValueOf(tx, organizationId, "own") ?? noBudget;
  let isChanged = false;
  if (organization && !isDeepStrictEqual(own, tx.get("ownLimits", organizationId) ?? noBudget)) {
    tx.set("ownLimits", organizationId, own);
    isChanged = true;
  }
  for (const one of subjectsOf(tx, organizationId)) {
    if (concerned && !concerned.includes(one.id)) continue;
    const { inForce: budget } = inForceOf(tx, organizationId, one);
    const was = tx.get("subjects", one.id);
    if (isDeepStrictEqual(budget, was?.budget ?? noBudget)) continue;
    await setSubject(tx, {
      ...{ id: one.id, organizationId, teamId: one.personId === null ? one.teamId : null, budget },
      personId: one.personId ?? was?.personId ?? null,
    });
    isChanged = true;
  }
  if (isChanged) await limitsChanged(tx);
}

/** Does what the SQL function limits_refresh_person does: all keys of the person follow the membership. */
export async function refreshPerson(tx: MemoryTransaction, organizationId: string, personId: string) {
  await tx.lock(organizationId, "no key update");
  await tx.lock(`ledger ${organizationId}`);
  const keys = tx
    .all("keys")
    .filter((key) => key.personId === personId && key.organizationId === organizationId && !key.revokedAt);
  const teamId = teamOf(tx, organizationId, personId)?.id ?? null;
  if (isMember(tx, organizationId, personId))
    for (const { id } of keys) {
      const subject = tx.get("subjects", id);
      if (subject && subject.teamId !== teamId) await setTeam(tx, { id, organizationId, teamId });
    }
  await refreshLimits(tx, organizationId, [memberId(organizationId, personId), ...keys.map(({ id }) => id)]);
}

const isMember = (of: Reading, organizationId: string, personId: string) =>
  of
    .all("memberships")
    .some((one) => one.organizationId === organizationId && one.personId === personId && !one.isEnded);

/** Does what the SQL function usage_set_team does. */
export async function setTeam(
  tx: MemoryTransaction,
  { id, organizationId, teamId }: Pick<SubjectRow, "id" | "organizationId" | "teamId">,
): Promise<void> {
  const { budget = noBudget, personId = null } = tx.get("subjects", id) ?? {};
  await setSubject(tx, { id, organizationId, teamId, personId, budget });
  await limitsChanged(tx);
}

async function setSubject(tx: MemoryTransaction, subject: SubjectRow): Promise<void> {
  await tx.lock(`ledger ${subject.organizationId}`);
  tx.set("subjects", subject.id, subject);
}

/** Sets a value of limits; null takes it away. */
export function setValue(
  tx: MemoryTransaction,
  { subjectId, kind, models }: Pick<ValueRow, "subjectId" | "kind" | "models">,
  row: ValueRow | null,
): void {
  tx.set("values", `${subjectId} ${kind} ${models}`, row);
}

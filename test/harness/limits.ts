// Converts limits between nanos, in which tests count, and the money that the management verbs accept.

import type { LimitValueChanges } from "../../src/admin/management/limit-shape.ts";
import { noBudget } from "../../src/admin/store/budget.ts";
import type { LimitSubject } from "../../src/admin/store/limits.ts";
import { decimalOf } from "../../src/core/inference/money.ts";
import type { Budget } from "../../src/core/store/budget.ts";
import { bare } from "../../src/core/store/ids.ts";
import { administration } from "../../src/stores/postgres/administration.ts";
import type { Database, Transaction } from "../../src/stores/postgres/database.ts";
import { writeValue } from "../../src/stores/postgres/own-value.ts";
import { uuidOfSubject } from "../../src/stores/postgres/standing.ts";

const windows = ["session", "week", "month"];

/** The verbs' input for limits that are given in nanos or in numbers of requests. */
export function inMoney(limits: Partial<Budget>): LimitValueChanges {
  const all = Object.entries(limits).map(([name, limit]) => [
    name,
    limit !== null && windows.includes(name) ? decimalOf(limit, 9) : limit,
  ]);
  return Object.fromEntries(all);
}

/** The amounts of a verb's result in nanos. Amounts that are null (not limited, or not reported) are left out. */
export function inNanos(value: Record<string, unknown>): Record<string, unknown> {
  const all = Object.entries(value).map(([name, limit]) => {
    const isMoney = typeof limit === "object" && limit !== null && "amount" in limit;
    return [name, isMoney ? Number((limit.amount as string).replace(".", "")) : limit];
  });
  return Object.fromEntries(all.filter(([, limit]) => limit !== null));
}

/**
 * Sets the effective limits of a ledger subject directly in the ledger, as if they had been derived from limit values
 * that administrators set.
 */
export async function setSubject(
  tx: Pick<Transaction, "query">,
  { id, organization, team, budget }: { id: string; organization: string; team: string | null; budget: Budget },
): Promise<boolean> {
  const { session, week, month, concurrentRequests, requestsPerMinute, tokensPerMinute } = budget;
  const [row] = await tx.query<{ unsummed: boolean }>("select usage_set_subject($1, $2, $3, null, $4) as unsummed", [
    id,
    organization,
    team,
    [session, week, month, concurrentRequests, requestsPerMinute, tokensPerMinute],
  ]);
  await tx.query("select usage_limits_changed(array[$1::uuid])", [id]);
  return row!.unsummed;
}

/**
 * Sets a temporary increase of the limits of a ledger subject, whose ID begins with `org_`, `team_`, `mem_` or `key_`;
 * null ends the increase.
 */
export async function setRaise(
  db: Pick<Database, "transaction">,
  { id, organizationId }: { id: string; organizationId: string },
  raise: { limits: Budget; until: Date } | null,
): Promise<void> {
  const [subject, owner] = [uuidOfSubject(id), bare(organizationId, "org_")];
  await db.transaction(async (tx) => {
    await tx.query("select id from organization where id = $1 for no key update", [owner]);
    const to = raise && { models: "", ...raise };
    await writeValue(tx, { subject, owner, at: new Date(), actor: "cli:test" }, { kind: "raise", models: "", to });
    await tx.query("select usage_limits_changed(array[$1::uuid])", [subject]);
  });
}

/** Sets limit values of an organization, a team, a person or a key. */
export function setLimits(
  db: Database,
  subject: LimitSubject,
  change: { own?: Partial<Budget>; keys?: Partial<Budget>; members?: Partial<Budget> },
) {
  const whole = Object.entries(change).map(([kind, value]) => [kind, { ...noBudget, ...value }]);
  return administration(db).updateLimits(subject, { actor: "cli:test" }, () => Object.fromEntries(whole));
}

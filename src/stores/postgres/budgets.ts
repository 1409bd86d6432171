/** Limits of keys and teams, through SQL functions. */

import type { Budget } from "../../core/store/budget.ts";
import type { PlanLimits } from "../../core/store/plan.ts";
import { not_limited } from "../../core/store/rates.ts";
import { amountWritten } from "./acts.ts";
import type { Database, Querying } from "./database.ts";
import { onOneNode } from "./fleet.ts";

/**
 * Adds a key or a team to the ledger, or moves a key into a team or out of it. Returns whether `sumEarlier` must follow
 * the commit.
 */
export async function setTeam(
  tx: Querying,
  { id, owner, team }: { id: string; owner: string; team: string | null },
): Promise<boolean> {
  const [row] = await tx.query<{ unsummed: boolean }>("select usage_set_team($1, $2, $3) as unsummed", [
    id,
    owner,
    team,
  ]);
  return row!.unsummed;
}

/** Adds up what a key or a team used before it was first limited. Call it after the commit that limits it. */
export async function sumEarlier(db: Database, id: string): Promise<void> {
  await db.transaction((tx) => tx.query("select usage_sum_earlier($1)", [id]), { statement_ms: sum_ms });
}

/** Calls `sumEarlier` for all subjects whose sums were interrupted. One node of the fleet does it. */
export async function sumAllEarlier(db: Database): Promise<void> {
  const interrupted = "select subject_id as id from usage_subject where counted_from is not null and summed_at is null";
  await onOneNode(db, "usage_sum_earlier", async (lane) => {
    for (const { id } of await lane.query<{ id: string }>(interrupted)) await sumEarlier(db, id);
  });
}

/** The most time that `sumEarlier` may take. It may read the records of a month. */
const sum_ms = 15 * 60_000;

/** Calls `sumEarlier` for each id. Call it after the commit. */
export async function sumAll(db: Database, ids: readonly string[]): Promise<void> {
  for (const id of ids) await sumEarlier(db, id);
}

/** The limits with the names that the audit log uses, and money as decimal text. */
export const limitsShown = (limits: PlanLimits) => ({
  session: amountWritten(limits.session),
  week: amountWritten(limits.week),
  month: amountWritten(limits.month),
  requests_per_minute: limits.requestsPerMinute,
  tokens_per_minute: limits.tokensPerMinute,
  concurrent_requests: limits.concurrentRequests,
});

/** The limits that are set, for the details of an audit entry: `none` for one that is switched off. */
export function budgetShown(budget: Budget): Record<string, string | number> {
  const set = Object.entries(limitsShown(budget)).flatMap(([name, limit]) => (limit === null ? [] : [{ name, limit }]));
  return Object.fromEntries(set.map(({ name, limit }) => [name, Number(limit) === not_limited ? "none" : limit]));
}

/** Whether any limit is set, or switched off. */
export const saysAny = (budget: Budget): boolean => Object.values(budget).some((limit) => limit !== null);

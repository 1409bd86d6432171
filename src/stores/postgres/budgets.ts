/** Limits of keys and teams, over the functions of migration 0013. */
import { eq } from "drizzle-orm";
import { type keyDefault, type memberDefault, usageSubject } from "../../../db/schema.ts";
import type { Budget } from "../../core/store/budget.ts";
import type { PlanLimits } from "../../core/store/plan.ts";
import type { Database, Transaction } from "./database.ts";

/** A key or a team in the ledger; ids are bare UUIDs. */
export interface Subject {
  id: string;
  organization: string;
  team: string | null;
  budget: Budget;
}

/** Sets a subject's limits, in force with the commit. Returns whether `sumEarlier` must follow. */
export async function setSubject(tx: Pick<Transaction, "query" | "drizzle">, subject: Subject): Promise<boolean> {
  const { id, organization, team, budget } = subject;
  const [row] = await tx.query<{ unsummed: boolean }>("select usage_set_subject($1, $2, $3, $4) as unsummed", [
    id,
    organization,
    team,
    [budget.session, budget.week, budget.month, budget.concurrentRequests],
  ]);
  const { requestsPerMinute, tokensPerMinute } = budget;
  await tx.drizzle
    .update(usageSubject)
    .set({ requestsPerMinute, tokensPerMinute })
    .where(eq(usageSubject.subjectId, id));
  return row!.unsummed;
}

/**
 * Adds the use of a key or a team from before it was limited for the first time. It runs after the commit that limits
 * it.
 */
export async function sumEarlier(db: Database, id: string): Promise<void> {
  await db.transaction((tx) => tx.query("select usage_sum_earlier($1)", [id]), { statement_ms: sum_ms });
}

/** The same for all subjects whose sums were interrupted. */
export async function sumAllEarlier(db: Database): Promise<void> {
  const left = await db.query<{ id: string }>(
    "select subject_id as id from usage_subject where counted_from is not null and summed_at is null",
  );
  for (const { id } of left) await sumEarlier(db, id);
}

/** A sum reads the records of a month. */
const sum_ms = 15 * 60_000;

export async function subjectOf(tx: Pick<Transaction, "drizzle">, id: string): Promise<Omit<Subject, "id"> | null> {
  const [row] = await tx.drizzle.select().from(usageSubject).where(eq(usageSubject.subjectId, id));
  return row ? { organization: row.organizationId, team: row.teamId, budget: budgetOf(row) } : null;
}

export function budgetOf(row: Budget): Budget {
  const { session, week, month, requestsPerMinute, tokensPerMinute, concurrentRequests } = row;
  return { session, week, month, requestsPerMinute, tokensPerMinute, concurrentRequests };
}

/** Limits that a team or an organization gives: to each new key, or to each member without limits of their own. */
export type DefaultTable = typeof keyDefault | typeof memberDefault;

/** Null: none are set. */
export async function defaultOf(
  tx: Pick<Transaction, "drizzle">,
  table: DefaultTable,
  owner: string,
): Promise<Budget | null> {
  const [row] = await tx.drizzle.select().from(table).where(eq(table.ownerId, owner));
  return row ? budgetOf(row) : null;
}

export async function setDefault(
  tx: Pick<Transaction, "drizzle">,
  table: DefaultTable,
  owner: string,
  budget: Budget | null,
): Promise<void> {
  await tx.drizzle.delete(table).where(eq(table.ownerId, owner));
  if (budget) await tx.drizzle.insert(table).values({ ownerId: owner, ...budget });
}

/** The limits as the audit log and the interfaces write them. */
export const limitsShown = (limits: PlanLimits) => ({
  session: limits.session,
  week: limits.week,
  month: limits.month,
  requests_per_minute: limits.requestsPerMinute,
  tokens_per_minute: limits.tokensPerMinute,
  concurrent_requests: limits.concurrentRequests,
});

/** The same without the limits that are null. */
export function budgetShown(budget: Budget): Record<string, number> {
  const all = Object.entries(limitsShown(budget));
  return Object.fromEntries(all.filter((one): one is [string, number] => one[1] !== null));
}

export const isLimited = (budget: Budget): boolean => Object.keys(budgetShown(budget)).length > 0;

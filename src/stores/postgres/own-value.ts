/**
 * Writes one value of a subject's limits. The SQL function `limits_refresh` then computes the limits that are in force.
 */
import { budgetNames } from "../../admin/store/budget.ts";
import type { NewRaise } from "../../admin/store/limits.ts";
import type { Budget } from "../../core/store/budget.ts";
import { saysAny } from "./budgets.ts";
import type { Querying } from "./database.ts";

/**
 * The subject of a limit, by its UUID in the ledger; the subject's organization; and the time and the actor of the
 * change.
 */
export interface LimitOwner {
  subject: string;
  owner: string;
  at: Date;
  actor: string;
}

export interface LimitValue {
  kind: "own" | "keys" | "members" | "raise";
  models: string;
  /** The new value; null removes it. */
  to: Budget | NewRaise | null;
}

/** The six limits in the order of the SQL type's arrays (`limit_array`). */
export const arrayOf = (budget: Budget): (number | null)[] => budgetNames.map((name) => budget[name]);

export async function writeValue(
  tx: Querying,
  { subject, owner, at, actor }: LimitOwner,
  { kind, models, to }: LimitValue,
): Promise<void> {
  await tx.query("delete from limit_value where subject_id = $1 and kind = $2 and models = $3", [
    subject,
    kind,
    models,
  ]);
  if (to === null) return;
  const { limits, until } = "until" in to ? to : { limits: to, until: null };
  if (until === null && models === "" && !saysAny(limits)) return;
  await tx.query(inserting, [subject, owner, kind, models, ...arrayOf(limits), until, at, actor]);
  if (until) await tx.query(raisingUntil, [owner, until]);
}

const inserting = `insert into limit_value (subject_id, organization_id, kind, models, session_nanos, week_nanos, month_nanos,
    concurrent_requests, requests_per_minute, tokens_per_minute, until, set_at, set_by)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`;

const raisingUntil = "update organization set raised_until = greatest(raised_until, $2::timestamptz) where id = $1";

/** The plans in force, over SQL (docs/design/usage.md, Plans that change). */
import { isDeepStrictEqual } from "node:util";
import { and, eq, getTableColumns, inArray, notInArray, sql } from "drizzle-orm";
import { plan } from "../../../db/schema.ts";
import type { PlanStore } from "../../admin/store/plan.ts";
import type { Plan } from "../../core/store/plan.ts";
import { appendAuditEntry, storeNow } from "./acts.ts";
import { limitsShown } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { lockPlans, plansChanged } from "./managed-plans.ts";
import { unwrapErrors } from "./rows.ts";

const { source: _, version: __, changedAt: ___, ...limits } = getTableColumns(plan);

export function plans(db: Database): PlanStore {
  return {
    inForce: () => unwrapErrors(db.drizzle.select(limits).from(plan)),
    publish: (of, fileAge_ms) => unwrapErrors(db.transaction((tx) => publish(tx, of, fileAge_ms))),
    taken: (names) => unwrapErrors(takenOf(db, names)),
  };
}

async function publish(tx: Transaction, file: readonly Plan[], fileAge_ms: number | null) {
  await lockPlans(tx);
  const [dated] = await tx.query<{ changedAt: string; newest: boolean }>(dating, [fileAge_ms]);
  const { changedAt, newest } = dated!;
  const ofFile = eq(plan.source, "file");
  const before = new Map((await tx.drizzle.select(limits).from(plan).where(ofFile)).map((one) => [one.name, one]));
  const changed = file.filter((one) => !isDeepStrictEqual(one, before.get(one.name)));
  if (changed.length === 0 && file.length === before.size) {
    await tx.query(raising, [changedAt]);
    return "same";
  }
  if (!newest) return "older";
  const names = file.map(({ name }) => name);
  const taken = await takenOf(tx, names);
  if (taken.length > 0) return { taken };
  await tx.query(raising, [changedAt]);
  const at = await storeNow(tx);
  await tx.drizzle.delete(plan).where(and(ofFile, notInArray(plan.name, names)));
  for (const one of changed) {
    const row = { ...one, source: "file" as const, changedAt: at };
    const version = sql<number>`${plan.version} + 1`;
    await tx.drizzle
      .insert(plan)
      .values({ ...row, version: 1 })
      .onConflictDoUpdate({ target: plan.name, set: { ...row, version } });
  }
  await plansChanged(tx);
  // The first file is not a change, because there were no plans before it.
  if (before.size > 0) await auditFile(tx, at, { before, changed, names });
  return "published";
}

/** Writes the audit entries of a file: its changes, and the plans that it no longer has. */
async function auditFile(
  tx: Transaction,
  at: Date,
  { before, changed, names }: { before: ReadonlyMap<string, Plan>; changed: readonly Plan[]; names: string[] },
): Promise<void> {
  const common = { actor: "service", owner: null };
  for (const one of changed) {
    const was = before.get(one.name);
    const details = { source: "file", limits: limitsShown(one), before: was ? limitsShown(was) : null };
    await appendAuditEntry(tx, at, {
      ...common,
      action: was ? "plan.update" : "plan.create",
      subject: one.name,
      details,
    });
  }
  for (const [name, was] of before) {
    if (names.includes(name)) continue;
    const details = { source: "file", limits: null, before: limitsShown(was) };
    await appendAuditEntry(tx, at, { ...common, action: "plan.remove", subject: name, details });
  }
}

async function takenOf(db: Pick<Database, "drizzle">, names: readonly string[]): Promise<string[]> {
  const isTaken = and(eq(plan.source, "management"), inArray(plan.name, [...names]));
  const rows = await db.drizzle.select({ name: plan.name }).from(plan).where(isTaken).orderBy(plan.name);
  return rows.map(({ name }) => name);
}

/**
 * SQL for when the file that is being published was changed, by the store's clock. The statement runs while the row of
 * `plan_file` is locked.
 */
const dating = `
  select mine.changed_at::text as "changedAt", mine.changed_at >= f.changed_at as newest
  from plan_file f,
    (select coalesce(store_now() - $1::double precision * interval '1 millisecond', '-infinity') as changed_at) mine`;

/** The stored date never moves back. The date of a refused file is not stored. */
const raising = "update plan_file set changed_at = greatest(changed_at, $1::timestamptz)";

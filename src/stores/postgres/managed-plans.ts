/** Plans that are created at run time, in addition to those of the file (docs/design/usage.md, Plans that change). */
import { asc, eq } from "drizzle-orm";
import { plan } from "../../../db/schema.ts";
import type { Plan as KnownPlan, PlanAdministration, PlanUse } from "../../admin/store/plan.ts";
import { appendAuditEntry, creating, storeNow } from "./acts.ts";
import { limitsShown } from "./budgets.ts";
import { type Changeable, change } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { planUse } from "./plan-use.ts";
import { unwrapErrors } from "./rows.ts";

export function managedPlans(db: Database): PlanAdministration {
  return {
    listPlans: () => unwrapErrors(db.drizzle.select().from(plan).orderBy(asc(plan.name))),

    createPlan(made, actor, repeat) {
      const create = async (tx: Transaction) => {
        await lockPlans(tx);
        const there = await read(tx, made.name);
        if (there) return { standsIn: there.source };
        const at = await storeNow(tx);
        const row = { ...made, source: "management" as const, version: 1, changedAt: at };
        await tx.drizzle.insert(plan).values(row);
        await plansChanged(tx);
        const details = { source: row.source, limits: limitsShown(made), before: null };
        await appendAuditEntry(tx, at, { actor, action: "plan.create", owner: null, subject: made.name, details });
        return row;
      };
      return creating(db, { actor, id: made.name, repeat }, create, (answer) => "standsIn" in answer);
    },

    updatePlan: (name, changes, actor, version) =>
      change(db, changeablePlan, { id: name, actor, version }, async (tx, before, at) => {
        const after = { ...before, ...changes };
        const limits = limitsShown(after);
        if (Bun.deepEquals(limits, limitsShown(before))) return null;
        await tx.drizzle
          .update(plan)
          .set({ ...after, changedAt: at })
          .where(eq(plan.name, name));
        return { action: "plan.update", details: { source: before.source, limits, before: limitsShown(before) } };
      }),

    async removePlan(name, actor, version) {
      let use: PlanUse | null = null;
      const removed = await change(db, changeablePlan, { id: name, actor, version }, async (tx, before) => {
        // Waits for a transaction that is moving an organization to the plan (planStands), whose effect is seen below.
        await tx.query("select 1 from plan where name = $1 for update", [name]);
        use = (await planUse(tx)).find((one) => one.plan === name) ?? null;
        if (use) return "in_use";
        await tx.drizzle.delete(plan).where(eq(plan.name, name));
        const details = { source: before.source, limits: null, before: limitsShown(before) };
        return { action: "plan.remove", details, gone: before };
      });
      return removed === "in_use" ? use! : removed;
    },
  };
}

const changeablePlan: Changeable<KnownPlan, KnownPlan, "of_file"> = {
  async lock(tx, name) {
    await lockPlans(tx);
    const row = await read(tx, name);
    return row?.source === "file" ? "of_file" : row;
  },
  read: (tx, { name }) => read(tx, name),
  bump: (tx, { name }) => tx.query("update plan set version = version + 1 where name = $1", [name]),
  owner: () => null,
  announce: plansChanged,
};

/**
 * Whether an organization may get this plan. An existing plan cannot be removed before the commit, since its removal
 * locks the same row. Null is no plan, and always allowed.
 */
export async function planStands(tx: Transaction, name: string | null): Promise<boolean> {
  if (name === null) return true;
  const rows = await tx.query("select 1 from plan where name = $1 for key share", [name]);
  return rows.length > 0;
}

/**
 * Like `planStands`, but if it is possible that no node serves this database, any name is allowed, since the plan may
 * be in a file that was not published yet.
 */
export async function planMayStand({ kind }: Database, tx: Transaction, name: string | null): Promise<boolean> {
  if (await planStands(tx, name)) return true;
  const published = await tx.query("select 1 from plan limit 1");
  return kind === "pglite" || published.length === 0;
}

/** Locks the plans: until the commit no other plan is published, created, changed or removed. */
export async function lockPlans(tx: Transaction): Promise<void> {
  await tx.query("select 1 from plan_file for update");
}

export function plansChanged(tx: Transaction): Promise<void> {
  return tx.notify("limits_changed", "");
}

async function read(tx: Transaction, name: string): Promise<KnownPlan | null> {
  const [row] = await tx.drizzle.select().from(plan).where(eq(plan.name, name));
  return row ?? null;
}

/** The plans in force, over SQL (docs/design/usage.md, Plans that change). */
import { isDeepStrictEqual } from "node:util";
import { getTableColumns, notInArray } from "drizzle-orm";
import { plan } from "../../db/schema.ts";
import type { Plan, PlanStore } from "../store/plan.ts";
import { storeNow } from "./acts.ts";
import type { Database, Transaction } from "./database.ts";
import { plainly } from "./rows.ts";

const channel = "plans_changed";
const { changedAt: _, ...limits } = getTableColumns(plan);

export function plans(db: Database): PlanStore {
  return {
    inForce: () => plainly(db.drizzle.select(limits).from(plan)),
    publish: (of, fileAge_ms) => plainly(db.transaction((tx) => publish(tx, of, fileAge_ms))),
    listen: (changed) => db.listen(channel, changed, changed),
  };
}

async function publish(tx: Transaction, file: readonly Plan[], fileAge_ms: number | null) {
  await tx.query("select 1 from plan_file for update");
  const [decision] = await tx.query<{ newest: boolean }>(deciding, [fileAge_ms]);
  const inForce = new Map((await tx.drizzle.select(limits).from(plan)).map((one) => [one.name, one]));
  const changed = file.filter((one) => !isDeepStrictEqual(one, inForce.get(one.name)));
  if (changed.length === 0 && file.length === inForce.size) return "same";
  if (!decision!.newest) return "older";
  const changedAt = await storeNow(tx);
  const names = file.map(({ name }) => name);
  await tx.drizzle.delete(plan).where(notInArray(plan.name, names));
  for (const one of changed) {
    const row = { ...one, changedAt };
    await tx.drizzle.insert(plan).values(row).onConflictDoUpdate({ target: plan.name, set: row });
  }
  await tx.notify(channel, "");
  return "published";
}

/** Under the row's lock: looked at is what the last publication has left. The file's date only rises. */
const deciding = `
  update plan_file f set changed_at = greatest(was.changed_at, mine.changed_at)
  from plan_file was,
    (select coalesce(store_now() - $1::double precision * interval '1 millisecond', '-infinity') as changed_at) mine
  returning mine.changed_at >= was.changed_at as newest`;

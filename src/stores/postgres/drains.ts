/** Stores over SQL which engines are drained. */
import { and, eq } from "drizzle-orm";
import { drainedEngine } from "../../../db/schema.ts";
import type { DrainAdministration } from "../../admin/store/drain.ts";
import type { Drain, DrainStore } from "../../core/store/drain.ts";
import { appendAuditEntry, storeNow, transact } from "./acts.ts";
import type { Database } from "./database.ts";

const channel = "drains_changed";

type Row = typeof drainedEngine.$inferSelect;
const drainOf = (row: Row): Drain => ({ ...row, replica: row.replica || null });

const listDrains = async (db: Database): Promise<Drain[]> =>
  (
    await db.query<Row>(
      `select upstream, replica, drained_at as "drainedAt", until, actor from drained_engine
       where until is null or until > store_now() order by upstream, replica`,
    )
  ).map(drainOf);

export function drains(db: Database): DrainStore {
  return {
    listDrains: () => listDrains(db),
    listen: (changed) => db.listen(channel, changed, changed),
  };
}

export function drainAdministration(db: Database): DrainAdministration {
  return {
    listDrains: () => listDrains(db),

    drain: ({ upstream, replica }, until, actor) =>
      transact(db, async (tx) => {
        const at = await storeNow(tx);
        if (until && until <= at) return "past" as const;
        const row = { upstream, replica: replica ?? "", drainedAt: at, until, actor };
        const { upstream: _, replica: __, ...changes } = row;
        await tx.drizzle
          .insert(drainedEngine)
          .values(row)
          .onConflictDoUpdate({ target: [drainedEngine.upstream, drainedEngine.replica], set: changes });
        await tx.notify(channel, "");
        const details = { replica, until: until?.toISOString() ?? null };
        await appendAuditEntry(tx, at, { actor, action: "upstream.drain", owner: null, subject: upstream, details });
        return drainOf(row);
      }),

    resume: ({ upstream, replica }, actor) =>
      transact(db, async (tx) => {
        const at = await storeNow(tx);
        const ofReplica = replica === null ? undefined : eq(drainedEngine.replica, replica);
        const gone = await tx.drizzle
          .delete(drainedEngine)
          .where(and(eq(drainedEngine.upstream, upstream), ofReplica))
          .returning();
        const ended = gone.filter(({ until }) => until === null || until > at).map(drainOf);
        if (ended.length === 0) return [];
        await tx.notify(channel, "");
        const details = { replica, drained_at: ended.map(({ drainedAt }) => drainedAt.toISOString()) };
        await appendAuditEntry(tx, at, { actor, action: "upstream.resume", owner: null, subject: upstream, details });
        return ended;
      }),
  };
}

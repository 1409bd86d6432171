/**
 * The connections that carry batches: a few of the ledger's own, opened when first needed, and given up when one fails.
 */
import type { Database, Lane } from "./database.ts";

export interface Lanes {
  use<T>(work: (lane: Lane) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

interface Slot {
  lane: Promise<Lane> | null;
  running: number;
}

const onServer = { synchronous_commit: "off", plan_cache_mode: "force_generic_plan" };

export function laneSet(db: Database, count: number): Lanes {
  const isServer = db.kind === "postgres";
  const slots: Slot[] = Array.from({ length: isServer ? count : 1 }, () => ({ lane: null, running: 0 }));
  const opened = () => db.lane(isServer ? onServer : {});
  const drop = (slot: Slot, lane: Promise<Lane>) => {
    if (slot.lane === lane) slot.lane = null;
    lane.then((one) => one.close()).catch(() => {});
  };

  return {
    async use<T>(work: (lane: Lane) => Promise<T>): Promise<T> {
      const slot = slots.reduce((least, one) => (one.running < least.running ? one : least));
      slot.lane ??= opened();
      const lane = slot.lane;
      slot.running += 1;
      try {
        return await work(await lane);
      } catch (error) {
        // The failed batch may still be running on this connection, so nothing more is sent on it.
        if (isServer) drop(slot, lane);
        throw error;
      } finally {
        slot.running -= 1;
      }
    },
    async close() {
      const open = slots.flatMap((slot) => slot.lane ?? []);
      for (const slot of slots) slot.lane = null;
      await Promise.all(open.map(async (lane) => (await lane).close()));
    },
  };
}

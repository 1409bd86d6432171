// What goes wrong, one thing at a time or several at once: a seed says what and when. Whatever is broken is mended again
// within seconds, so that a run goes on; some of it lasts longer than a lease, so that leases are lost.

import type { Chance } from "./chance.ts";
import { lease_s, type Rig } from "./rig.ts";
import { redisSays } from "./stores.ts";

export type Injury =
  | "kill a node"
  | "freeze a node briefly"
  | "freeze a node past its lease"
  | "kill Postgres"
  | "freeze Postgres"
  | "cut a node from Postgres"
  | "kill Redis"
  | "freeze Redis"
  | "flush Redis"
  | "cut a node from Redis";

const injuries: readonly Injury[] = [
  "kill a node",
  "kill a node",
  "kill a node",
  "freeze a node briefly",
  "freeze a node past its lease",
  "kill Postgres",
  "freeze Postgres",
  "cut a node from Postgres",
  "cut a node from Postgres",
  "kill Redis",
  "freeze Redis",
  "flush Redis",
  "cut a node from Redis",
];

export interface Injector {
  readonly counts: ReadonlyMap<Injury, number>;
  /** Resolves when `count` injuries have been done, and all is mended. */
  run(count: number, gap_ms: number): Promise<void>;
}

export function injector(rig: Rig, chance: Chance): Injector {
  const counts = new Map<Injury, number>();
  /** What is broken now: nothing is broken twice. */
  const broken = new Set<string>();

  async function injure(injury: Injury): Promise<void> {
    const node = chance.pick(rig.nodes);
    const long_ms = 1000 * lease_s + 500 + chance.below(1000);
    const short_ms = 50 + chance.below(800);
    const whole = async (what: string, work: () => Promise<void>) => {
      if (broken.has(what)) return;
      broken.add(what);
      counts.set(injury, (counts.get(injury) ?? 0) + 1);
      try {
        await work();
      } finally {
        broken.delete(what);
      }
    };
    switch (injury) {
      case "kill a node":
        return whole(node.name, async () => {
          await node.kill();
          await Bun.sleep(short_ms);
          await node.start();
        });
      case "freeze a node briefly":
      case "freeze a node past its lease":
        return whole(node.name, async () => {
          node.freeze();
          await Bun.sleep(injury === "freeze a node briefly" ? short_ms : long_ms);
          node.thaw();
        });
      case "kill Postgres":
        return whole("postgres", async () => {
          await rig.postgres.kill();
          await Bun.sleep(short_ms);
          await rig.postgres.start();
        });
      case "freeze Postgres":
        return whole("postgres", async () => {
          rig.postgres.freeze();
          await Bun.sleep(short_ms * 2);
          rig.postgres.thaw();
        });
      case "cut a node from Postgres":
        return whole(`${node.name} postgres`, async () => {
          node.database.cut();
          await Bun.sleep(chance.next() < 0.5 ? short_ms : long_ms);
          node.database.mend();
        });
      case "kill Redis":
        return whole("redis", async () => {
          await rig.redis.kill();
          await Bun.sleep(short_ms);
          await rig.redis.start();
        });
      case "freeze Redis":
        return whole("redis", async () => {
          rig.redis.freeze();
          await Bun.sleep(short_ms);
          rig.redis.thaw();
        });
      case "flush Redis":
        return whole("redis", async () => void (await redisSays(rig.redis.port, "FLUSHALL").catch(() => "")));
      case "cut a node from Redis":
        return whole(`${node.name} redis`, async () => {
          node.redis.cut();
          await Bun.sleep(short_ms);
          node.redis.mend();
        });
    }
  }

  return {
    counts,
    async run(count, gap_ms) {
      const underway = new Set<Promise<void>>();
      const done = () => [...counts.values()].reduce((sum, one) => sum + one, 0);
      const until = done() + count;
      while (done() < until) {
        const injury = injure(chance.pick(injuries)).finally(() => underway.delete(injury));
        underway.add(injury);
        await Bun.sleep(gap_ms / 2 + chance.below(gap_ms));
      }
      await Promise.all(underway);
      // A node that could not start while Postgres was away starts now.
      for (const node of rig.nodes) if (!node.running) await node.start();
    },
  };
}

// The faults that a run injects (called injuries), and how long each lasts. Each is repaired within seconds, so that
// the run goes on; some last longer than a lease, so that nodes lose their leases.

import type { Administrator } from "./administrator.ts";
import type { Chance } from "./chance.ts";
import type { Mood } from "./engine-front.ts";
import type { Node, Rig } from "./rig.ts";
import { redisSays } from "./stores.ts";

export interface Scene {
  rig: Rig;
  administrator: Administrator;
  chance: Chance;
  node: Node;
  /** The durations of faults: `short_ms` is some hundred milliseconds; `long_ms` is longer than a lease. */
  short_ms: number;
  long_ms: number;
  /** The time spans whose confirmed writes a failover has lost. */
  forgotten: { from_ms: number; to_ms: number }[];
}

export interface Injury {
  /** How often this fault is drawn, relative to the others. */
  weight: number;
  /** The names of the targets of the fault: a target has no two faults at a time. */
  breaks(scene: Scene): string[];
  /** Breaks the targets that `breaks` names, and repairs them. */
  work(scene: Scene): Promise<unknown>;
}

const hour_ms = 3_600_000;
const either = ({ chance, short_ms, long_ms }: Scene) => (chance.next() < 0.5 ? short_ms : long_ms);
const node = ({ node }: Scene) => [node.name];
const postgres = () => ["postgres"];
const nobody = () => [];

async function freeze({ node }: Scene, for_ms: number): Promise<void> {
  node.freeze();
  await Bun.sleep(for_ms);
  node.thaw();
}

/** Creates a fault of one engine; the other engine stays available. */
function engine(mood: Mood, least_ms: number): Injury {
  const index = (scene: Scene) => scene.rig.nodes.indexOf(scene.node) % scene.rig.engines.length;
  return {
    weight: 1,
    breaks: (scene) => [`engine ${index(scene)}`],
    async work(scene) {
      const { front } = scene.rig.engines[index(scene)]!;
      front.set(mood);
      await Bun.sleep(least_ms + scene.short_ms);
      front.set("well");
    },
  };
}

const administration = (weight: number, work: Injury["work"]): Injury => ({ weight, breaks: nobody, work });

export const injuries = {
  "kill a node": {
    weight: 3,
    breaks: node,
    async work({ node, short_ms }) {
      await node.kill();
      await Bun.sleep(short_ms);
      await node.start();
    },
  },
  "freeze a node briefly": { weight: 1, breaks: node, work: (scene) => freeze(scene, scene.short_ms) },
  "freeze a node past its lease": { weight: 1, breaks: node, work: (scene) => freeze(scene, scene.long_ms) },
  "set a node's clock": {
    weight: 1,
    breaks: ({ node }) => [`${node.name} clock`],
    async work(scene) {
      scene.node.setClock(scene.chance.pick([-6 * hour_ms, 6 * hour_ms, -400 * 24 * hour_ms, 30_000]));
      await Bun.sleep(scene.long_ms);
      scene.node.setClock(0);
    },
  },
  "kill Postgres": {
    weight: 1,
    breaks: postgres,
    async work({ rig, short_ms }) {
      await rig.postgres.kill();
      await Bun.sleep(short_ms);
      await rig.postgres.start();
    },
  },
  "freeze Postgres": {
    weight: 1,
    breaks: postgres,
    async work({ rig, short_ms }) {
      rig.postgres.freeze();
      await Bun.sleep(short_ms * 2);
      rig.postgres.thaw();
    },
  },
  "fail over and lose commits": {
    weight: 1,
    breaks: postgres,
    async work({ rig, short_ms, forgotten }) {
      const span = { from_ms: Date.now(), to_ms: Number.POSITIVE_INFINITY };
      forgotten.push(span);
      await rig.postgres.wakeInThePast(() => Bun.sleep(short_ms));
      span.to_ms = Date.now();
    },
  },
  "cut a node from Postgres": {
    weight: 2,
    breaks: ({ node }) => [`${node.name} postgres`],
    async work(scene) {
      scene.node.database.cut();
      await Bun.sleep(either(scene));
      scene.node.database.mend();
    },
  },
  "pause the machine": {
    weight: 1,
    breaks: ({ rig }) => ["postgres", "redis", ...rig.nodes.map(({ name }) => name)],
    async work(scene) {
      const { nodes, postgres, redis } = scene.rig;
      const all = [...nodes, postgres, redis];
      for (const one of all) one.freeze();
      await Bun.sleep(either(scene));
      for (const one of all) one.thaw();
    },
  },
  "kill Redis": {
    weight: 1,
    breaks: () => ["redis"],
    async work({ rig, short_ms }) {
      await rig.redis.kill();
      await Bun.sleep(short_ms);
      await rig.redis.start();
    },
  },
  "freeze Redis": {
    weight: 1,
    breaks: () => ["redis"],
    async work({ rig, short_ms }) {
      rig.redis.freeze();
      await Bun.sleep(short_ms);
      rig.redis.thaw();
    },
  },
  "flush Redis": {
    weight: 1,
    breaks: () => ["redis"],
    work: ({ rig }) => redisSays(rig.redis.port, "FLUSHALL").catch(() => ""),
  },
  "cut a node from Redis": {
    weight: 1,
    breaks: ({ node }) => [`${node.name} redis`],
    async work({ node, short_ms }) {
      node.redis.cut();
      await Bun.sleep(short_ms);
      node.redis.mend();
    },
  },
  "lock a table": {
    weight: 1,
    breaks: () => ["a table"],
    work: ({ administrator, chance, short_ms }) =>
      administrator.lock(chance.pick(["usage_record", "usage_hold", "usage_now", "organization"]), 3 * short_ms),
  },
  "hold a snapshot": administration(1, ({ administrator, long_ms }) => administrator.readFor(2 * long_ms)),
  "upkeep and audit": administration(2, ({ administrator }) => administrator.keepUp()),
  "take every connection": {
    weight: 1,
    breaks: () => ["connections"],
    work: ({ administrator, short_ms }) => administrator.exhaustConnections(2 * short_ms),
  },
  "change the plan": administration(2, ({ administrator, chance }) => administrator.changePlan(chance)),
  "change a limit of a key, person or team": administration(3, ({ administrator, chance }) =>
    administrator.changeLimit(chance),
  ),
  "raise a limit until an instant": administration(3, ({ administrator, chance }) => administrator.raise(chance)),
  "move a person": {
    weight: 2,
    breaks: () => ["a person"],
    work: ({ administrator, chance, short_ms }) => administrator.movePerson(chance, short_ms),
  },
  "set an anchor": administration(1, ({ administrator, chance }) => administrator.setAnchor(chance)),
  "adjust a window": administration(1, ({ administrator, chance }) => administrator.adjust(chance)),
  "set the store's clock": {
    weight: 1,
    breaks: () => ["the store's clock"],
    async work({ administrator, chance, long_ms }) {
      await administrator.setClock(chance.pick([6 * hour_ms, 40_000, hour_ms * chance.below(7)]));
      await Bun.sleep(long_ms);
      if (chance.next() < 0.5) await administrator.setClock(0);
    },
  },
  "an engine dies": engine("dead", 500),
  "an engine stalls": engine("silent", 1_500),
  "an engine answers late": engine("late", 1_500),
  "an engine lies": engine("lying", 1_000),
  "an engine breaks off": {
    weight: 2,
    breaks: nobody,
    work: async ({ rig, chance }) => chance.pick(rig.engines).front.cut(),
  },
} satisfies Record<string, Injury>;

export type InjuryName = keyof typeof injuries;

// Injects faults (called injuries) into nodes, stores and engines, one at a time or several at once. The run's seed
// determines the faults and their times.

import type { Administrator } from "./administrator.ts";
import type { Chance } from "./chance.ts";
import { type Injury, type InjuryName, injuries, type Scene } from "./injuries.ts";
import { lease_s, type Rig } from "./rig.ts";

/** The time during which a fault was in effect. */
export interface Spell {
  breaks: readonly string[];
  from_ms: number;
  to_ms: number;
}

export interface Injector {
  readonly counts: ReadonlyMap<InjuryName, number>;
  readonly spells: readonly Spell[];
  readonly forgotten: Scene["forgotten"];
  /** Injects `count` faults. Resolves when they have been repaired. */
  run(count: number, gap_ms: number): Promise<void>;
}

/**
 * Creates the injector of a rig. `only` restricts the faults to those whose name contains one of these words, separated
 * by commas.
 */
export function injector(rig: Rig, administrator: Administrator, chance: Chance, only = ""): Injector {
  const counts = new Map<InjuryName, number>();
  const forgotten: Scene["forgotten"] = [];
  const spells: Spell[] = [];
  const drawn = (Object.keys(injuries) as InjuryName[])
    .filter((name) => only.split(",").some((word) => name.includes(word)))
    .flatMap((name) => Array.from({ length: injuries[name].weight }, () => name));
  if (drawn.length === 0) throw new Error(`no injury is called "${only}"`);
  /** The names of what is broken now, so that no target has two faults at a time. */
  const broken = new Set<string>();

  async function injure(name: InjuryName): Promise<void> {
    const injury: Injury = injuries[name];
    const long_ms = 1000 * lease_s + 500 + chance.below(1000);
    const short_ms = 50 + chance.below(800);
    const scene: Scene = { rig, administrator, chance, node: chance.pick(rig.nodes), short_ms, long_ms, forgotten };
    const breaks = injury.breaks(scene);
    if (breaks.some((what) => broken.has(what))) return;
    for (const what of breaks) broken.add(what);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const spell: Spell = { breaks, from_ms: Date.now(), to_ms: Number.POSITIVE_INFINITY };
    spells.push(spell);
    try {
      await injury.work(scene);
    } finally {
      spell.to_ms = Date.now();
      for (const what of breaks) broken.delete(what);
    }
  }

  return {
    counts,
    spells,
    forgotten,
    async run(count, gap_ms) {
      const underway = new Set<Promise<void>>();
      const done = () => [...counts.values()].reduce((sum, one) => sum + one, 0);
      const until = done() + count;
      while (done() < until) {
        const injury = injure(chance.pick(drawn)).finally(() => underway.delete(injury));
        underway.add(injury);
        await Bun.sleep(gap_ms / 2 + chance.below(gap_ms));
      }
      await Promise.all(underway);
      // Sets the store's clock to the latest time that it has shown. Otherwise a lease that was taken before the clock
      // was set back would last until the clock had caught up.
      await administrator.setClock(administrator.furthest_ms);
      // Starts the nodes that could not start while Postgres was down.
      for (const node of rig.nodes) if (!node.running) await node.start();
    },
  };
}

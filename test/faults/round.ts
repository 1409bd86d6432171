// One run: load on three nodes, injuries by the seed, and then the judge.

import { chanceOf } from "./chance.ts";
import { type Injury, injector } from "./injector.ts";
import { judge, type Verdict } from "./judge.ts";
import { startLoad } from "./load.ts";
import { startRig } from "./rig.ts";

export interface Run {
  seed: number;
  injuries: ReadonlyMap<Injury, number>;
  verdict: Verdict;
  took_ms: number;
}

const tokensPerSecond = 150;

export async function faultRun(options: {
  seed: number;
  injuries: number;
  clients: number;
  gap_ms: number;
  plan: string;
}): Promise<Run> {
  const started = performance.now();
  const chance = chanceOf(options.seed);
  const rig = await startRig({ nodes: 3, plan: options.plan, requests_max: 2_000_000 });
  try {
    const load = startLoad({
      nodes: rig.nodes,
      key: rig.key,
      clients: options.clients,
      chance: chanceOf(options.seed + 1),
      tokensPerSecond,
    });
    const injuries = injector(rig, chance);
    await injuries.run(options.injuries, options.gap_ms);
    await load.stop();
    const verdict = await judge(rig, load.received, tokensPerSecond);
    return { seed: options.seed, injuries: injuries.counts, verdict, took_ms: performance.now() - started };
  } catch (failure) {
    throw new Error(
      `${failure instanceof Error ? failure.message : failure}\n${rig.nodes.map((node) => `${node.name}: ${node.lastWords().slice(-1500)}`).join("\n")}`,
    );
  } finally {
    await rig.stop();
  }
}

// Many clients with idempotency keys on three nodes, which are killed one time in four; and then the judge.

import { chanceOf } from "./chance.ts";
import { judge } from "./judge.ts";
import { goneWords, repeatRound } from "./repeat-client.ts";
import { chargesOf, objectionsTo, type Round } from "./repeat-judge.ts";
import { type Node, type Rig, startRig } from "./rig.ts";
import { roundKeys } from "./round-keys.ts";

export type LogPlace = "Redis" | "the database";

export interface RepeatRun {
  seed: number;
  place: LogPlace;
  rounds: number;
  /** Rounds whose node was killed. */
  killed: number;
  /** One kill may be that of several rounds. */
  kills: number;
  answers: number;
  /** Answers that repeated an earlier one. */
  replays: number;
  /** Those that ended in the failure of a node that is gone. */
  failures: number;
  /** Those that ended in the failure of a node that lost its lease. */
  brokenOff: number;
  records: number;
  recovered: number;
  /** Sentences; empty when every promise was kept. */
  broken: string[];
  took_ms: number;
}

export async function repeatRun(options: {
  seed: number;
  rounds: number;
  clients: number;
  place: LogPlace;
}): Promise<RepeatRun> {
  const began_ms = performance.now();
  const { seed, place } = options;
  const rig = await startRig({
    nodes: 3,
    plan: "{}",
    requests_max: 1_000_000,
    isWithoutRedis: place === "the database",
  });
  try {
    const killer = killerOf(rig);
    const made = await roundKeys(rig, "faults-0", options.rounds);
    const rounds: Round[] = [];
    const worker = async () => {
      for (let one = made.shift(); one; one = made.shift()) {
        const number = options.rounds - made.length;
        const client = await repeatRound({
          ...{ nodes: rig.nodes, key: one.key, kill: killer.kill },
          marker: `m${number.toString(36).padStart(6, "0")}`,
          chance: chanceOf(seed + number),
        });
        rounds.push({ client, keyId: one.id });
      }
    };
    await Promise.all(Array.from({ length: options.clients }, worker));
    await killer.end();
    const { broken } = await judge(rig, [], { planChanges: [], forgotten: [] });
    const charges = await chargesOf(rig);
    for (const { client, keyId } of rounds) broken.push(...objectionsTo(client, charges.get(keyId) ?? []));
    const answers = rounds.flatMap(({ client }) => client.answers);
    const records = [...charges.values()].flat();
    return {
      ...{ seed, place, rounds: rounds.length, kills: killer.count(), answers: answers.length, broken },
      killed: rounds.filter(({ client }) => client.isNodeKilled).length,
      brokenOff: answers.filter(({ end }) => end === "broken").length,
      replays: answers.filter(({ replayOf }) => replayOf !== null).length,
      failures: answers.filter(({ body }) => body.includes(goneWords)).length,
      records: records.length,
      recovered: records.filter(({ recovered }) => recovered).length,
      took_ms: performance.now() - began_ms,
    };
  } catch (failure) {
    throw new Error(
      `${failure instanceof Error ? failure.message : failure}\n${rig.nodes.map((node) => `${node.name}: ${node.lastWords().slice(-1500)}`).join("\n")}`,
    );
  } finally {
    await rig.stop();
  }
}

/** Kills nodes while one is left, and starts each again. */
function killerOf({ nodes }: Rig) {
  let kills = 0;
  const starting = new Set<Promise<void>>();
  return {
    count: () => kills,
    async kill(node: Node): Promise<void> {
      while (node.running && nodes.filter(({ running }) => running).length < 2) await Bun.sleep(20);
      if (!node.running) return;
      kills += 1;
      await node.kill();
      const started = node.start().finally(() => starting.delete(started));
      starting.add(started);
    },
    end: async () => void (await Promise.all(starting)),
  };
}

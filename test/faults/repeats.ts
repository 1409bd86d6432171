// Runs many clients with idempotency keys on three nodes, which are killed or frozen, sometimes for longer than their
// lease. Then repeat-judge.ts checks what the clients got.

import { type Chance, chanceOf } from "./chance.ts";
import { explained } from "./explained.ts";
import type { Spell } from "./injector.ts";
import { judge } from "./judge.ts";
import { goneWords, type Harm, repeatRound } from "./repeat-client.ts";
import { chargesOf, objectionsTo, type Round } from "./repeat-judge.ts";
import { lease_s, type Node, type Rig, withRig } from "./rig.ts";
import { roundKeys } from "./round-keys.ts";

export type LogPlace = "Redis" | "the database";

export interface RepeatRun {
  seed: number;
  place: LogPlace;
  rounds: number;
  /** The number of rounds whose node was killed. */
  killed: number;
  /** The number of rounds whose node was frozen. */
  frozen: number;
  /** The number of kills, each of which may harm several rounds. */
  kills: number;
  /** The number of freezes, each of which may harm several rounds. */
  freezes: number;
  answers: number;
  /** Responses that repeated an earlier one. */
  replays: number;
  /** Responses that ended with the error of a node that is gone. */
  failures: number;
  /** Responses that ended with the error of a node that lost its lease. */
  brokenOff: number;
  records: number;
  recovered: number;
  /** The objections: one sentence for each broken rule; empty if every rule was kept. */
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
  const isWithoutRedis = place === "the database";
  return withRig({ nodes: 3, plan: "{}", requests_max: 1_000_000, isWithoutRedis }, async (rig) => {
    const harmer = harmerOf(rig, chanceOf(seed - 1));
    const made = await roundKeys(rig, "faults-0", options.rounds);
    const rounds: Round[] = [];
    const worker = async () => {
      for (let one = made.shift(); one; one = made.shift()) {
        const number = options.rounds - made.length;
        const client = await repeatRound({
          ...{ nodes: rig.nodes, key: one.key, harm: harmer.harm },
          marker: `m${number.toString(36).padStart(6, "0")}`,
          chance: chanceOf(seed + number),
        });
        rounds.push({ client, keyId: one.id });
      }
    };
    await Promise.all(Array.from({ length: options.clients }, worker));
    await harmer.end();
    const { broken } = await judge(rig, [], { planChanges: [], forgotten: [] });
    const charges = await chargesOf(rig);
    for (const { client, keyId } of rounds) {
      const charged = charges.get(keyId) ?? [];
      const ids = client.answers.flatMap(({ requestId, replayOf }) => [requestId, replayOf ?? ""]);
      const happened = { ids, charged, client, spells: harmer.spells };
      broken.push(...explained(objectionsTo(client, charged), rig, happened));
    }
    const answers = rounds.flatMap(({ client }) => client.answers);
    const records = [...charges.values()].flat();
    return {
      ...{ seed, place, rounds: rounds.length, ...harmer.counts, answers: answers.length, broken },
      killed: rounds.filter(({ client }) => client.harm === "killed").length,
      frozen: rounds.filter(({ client }) => client.harm === "frozen").length,
      brokenOff: answers.filter(({ end }) => end === "broken").length,
      replays: answers.filter(({ replayOf }) => replayOf !== null).length,
      failures: answers.filter(({ body }) => body.includes(goneWords)).length,
      records: records.length,
      recovered: records.filter(({ recovered }) => recovered).length,
      took_ms: performance.now() - began_ms,
    };
  });
}

/** The longest freeze. Freezes last up to three leases, so a third of them are shorter than one. */
const freeze_ms_max = 3 * 1000 * lease_s;

/** Kills and freezes a node if another one is running, and restores it. */
function harmerOf({ nodes }: Rig, chance: Chance) {
  const counts = { kills: 0, freezes: 0 };
  const returning = new Set<Promise<void>>();
  const spells: Spell[] = [];
  const isUp = ({ running, frozen }: Node) => running && !frozen;
  const back = (harm: string, work: Promise<void>) => {
    const spell = { breaks: [harm], from_ms: Date.now(), to_ms: Number.POSITIVE_INFINITY };
    spells.push(spell);
    const returned = work.finally(() => {
      spell.to_ms = Date.now();
      returning.delete(returned);
    });
    returning.add(returned);
  };
  return {
    counts,
    spells,
    async harm(node: Node, how: Harm): Promise<void> {
      while (isUp(node) && nodes.filter(isUp).length < 2) await Bun.sleep(20);
      if (!isUp(node)) return;
      if (how === "killed") {
        counts.kills += 1;
        await node.kill();
        back(`kill ${node.name}`, node.start());
      } else {
        counts.freezes += 1;
        node.freeze();
        back(
          `freeze ${node.name}`,
          Bun.sleep(chance.below(freeze_ms_max)).then(() => node.thaw()),
        );
      }
    },
    end: async () => void (await Promise.all(returning)),
  };
}

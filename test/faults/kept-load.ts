// Clients whose responses are stored so that they can be read again; they run beside the other clients of the fault
// test. Some send idempotency keys, and a part of these never repeats a request; others start background responses.
// Each round of requests has an API key of its own, so that its records can be found by the key.

import { idOf } from "../../src/core/store/ids.ts";
import { type BackgroundClient, backgroundRound, lookAgain } from "./background-client.ts";
import { objectionsToBackground } from "./background-judge.ts";
import { type Chance, chanceOf } from "./chance.ts";
import { after_ms, explained } from "./explained.ts";
import type { Spell } from "./injector.ts";
import { type Client, goneWords, repeatRound } from "./repeat-client.ts";
import { type Befallen, chargesOf, objectionsTo } from "./repeat-judge.ts";
import type { Rig } from "./rig.ts";
import { type RoundKey, roundKeys } from "./round-keys.ts";

export interface KeptLoad {
  /** Starts no more rounds, and resolves when every client has finished its current round. */
  stop(): Promise<void>;
  judged(happened: { spells: readonly Spell[]; forgotten: readonly Span[] }): Promise<KeptVerdict>;
}

interface Span {
  from_ms: number;
  to_ms: number;
}

export interface KeptVerdict {
  /**
   * The numbers of rounds by kind: clients that repeat their request until they have the response, clients that never
   * do, and background responses.
   */
  repeated: number;
  left: number;
  background: number;
  replays: number;
  /** Responses that failed because their node was gone. */
  failures: number;
  /** Responses that were refused for good because their stored log was lost. */
  lost: number;
  broken: string[];
}

export interface KeptLoadOptions {
  rig: Rig;
  organization: string;
  clients: number;
  rounds_max: number;
  chance: Chance;
}

export async function startKeptLoad(options: KeptLoadOptions): Promise<KeptLoad> {
  const { rig, chance } = options;
  const keys = await roundKeys(rig, options.organization, options.rounds_max);
  const repeated: { one: RoundKey; client: Client; leaves: boolean }[] = [];
  const background: { one: RoundKey; client: BackgroundClient }[] = [];
  let isGoing = true;

  async function work(): Promise<void> {
    for (let one = keys.shift(); one && isGoing; one = keys.shift()) {
      const kind = chance.next();
      const marker = `k${keys.length.toString(36).padStart(6, "0")}`;
      const round = { nodes: rig.nodes, key: one.key, marker, chance: chanceOf(chance.below(2 ** 31)) };
      if (kind < 0.3) background.push({ one, client: await backgroundRound(round) });
      else {
        const leavesForGood = kind < 0.5;
        repeated.push({ one, leaves: leavesForGood, client: await repeatRound({ ...round, leavesForGood }) });
      }
    }
  }

  const workers = Array.from({ length: options.clients }, work);
  return {
    async stop() {
      isGoing = false;
      await Promise.all(workers);
    },
    async judged(happened) {
      for (const { one, client } of background) await lookAgain(rig.nodes, one.key, client);
      const charges = await chargesOf(rig);
      const answers = repeated.flatMap(({ client }) => client.answers);
      const broken = [
        ...repeated.flatMap(({ one, client }) => {
          const charged = charges.get(one.id) ?? [];
          const objections = objectionsTo(client, charged, befallenTo(client, happened));
          const ids = client.answers.flatMap(({ requestId, replayOf }) => [requestId, replayOf ?? ""]);
          return explained(objections, rig, { ids, charged, client, ...happened });
        }),
        ...background.flatMap(({ one, client }) => {
          const charged = charges.get(one.id) ?? [];
          const objections = objectionsToBackground(client, charged, befallenTo(client, happened));
          const ids = [...client.ids, ...charged.map(({ request_id }) => idOf(request_id, "req_"))];
          const texts = client.told.map(({ at_ms, textTokens }) => [at_ms - client.began_ms, textTokens] as const);
          return explained(objections, rig, { ids, charged, client, ...happened, texts });
        }),
      ];
      return {
        repeated: repeated.filter(({ leaves }) => !leaves).length,
        left: repeated.filter(({ leaves }) => leaves).length,
        background: background.length,
        replays: answers.filter(({ replayOf }) => replayOf !== null).length,
        failures: answers.filter(({ body }) => body.includes(goneWords)).length,
        lost: answers.filter(({ end }) => end === "lost").length,
        broken,
      };
    },
  };
}

/** How long outages may delay the settlement of a request whose client has left. */
const settled_ms = 8_000;
/** The targets of faults that may cut a node off for long, or make a store unavailable. */
const harmful = ["postgres", "redis", "node", "connections", "table", "clock"];

function befallenTo(
  { began_ms, ended_ms }: Pick<Client, "began_ms" | "ended_ms">,
  { spells, forgotten }: { spells: readonly Spell[]; forgotten: readonly Span[] },
): Befallen {
  const over_ms = Number.isFinite(ended_ms) ? ended_ms : began_ms + after_ms;
  const meets = ({ from_ms, to_ms }: Span, more_ms: number) =>
    from_ms <= over_ms + more_ms && to_ms >= began_ms - after_ms;
  const isHarmful = ({ breaks }: Spell) => breaks.some((what) => harmful.some((word) => what.includes(word)));
  const isOfRedis = ({ breaks }: Spell) => breaks.some((what) => what.includes("redis"));
  return {
    mayLoseLogs: spells.some((spell) => isOfRedis(spell) && meets(spell, after_ms)),
    mayLose: spells.some((spell) => isHarmful(spell) && meets(spell, after_ms)),
    isForgotten: forgotten.some((span) => meets(span, settled_ms)),
  };
}

// Runs all attacks concurrently, in rounds, until it is killed: `bun test/attacks/mixed.ts` with an ATTACK_TARGET in
// JSON, and ATTACK_ROUND_MS. Each round sends every body once, in the same order, so that rounds can be compared. The
// last part of a round is a rest, in which the other attacks go on, but no large body is sent. It is a separate
// process, so that honest clients in another process do not wait for it. Every two seconds, and when a rest begins or
// ends, it prints the number of responses.

import { allowedBodies } from "./allowed-bodies.ts";
import type { Attack, Target } from "./attack.ts";
import { allIdle } from "./connections.ts";
import { flood } from "./flood.ts";
import { heldBodies } from "./held-bodies.ts";
import { honestBodies } from "./honest-bodies.ts";
import { refusedBodies } from "./refused-bodies.ts";
import { chatWith } from "./talk.ts";

/**
 * All attacks with large bodies. The time to send the largest of them is longer than the time in which the node serves
 * it.
 */
const bodies: readonly Attack[] = [...refusedBodies, ...allowedBodies, ...honestBodies];
const round_ms = Number(process.env.ATTACK_ROUND_MS);
const rest_ms = 45_000;
const mib = 1024 * 1024;

export interface AttackersSay {
  isResting: boolean;
  /** How often each response and each other event occurred. The key is the status or the name of the event. */
  counts: Record<string, number>;
}

type Told = (what: string, count?: number) => void;
type Assault = (target: Target, told: Told) => Promise<void>;

const assaults: Record<string, Assault> = {
  async bodies(target, told) {
    const began = performance.now();
    await Promise.all([allBodies(target, told), allHeld(target, told)]);
    told("resting", 1);
    const left_ms = began + round_ms - performance.now();
    if (left_ms < rest_ms) told("rounds late");
    await Bun.sleep(Math.max(rest_ms, left_ms));
    told("resting", -1);
  },
  async idle({ url, key, model }, told) {
    const wanting = { url, connections: 200, patience_ms: 90_000 };
    const messages = [{ role: "user", content: "hi" }];
    const all = await allIdle(wanting, key, JSON.stringify({ model, stream: true, max_tokens: 600, messages }));
    for (const { opened, closed } of all) {
      told("idle closed", closed);
      told("idle left open", opened - closed);
    }
  },
  async lie(target, told) {
    const response = await chatWith(target, { model: target.lyingModel, stream: true });
    await response.text();
    told(`lie ${response.status}`);
    await Bun.sleep(500);
  },
  async leave(target, told) {
    const response = await chatWith(target, { model: target.model, stream: true });
    await response.body?.getReader().read();
    await response.body?.cancel().catch(() => {});
    told("left");
    await Bun.sleep(200);
  },
};

async function allBodies(target: Target, told: Told): Promise<void> {
  const began = performance.now();
  const every_ms = (round_ms - rest_ms) / bodies.length;
  for (const [index, attack] of bodies.entries()) {
    await Bun.sleep(Math.max(0, began + index * every_ms - performance.now()));
    const { answers } = await attack.run(target);
    for (const answer of answers) told(`body ${answer}`);
  }
}

async function allHeld({ url, pid, key }: Target, told: Told): Promise<void> {
  for (const isChunked of [false, true]) {
    const size = { announced_bytes: 31 * mib, sent_bytes: 4 * mib, chunked: isChunked };
    const { refused } = await heldBodies({ url, pid, key, connections: 40, ...size });
    for (const [code, count] of Object.entries(refused)) told(`held ${code}`, count);
  }
}

async function main(): Promise<void> {
  const target = JSON.parse(process.env.ATTACK_TARGET!) as Target;
  const counts: Record<string, number> = {};
  let isResting = false;
  const say = () => console.log(JSON.stringify({ isResting, counts } satisfies AttackersSay));
  const told: Told = (what, count = 1) => {
    if (what === "resting") {
      isResting = count > 0;
      say();
    } else counts[what] = (counts[what] ?? 0) + count;
  };
  const { answered } = await flood(target.url, 100);
  setInterval(() => {
    for (const [status, count] of answered) counts[`made-up key ${status}`] = count;
    say();
  }, 2000);
  const again = async ([name, assault]: [string, Assault]) => {
    for (;;)
      await assault(target, told).catch((failure) => {
        told(`${name} failed: ${String(failure).slice(0, 80)}`);
        return Bun.sleep(1000);
      });
  };
  await Promise.all(Object.entries(assaults).map(again));
}

await main();

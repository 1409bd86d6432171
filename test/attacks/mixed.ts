// All attacks at once, again and again, until it is killed: `bun test/attacks/mixed.ts` with an ATTACK_TARGET in JSON, and
// ATTACK_ROUND_MS. In each round every body is sent once, in the same order, so that rounds can be compared. A process of
// its own, so that honest clients in another one don't wait for it. Prints what it was answered, when it changes.

import { allowedBodies } from "./allowed-bodies.ts";
import type { Attack, Target } from "./attack.ts";
import { idleAfterStreams, idleConnections, silentConnections, slowloris } from "./connections.ts";
import { flood } from "./flood.ts";
import { heldBodies } from "./held-bodies.ts";
import { honestBodies } from "./honest-bodies.ts";
import { refusedBodies } from "./refused-bodies.ts";
import { chatWith } from "./talk.ts";

/** The largest bodies take the attacker longer to write than the node to answer. */
const bodies: readonly Attack[] = [...refusedBodies, ...allowedBodies, ...honestBodies];
const round_ms = Number(process.env.ATTACK_ROUND_MS);
const mib = 1024 * 1024;

type Told = (what: string, count?: number) => void;
type Assault = (target: Target, told: Told) => Promise<void>;

const assaults: Record<string, Assault> = {
  async bodies(target, told) {
    const began = performance.now();
    for (const [index, attack] of bodies.entries()) {
      await Bun.sleep(Math.max(0, began + (index * round_ms) / bodies.length - performance.now()));
      const { answers } = await attack.run(target);
      for (const answer of answers) told(`body ${answer}`);
    }
    const late_ms = performance.now() - began - round_ms;
    if (late_ms > 0) told("rounds late");
    await Bun.sleep(Math.max(0, -late_ms));
  },
  async held({ url, pid, key }, told) {
    for (const isChunked of [false, true]) {
      const size = { announced_bytes: 31 * mib, sent_bytes: 4 * mib, chunked: isChunked };
      const { refused } = await heldBodies({ url, pid, key, connections: 40, ...size });
      for (const [code, count] of Object.entries(refused)) told(`held ${code}`, count);
      await Bun.sleep(20_000);
    }
  },
  async idle({ url, key, model }, told) {
    const wanting = { url, connections: 200, patience_ms: 90_000 };
    const stream = JSON.stringify({
      model,
      stream: true,
      max_tokens: 600,
      messages: [{ role: "user", content: "hi" }],
    });
    const all = await Promise.all([
      idleConnections(wanting),
      idleConnections(wanting, key),
      idleAfterStreams({ ...wanting, connections: 50 }, key, stream),
      slowloris(wanting),
      silentConnections(wanting),
    ]);
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

async function main(): Promise<void> {
  const target = JSON.parse(process.env.ATTACK_TARGET!) as Target;
  const counts: Record<string, number> = {};
  const told: Told = (what, count = 1) => {
    counts[what] = (counts[what] ?? 0) + count;
  };
  const { answered } = await flood(target.url, 100);
  setInterval(() => {
    for (const [status, count] of answered) counts[`made-up key ${status}`] = count;
    console.log(JSON.stringify(counts));
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

/**
 * A hundred requests at once on three nodes, against room for exactly five: five are admitted, with Redis up, away, and
 * flushed in the middle. `npm run test:deep` asks a thousand, five times.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { times } from "../harness/depth.ts";
import { model, type Rig, startRig } from "./rig.ts";
import { redisSays } from "./stores.ts";

const runs = times(1, 5);
const requests = times(100, 1_000);
const tokens = 10;
/** Slow enough that all five still run when the last request is sent. */
const pace = `tps=${times(4, 2)}`;
/** Each hold is ten tokens of 100 nanos and an input of up to 150: five holds fit, six never. */
const session = 5 * (tokens * 100 + 150);

let rig: Rig;
beforeAll(async () => {
  rig = await startRig({
    nodes: 3,
    plan: `{ session: ${session} }`,
    requests_max: 100_000,
    timeouts: "{ first_part_ms: 60000 }",
  });
}, 120_000);
afterAll(async () => {
  await rig.stop();
}, 60_000);

/** A node that is too busy to ask its stores in time answers 503: it is asked again. */
async function statusOf(key: string, index: number): Promise<number> {
  const node = rig.nodes[index % rig.nodes.length]!;
  for (;;) {
    const response = await fetch(`${node.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model,
        max_tokens: tokens,
        messages: [
          { role: "user", content: `[simulator: ${pace}] hello hello hello hello hello hello hello hello hello hello` },
        ],
      }),
    });
    await response.text();
    if (response.status !== 503) return response.status;
  }
}

async function admittedOf(key: string, inTheMiddle: () => void): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  await Promise.all(
    Array.from({ length: requests }, async (_, index) => {
      if (index === requests / 2) inTheMiddle();
      const status = await statusOf(key, index);
      counts[status] = (counts[status] ?? 0) + 1;
    }),
  );
  return counts;
}

const cases: [string, { before?: () => Promise<void>; middle?: () => void; after?: () => Promise<void> }][] = [
  ["up", {}],
  ["away", { before: () => rig.redis.kill(), after: () => rig.redis.start() }],
  ["flushed in the middle", { middle: () => void redisSays(rig.redis.port, "FLUSHALL").catch(() => {}) }],
];

for (const [name, { before, middle, after }] of cases) {
  test(
    `with Redis ${name}, five are admitted`,
    async () => {
      await before?.();
      for (let run = 0; run < runs; run++) {
        const { key } = await rig.organization();
        const counts = await admittedOf(key, middle ?? (() => {}));
        expect(counts).toEqual({ 200: 5, 429: requests - 5 });
      }
      await after?.();
    },
    60_000 * (runs + 1),
  );
}

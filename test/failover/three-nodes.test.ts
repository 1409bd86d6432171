/**
 * Three nodes on one Postgres and one Redis: when an engine is drained under load, all nodes know it within a second,
 * and no request fails.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Static } from "typebox";
import type { Fleet } from "../../src/admin/management/fleet-shape.ts";
import { SseDecoder } from "../../src/core/sse/decode.ts";
import { busyness } from "../harness/busyness.ts";
import { freePort } from "../harness/daemon.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { redisUrl } from "../harness/services.ts";
import { type Simulator, startSimulator } from "../harness/simulator.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { configOf } from "./config.ts";

setDefaultTimeout(120_000);

type Sum = Static<typeof Fleet>;

const model = "acme/writer";
let database: Awaited<ReturnType<typeof migratedDatabase>>;
let engines: Simulator[];
let nodes: (Sluice & { operator: string })[];
let token: string;

beforeAll(async () => {
  database = await migratedDatabase();
  engines = await Promise.all([startSimulator({ directives: "echo" }), startSimulator({ directives: "echo" })]);
  nodes = [];
  const urls = engines.map(({ port }, at) => [`engine-${at}`, { url: `http://127.0.0.1:${port}/v1` }]);
  for (const at of [0, 1, 2]) {
    const port = await freePort();
    const node = await startSluice({
      store: "pglite",
      config: configOf(
        Object.fromEntries(urls),
        { writer: ["engine-0", "engine-1"] },
        { prices: { input: 0.001, output: 0.1 } },
      ),
      // The first node creates the organization and its key.
      ...(at > 0 ? { dataDir: "unused" } : {}),
      env: { DATABASE_URL: database.url, REDIS_URL: await redisUrl(), SLUICE_OPERATOR_PORT: String(port) },
    });
    nodes.push({ ...node, operator: `http://localhost:${port}/management/v1` });
  }
  token = (await nodes[0]!.json<{ token: string }>("operator", "create", "ann", "--role", "admin")).token;
});
afterAll(async () => {
  for (const node of nodes) await node.stop();
  for (const engine of engines) await engine.stop();
  await database.drop();
});

const manage = (node: (typeof nodes)[number], path: string, init: RequestInit = {}) =>
  fetch(`${node.operator}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  });

/**
 * Reads the event stream of the fleet from a node: the totals that the node has sent so far, with their times, until
 * `leave` is called.
 */
async function followed(node: (typeof nodes)[number]) {
  const reader = (await manage(node, "/fleet?format=events")).body!.getReader();
  const decoder = new SseDecoder();
  const seen: { at_ms: number; sum: Sum }[] = [];
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const { data } of decoder.push(value)) seen.push({ at_ms: performance.now(), sum: JSON.parse(data) });
    }
  })();
  return {
    seen,
    leave: async () => {
      await reader.cancel();
      await reading;
    },
  };
}

test("an engine that is drained under load is drained everywhere within a second, and nothing fails", async () => {
  const watched = await Promise.all(nodes.map(followed));
  const { key } = nodes[0]!;
  const statuses: number[] = [];
  let isOver = false;
  const load = nodes.flatMap((node) =>
    Array.from({ length: 3 }, async () => {
      while (!isOver) {
        const body = {
          model,
          stream: true,
          messages: [{ role: "user", content: `tps=200 tokens=20 ${crypto.randomUUID()}` }],
        };
        const answer = await node.post("/v1/chat/completions", body, { key });
        const isWhole = (await answer.text()).endsWith("data: [DONE]\n\n");
        statuses.push(isWhole ? answer.status : 0);
      }
    }),
  );
  await until(() => engines.every(({ counts }) => counts.requests > 10), 30_000);

  const began_ms = performance.now();
  expect((await manage(nodes[1]!, "/upstreams/engine-0/drain", { method: "POST", body: "{}" })).status).toBe(200);
  const isDrained = ({ sum }: { sum: Sum }) => {
    const states = sum.engines.find(({ upstream }) => upstream === "engine-0")?.states ?? [];
    return states.length === 1 && states[0]!.state === "drained" && states[0]!.routes === 3;
  };
  await until(() => watched.every(({ seen }) => seen.some(isDrained)), 30_000);
  const waits_ms = watched.map(({ seen }) => seen.find(isDrained)!.at_ms - began_ms);
  expect(Math.max(...waits_ms)).toBeLessThan(1_000 * busyness());

  const [before, others] = engines.map(({ counts }) => counts.requests) as [number, number];
  await until(() => engines[1]!.counts.requests > others + 20, 30_000);
  expect(engines[0]!.counts.requests).toBe(before);
  isOver = true;
  await Promise.all(load);
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  await until(() => watched.every(({ seen }) => seen.at(-1)!.sum.output_tokens_per_second > 0));
  for (const { leave } of watched) await leave();
});

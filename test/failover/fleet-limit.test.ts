/**
 * One limit of an engine for three nodes on one Postgres and one Redis: the engine counts its concurrent requests. A
 * node is killed, another is frozen, Redis falls silent, and the limit changes under load.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { busyness } from "../harness/busyness.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { type Service, startRedis } from "../harness/services.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine } from "./engine.ts";

setDefaultTimeout(180_000);

const slots = 32;
const folder = mkdtempSync(join(tmpdir(), "sluice-fleet-limit-"));
let database: Awaited<ReturnType<typeof migratedDatabase>>;
let redis: Service;
let redisPid: number;
let engine: Engine;
let nodes: Sluice[];
let key: string;

const cheap = { input: 0.001, output: 0.001 };
const file = join(folder, "sluice.yaml");
const configure = (limit: object) => {
  const upstream = { url: engine.url, queue: { wait_ms_max: 3_600_000 }, ...limit };
  writeFileSync(file, configOf({ engine: upstream }, { writer: ["engine"] }, { prices: cheap }));
};

async function startNode(at: number): Promise<Sluice> {
  return startSluice({
    store: "pglite",
    ...(at > 0 ? { dataDir: join(folder, `${at}`) } : {}),
    env: { DATABASE_URL: database.url, REDIS_URL: redis.url, SLUICE_CONFIG: file },
  });
}

beforeAll(async () => {
  database = await migratedDatabase();
  redis = await startRedis();
  const client = new Redis(redis.url);
  redisPid = Number(/process_id:(\d+)/.exec(await client.info("server"))![1]);
  client.disconnect();
  engine = startEngine();
  configure({ concurrent_max: slots, scope: "fleet" });
  nodes = [];
  for (const at of [0, 1, 2]) nodes.push(await startNode(at));
  await nodes[0]!.json("org", "create", "noisy", "--plan", "unlimited");
  key = (await nodes[0]!.json<{ key: string }>("key", "create", "--org", "noisy", "--name", "noisy")).key;
}, 120_000);
afterAll(async () => {
  process.kill(redisPid, "SIGCONT");
  for (const node of nodes) await node.stop();
  await redis.stop();
  await engine.stop();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => void process.kill(redisPid, "SIGCONT"));
beforeEach(() => {
  engine.delay_ms = 400;
  engine.most = 0;
});

/**
 * Clients of each node that send one request after the other until `over` is called. Failed requests of a killed node
 * don't count.
 */
function load(callers = 24) {
  let isOver = false;
  const failed: string[] = [];
  const alive = new Set(nodes);
  const all = nodes.flatMap((node) =>
    Array.from({ length: callers }, async () => {
      while (!isOver && alive.has(node)) {
        try {
          const answer = await node.post("/v1/chat/completions", bodyOf("chat", "acme/writer", true), { key });
          const text = await answer.text();
          if (!text.endsWith("data: [DONE]\n\n") && alive.has(node)) {
            const [at_s, retry_s] = [performance.now() / 1000, answer.headers.get("retry-after")];
            failed.push(`${at_s.toFixed(3)}: ${answer.status}, again in ${retry_s} s: ${text.slice(-200)}`);
          }
        } catch (thrown) {
          if (alive.has(node)) failed.push(String(thrown));
        }
      }
    }),
  );
  return {
    failed,
    isGone: (node: Sluice) => void alive.delete(node),
    async over() {
      isOver = true;
      await Promise.all(all);
      expect({ count: failed.length, first: failed.slice(0, 5), last: failed.slice(-2) }).toEqual({
        count: 0,
        first: [],
        last: [],
      });
    },
  };
}

async function metric(node: Sluice, name: string): Promise<number> {
  const text = await (await node.fetch("/metrics")).text();
  return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)`, "m").exec(text)?.[1] ?? Number.NaN);
}
/** The most requests that are at the engine at once, while it gets `requests` more of them. */
async function mostOf(requests: number): Promise<number> {
  const before = engine.asked.length;
  engine.most = engine.inFlight;
  await until(() => engine.asked.length >= before + requests, 30_000, "the engine to go on");
  return engine.most;
}
const isFull = () => engine.inFlight === slots;

/** Whether each node has its even share. Without Redis, a node never holds more slots than it had. */
const areEven = async () =>
  (await Promise.all(nodes.map((node) => metric(node, "upstream_slots")))).every((held) => held >= 10);

test("three nodes use the whole limit together and never more; a killed one's slots are back within 5 s", async () => {
  const asking = load();
  await until(isFull, 15_000, "the engine to be full");
  await until(areEven, 15_000, "each to have its share");
  const killed = nodes.pop()!;
  asking.isGone(killed);
  killed.signal("SIGKILL");
  const killed_ms = performance.now();
  await killed.exited;
  await until(() => engine.inFlight < slots, 5_000, "the engine to notice");
  await until(isFull, 15_000, "the others to have all");
  expect(performance.now() - killed_ms).toBeLessThan(5_000 * busyness());
  expect(engine.most).toBe(slots);
  await asking.over();
  nodes.push(await startNode(3));
});

test("a node that was frozen past its lease begins nothing on its return before Redis has answered", async () => {
  const asking = load();
  await until(isFull, 15_000, "the engine to be full");
  const [, frozen] = nodes as [Sluice, Sluice];
  frozen.signal("SIGSTOP");
  await until(() => engine.inFlight <= slots - 8, 5_000, "its requests to end");
  await until(isFull, 15_000, "the others to have all");
  frozen.signal("SIGCONT");
  // The node had some ten slots, and may have been about to send one or two requests.
  expect(await mostOf(slots)).toBeLessThanOrEqual(slots + 2);
  await until(() => engine.inFlight <= slots, 5_000, "what it was about to send to end");
  expect(await mostOf(3 * slots)).toBeLessThanOrEqual(slots);
  await until(isFull, 15_000, "the engine to be full again");
  await asking.over();
});

const areApart = async (wanted: number) =>
  (await Promise.all(nodes.map((node) => metric(node, "upstream_slots_apart")))).every((apart) => apart === wanted);

/**
 * Stops Redis while the shares are even. If a share shifts just then, it tries again, since a node without Redis keeps
 * no more than it had.
 */
async function silenceRedis(): Promise<void> {
  for (let tries = 1; tries <= 5; tries++) {
    await until(areEven, 15_000, "each to have its share");
    process.kill(redisPid, "SIGSTOP");
    await until(() => areApart(1), 15_000, "the nodes to notice");
    if (await areEven()) return;
    process.kill(redisPid, "SIGCONT");
    await until(() => areApart(0), 15_000, "the nodes to share again");
  }
  throw new Error("the nodes never kept their even shares");
}

test("while Redis is silent each node keeps its even share, and the metric says so; then they share again", async () => {
  const asking = load();
  // Idle nodes have even shares too, but these shift while the load begins. So the test waits until the engine is full.
  await until(isFull, 15_000, "the engine to be full");
  await silenceRedis();
  await until(async () => (await mostOf(slots)) === 30, 15_000, "each to have ten");
  expect(await mostOf(3 * slots)).toBeLessThanOrEqual(30);
  process.kill(redisPid, "SIGCONT");
  await until(() => areApart(0), 15_000, "the nodes to share again");
  await until(isFull, 15_000, "the engine to be full again");
  expect(engine.most).toBe(slots);
  await asking.over();
});

test("a reload changes limit and scope under load: what runs ends, and the new limit holds", async () => {
  const asking = load();
  await until(isFull, 15_000, "the engine to be full");
  const reload = (limit: object) => {
    configure(limit);
    for (const node of nodes) node.signal("SIGHUP");
  };
  reload({ concurrent_max: 9, scope: "fleet" });
  await until(async () => (await mostOf(slots)) === 9, 15_000, "the engine to have nine");
  reload({ concurrent_max: 9 });
  await until(async () => (await mostOf(slots)) === 27, 15_000, "each node to have nine");
  reload({ concurrent_max: 12, scope: "fleet" });
  const held = async () =>
    (await Promise.all(nodes.map((node) => metric(node, "upstream_slots")))).reduce((sum, one) => sum + one);
  await until(async () => (await held()) <= 12 && engine.inFlight <= 12, 15_000, "the nodes to share twelve");
  expect(await mostOf(3 * slots)).toBeLessThanOrEqual(12);
  await until(() => engine.inFlight === 12, 15_000, "the engine to have twelve");
  await asking.over();
});

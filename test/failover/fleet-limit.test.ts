/**
 * One limit on an engine's concurrent requests for three nodes on one Postgres and one Redis. The engine counts its
 * concurrent requests while a node is killed, and while the limit changes under load.
 */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
  engine = startEngine();
  configure({ concurrent_max: slots, scope: "fleet" });
  nodes = [];
  for (const at of [0, 1, 2]) nodes.push(await startNode(at));
  await nodes[0]!.json("org", "create", "noisy", "--plan", "unlimited");
  key = (await nodes[0]!.json<{ key: string }>("key", "create", "--org", "noisy", "--name", "noisy")).key;
}, 120_000);
afterAll(async () => {
  for (const node of nodes) await node.stop();
  await redis.stop();
  await engine.stop();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  engine.delay_ms = 400;
  engine.most = 0;
});

/**
 * Clients of each node that send one request after another until `over` is called. Failed requests to a killed node are
 * ignored.
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
/** The largest number of concurrent requests at the engine during its next `requests` requests. */
async function mostOf(requests: number): Promise<number> {
  const before = engine.asked.length;
  engine.most = engine.inFlight;
  await until(() => engine.asked.length >= before + requests, 30_000, "the engine to go on");
  return engine.most;
}
const isFull = () => engine.inFlight === slots;

/**
 * Whether each node has its even share of the slots, because without Redis a node cannot get more slots than it already
 * has.
 */
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

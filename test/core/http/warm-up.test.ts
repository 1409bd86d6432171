/**
 * Warming up: a node sends itself requests before it is ready, or while it is idle, and they leave no trace anywhere.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { RedisClient } from "bun";
import postgres from "postgres";
import { startWorkers } from "../../features/workers/node.ts";
import { model, says, startService } from "../../harness/engine.ts";
import { type Logging, lineOf, linesOf } from "../../harness/log-lines.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { startRedis } from "../../harness/services.ts";
import { program, type Sluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

/** Enough time to warm up on a machine that is busy with other work. */
const long = { SLUICE_WARM_UP_MS: "30000" };
const none = { SLUICE_WARM_UP_MS: "0" };

const said = (service: Logging, event: string) => lineOf(service, { event });

async function asked<Row extends object>(url: string, text: string): Promise<Row[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return (await sql.unsafe(text)) as unknown as Row[];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** The number of rows of each table, except for the tables that record when upkeep last looked. */
async function rowsIn(url: string): Promise<Record<string, number>> {
  const tables = await asked<{ name: string }>(
    url,
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1",
  );
  const written = tables.filter(({ name }) => !/^usage_(audit|timeline|rolled)$/.test(name));
  const counts = written.map(({ name }) => `select '${name}' as name, count(*)::int as count from ${name}`);
  const rows = await asked<{ name: string; count: number }>(url, counts.join(" union all "));
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

const workerThreads = (pid: number) =>
  readdirSync(`/proc/${pid}/task`).filter(
    (thread) => readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim() === "Worker",
  ).length;

/** The metrics' samples that count requests, runs, grants, engines and keys, without those that are zero. */
async function countedBy(service: Sluice): Promise<string[]> {
  const text = await (await service.fetch("/metrics", { key: null })).text();
  const lines = text.split("\n").filter((line) => !line.startsWith("#") && !/ (0|Nan)$/.test(line));
  // The samples of the runtime, the machine, its load, the rounds of upkeep and scraping differ from node to node.
  const counted = /^(http_|inference_|usage_|upstream_|authentication_)/;
  const upkeep = /^(usage_(partitions_ahead|ledger_mismatch|seals_behind)|upstream_read_pause_seconds)/;
  return lines.filter((line) => counted.test(line) && !upkeep.test(line) && !line.includes('"/metrics"'));
}

describe("on Postgres and Redis", async () => {
  const redis = await startRedis();
  afterAll(() => redis.stop());

  /**
   * Starts a node, and returns the traces of its start in the database, in the metrics, at the engine and in the log.
   */
  async function left(env: Record<string, string>) {
    const database = await migratedDatabase();
    const spans: string[] = [];
    const collector = Bun.serve({
      port: 0,
      fetch(request) {
        spans.push(new URL(request.url).pathname);
        return Response.json({});
      },
    });
    const more = `telemetry: { endpoint: "http://127.0.0.1:${collector.port}", sample_ratio: 1, metrics_ms: 0 }`;
    const stores = { DATABASE_URL: database.url, REDIS_URL: redis.url };
    const service = await startService({ more, sluice: { store: "pglite", env: { ...stores, ...env } } });
    const found = {
      rows: await rowsIn(database.url),
      metrics: await countedBy(service),
      ready: (await service.fetch("/readyz", { key: null })).status,
      requests: service.engine.requests.length,
      warmed: env === none ? null : await said(service, "warmed_up"),
      events: linesOf(service)
        .map(({ event }) => event)
        .filter((event) => event !== "warmed_up"),
    };
    await service.stop();
    await collector.stop(true);
    await database.drop();
    return { ...found, spans };
  }

  test("a node is ready when it is warm, and there is no trace of it in books, metrics, log, Redis, traces or at engines", async () => {
    const client = new RedisClient(redis.url);
    const keys = async () =>
      ((await client.send("KEYS", ["*"])) as string[]).filter((key) => !key.includes("receipts"));
    const cold = await left(none);
    const warm = await left(long);
    expect(warm.warmed!.requests).toBeGreaterThan(500);
    expect(warm.warmed!.ms).toBeGreaterThan(0);
    const { warmed: _, ...trace } = warm;
    const { warmed: __, ...nothing } = cold;
    expect(trace).toEqual(nothing);
    expect(trace.spans).toEqual([]);
    expect(await keys()).toEqual([]);
    client.close();
  }, 120_000);

  test("a port that is taken is an error before the warm-up", async () => {
    const database = await migratedDatabase();
    const other = createServer();
    const port = await new Promise<number>((resolve) =>
      other.listen(0, "127.0.0.1", () => resolve((other.address() as { port: number }).port)),
    );
    const child = Bun.spawn([...program, "serve"], {
      env: { PATH: process.env.PATH ?? "", DATABASE_URL: database.url, PORT: `${port}`, SLUICE_WARM_UP_MS: "60000" },
      ...{ stdout: "pipe", stderr: "pipe" },
    });
    expect(await child.exited).toBe(1);
    expect(await child.stderr.text()).not.toContain("warmed_up");
    other.close();
    await database.drop();
  }, 60_000);

  test("each worker is warm before it accepts connections", async () => {
    const node = await startWorkers({ env: { ...long, REDIS_URL: redis.url } });
    for (const worker of [1, 2]) {
      const timeOf = (event: string) =>
        linesOf(node).find((line) => line.worker === worker && line.event === event)?.time;
      const events = ["warmed_up", "worker_serving"];
      await until(() => events.every((event) => timeOf(event) !== undefined), 5000, "the lines of a worker");
      expect(timeOf("warmed_up")! <= timeOf("worker_serving")!).toBe(true);
    }
    await node.stop();
  }, 120_000);
});

describe("on the embedded database", () => {
  test("a node serves at once, warms up when it is idle, and there is no trace of it", async () => {
    const service = await startService({ sluice: { store: "pglite", env: long } });
    expect(linesOf(service).map(({ event }) => event)).not.toContain("warmed_up");
    // Requests that come while the node warms up are answered as usual.
    const whole = await service.post("/v1/chat/completions", { model, messages: says("", "hello") });
    expect(whole.status).toBe(200);
    await whole.json();
    const isSettled = async () => (await countedBy(service)).some((line) => line.startsWith("usage_cost_total"));
    await until(isSettled, 10_000, "the request to be settled");
    const before = await countedBy(service);
    expect((await said(service, "warmed_up")).requests).toBeWithin(100, 120);
    // The one worker is the database's. Threads for counting tokens would have loaded their vocabularies needlessly.
    expect(workerThreads(service.pid)).toBe(1);
    expect(await countedBy(service)).toEqual(before);
    expect(service.engine.requests).toHaveLength(1);
    expect(linesOf(service, "request")).toHaveLength(1);
    expect(await service.json<object[]>("org", "list")).toHaveLength(1);
    await service.stop();
  }, 120_000);
});

/** A node's metrics about successful and failed requests, on each database. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { freePort } from "../../harness/daemon.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { redisUrl } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const chat = "/v1/chat/completions";
const asking = (directives: string, more: object = {}) => ({
  model: "openai/gpt-oss-120b",
  messages: [{ role: "user", content: `Say it. [simulator: ${directives}]` }],
  ...more,
});

/** Helpers for tests of one node: they send requests to its simulator, and read its metrics. */
function measured(service: () => Sluice, metrics: () => Promise<string>) {
  const readingOf = async (series: string) => {
    const line = (await metrics()).split("\n").find((line) => line.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1) ?? 0);
  };
  return {
    ask: (directives: string, more: object = {}) => service().post(chat, asking(directives, more)),
    readingOf,
    counts: (series: string, least: number) =>
      until(async () => (await readingOf(series)) >= least, 5_000, `${series} to be ${least}`),
    matches: (line: RegExp) => until(async () => line.test(await metrics()), 20_000, `a line like ${line}`),
  };
}

const requests = (status: number, code: string) =>
  `http_requests_total{route="${chat}",status="${status}",code="${code}"}`;

describe("on the port of the API", () => {
  let service: Sluice;
  beforeAll(async () => {
    service = await startSluice({ config: "metrics: { organizations_max: 5 }\n" });
  });
  afterAll(() => service?.stop());
  const metrics = async () => (await service.fetch("/metrics", { key: null })).text();
  const { ask, readingOf, counts, matches } = measured(() => service, metrics);

  test("each request counts as what it ended with: a 503 by its code, a stream that failed not as a 200", async () => {
    expect((await ask("tokens=12")).status).toBe(200);
    await (await ask("tokens=12 tps=20", { stream: true })).text();
    expect((await ask("status=503")).status).toBe(503);
    const broken = await ask("tokens=12 tps=100 cut-after=5", { stream: true });
    expect(broken.status).toBe(200);
    await broken.text();
    await counts(requests(200, ""), 2);
    await counts(requests(503, "overloaded"), 1);
    await counts(requests(503, "upstream_unavailable"), 1);
    expect(await readingOf(requests(200, ""))).toBe(2);
    const model = 'model="openai/gpt-oss-120b"';
    const failed = `inference_requests_total{operation="chat.completions",${model},outcome="failed",code="upstream_unavailable"}`;
    await counts(failed, 1);
    expect(await readingOf(`inference_time_per_output_token_seconds_count{${model}}`)).toBe(1);
    const perToken_s = await readingOf(`inference_time_per_output_token_seconds_sum{${model}}`);
    // The engine generates 20 tokens a second, so a token takes 50 ms; the bounds leave room for a busy machine.
    expect(perToken_s).toBeGreaterThan(0.02);
    expect(perToken_s).toBeLessThan(0.2);
    expect(await readingOf(`inference_duration_seconds_count{${model}}`)).toBe(4);

    const leaving = new AbortController();
    const streamed = asking("tokens=5 tps=100 stall-after=3", { stream: true });
    const stalled = await service.post(chat, streamed, { signal: leaving.signal });
    await counts("http_open_streams", 1);
    leaving.abort();
    await stalled.text().catch(() => {});
    await counts(requests(499, ""), 1);
  });

  test("neither engines nor organizations are named", async () => {
    await matches(/^upstream_attempts_total\{.*outcome="answered"\} [1-9]/m);
    await matches(/^usage_cost_total\{class="charged"\} (?!0$)[\d.e-]+$/m);
    const text = await metrics();
    expect([...new Set([...text.matchAll(/upstream="([^"]*)"/g)].map(([, name]) => name))]).toEqual([""]);
    expect(text).not.toMatch(/organization="/);
  });
});

const lockWait = "admission_batch_lock_wait_seconds";

describe("on the operator's port", () => {
  let database: Awaited<ReturnType<typeof migratedDatabase>>;
  let db: Database;
  let service: Sluice;
  let url: string;
  beforeAll(async () => {
    database = await migratedDatabase();
    db = await serverDatabase(database.url);
    const port = await freePort();
    url = `http://127.0.0.1:${port}/metrics`;
    service = await startSluice({
      store: "pglite",
      config: "metrics: { organizations_max: 1 }\n",
      env: { DATABASE_URL: database.url, SLUICE_OPERATOR_PORT: String(port), REDIS_URL: await redisUrl() },
    });
  });
  afterAll(async () => {
    await db?.close();
    await service?.stop();
    await database?.drop();
  });
  const metrics = async () => (await fetch(url)).text();
  const { ask, readingOf, counts, matches } = measured(() => service, metrics);

  test("stores, admission, process and the largest organizations, for the operator alone", async () => {
    await (await ask("tokens=5")).text();
    await matches(/usage_organization_requests\{organization="(?!other")/);
    // A node that has just started sends the database many queries, so this waits until a connection is idle.
    let text = "";
    const hasIdle = async () => {
      text = await metrics();
      return /^store_connections\{store="postgres",state="idle"\} [1-9]/m.test(text);
    };
    await until(hasIdle, 20_000, "an idle connection");
    await matches(/^usage_subjects_near_limit\{subject="team",percent="80"\} 0$/m);
    for (const series of [
      'store_statement_duration_seconds_count\\{store="postgres"\\}',
      'store_connections_opened_total\\{store="postgres"\\}',
      'store_connections_opened_total\\{store="redis"\\}',
      'admission_grant_wait_seconds_count\\{answer="granted"\\}',
      "admission_batch_commands_count",
      'process_memory_bytes\\{kind="heap_used"\\}',
      ...["process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"],
      'usage_organization_cost\\{organization="(?!other")[^"]+"\\}',
    ])
      expect(text).toMatch(new RegExp(`^${series} (?!0$)[\\d.e-]+$`, "m"));
    expect(text).toMatch(/^usage_organization_cost\{organization="other"\} 0$/m);
    const open = await fetch(url, {
      headers: { accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5" },
    });
    expect(open.headers.get("content-type")).toStartWith("application/openmetrics-text");
    expect(await open.text()).toEndWith("# EOF\n");
  });

  test("a batch tells how long it waited for the locks of its organizations", async () => {
    await (await ask("tokens=5")).text();
    await counts(`${lockWait}_count`, 2);
    const waits = async () =>
      (await readingOf(`${lockWait}_count`)) - (await readingOf(`${lockWait}_bucket{le="0.25"}`));
    const before = await waits();
    let answered: Promise<Response> | null = null;
    await db.transaction(async (holder) => {
      await holder.query("select usage_lock(array(select id from organization))");
      answered = ask("tokens=5");
      const hasWaited = async () => (await db.query(waiters)).length > 0;
      await until(hasWaited, 5_000, "a batch to have waited for 300 ms");
    });
    expect((await answered!).status).toBe(200);
    await until(async () => (await waits()) > before, 5_000, "the wait to be told");
    const seconds = await readingOf(`${lockWait}_sum`);
    expect(seconds).toBeGreaterThan(0.3);
    // A batch that waits longer fails.
    expect(seconds).toBeLessThan(5);
  });
});

const waiters = `
  select from pg_locks where locktype = 'advisory' and not granted and waitstart < clock_timestamp() - interval '300 ms'
  and database = (select oid from pg_database where datname = current_database())`;

test("in the embedded database nobody waits for locks, and each batch says so", async () => {
  const service = await startSluice({ store: "pglite" });
  const metrics = async () => (await service.fetch("/metrics")).text();
  const { ask, counts } = measured(() => service, metrics);
  try {
    await (await ask("tokens=5")).text();
    // The batches of the request's admission and of its settlement, neither of which waited.
    await counts(`${lockWait}_bucket{le="0.1"}`, 2);
  } finally {
    await service.stop();
  }
});

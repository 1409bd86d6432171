/** What a node's metrics say of requests that went well and of those that failed, on each database. */
import { expect, test } from "bun:test";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { freePort } from "../../harness/daemon.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { redisUrl } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

const chat = "/v1/chat/completions";
const body = (directives: string) => ({
  model: "openai/gpt-oss-120b",
  messages: [{ role: "user", content: `Say it. [simulator: ${directives}]` }],
});
const streamed = (directives: string) => ({ ...body(directives), stream: true });
const ask = (service: Sluice, directives: string, more: object = {}) =>
  service.post(chat, { ...body(directives), ...more });

async function readingOf(service: Sluice, series: string): Promise<number> {
  const text = await (await service.fetch("/metrics")).text();
  const line = text.split("\n").find((line) => line.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

const requests = (status: number, code: string) =>
  `http_requests_total{route="${chat}",status="${status}",code="${code}"}`;

test("each request counts as what it ended with: a 503 by its code, a stream that failed not as a 200", async () => {
  const service = await startSluice();
  try {
    const counts = (series: string, least: number) =>
      until(async () => (await readingOf(service, series)) >= least, 5_000, `${series} to be ${least}`);
    expect((await ask(service, "tokens=12")).status).toBe(200);
    await (await ask(service, "tokens=12 tps=20", { stream: true })).text();
    expect((await ask(service, "status=503")).status).toBe(503);
    const broken = await ask(service, "tokens=12 tps=100 cut-after=5", { stream: true });
    expect(broken.status).toBe(200);
    await broken.text();
    await counts(requests(200, ""), 2);
    await counts(requests(503, "overloaded"), 1);
    await counts(requests(503, "upstream_unavailable"), 1);
    expect(await readingOf(service, requests(200, ""))).toBe(2);
    const model = 'model="openai/gpt-oss-120b"';
    const failed = `inference_requests_total{operation="chat.completions",${model},outcome="failed",code="upstream_unavailable"}`;
    await counts(failed, 1);
    expect(await readingOf(service, `inference_time_per_output_token_seconds_count{${model}}`)).toBe(1);
    const perToken_s = await readingOf(service, `inference_time_per_output_token_seconds_sum{${model}}`);
    // The engine generates 20 tokens a second; the machine may be busy.
    expect(perToken_s).toBeGreaterThan(0.02);
    expect(perToken_s).toBeLessThan(0.2);
    expect(await readingOf(service, `inference_duration_seconds_count{${model}}`)).toBe(4);

    const leaving = new AbortController();
    const stalled = await service.post(chat, streamed("tokens=5 tps=100 stall-after=3"), { signal: leaving.signal });
    await counts("http_open_streams", 1);
    leaving.abort();
    await stalled.text().catch(() => {});
    await counts(requests(499, ""), 1);
  } finally {
    await service.stop();
  }
}, 60_000);

test("stores, admission, process and the largest organizations, for the operator alone", async () => {
  const port = await freePort();
  const service = await startSluice({
    store: "postgres",
    config: "metrics: { organizations_max: 1 }\n",
    env: { SLUICE_OPERATOR_PORT: String(port), REDIS_URL: await redisUrl() },
  });
  try {
    const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    await (await ask(service, "tokens=5")).text();
    await until(
      async () => /usage_organization_requests\{organization="(?!other")/.test(await metrics()),
      5_000,
      "usage",
    );
    // A node that has just started sends the database many queries at once, so all its connections may be busy.
    let text = "";
    const hasIdle = async () => {
      text = await metrics();
      return /^store_connections\{store="postgres",state="idle"\} [1-9]/m.test(text);
    };
    await until(hasIdle, 20_000, "an idle connection");
    await until(
      async () => (await metrics()).includes('usage_subjects_near_limit{subject="team",percent="80"} 0'),
      20_000,
      "how near limits are",
    );
    const positive = (series: string) => expect(text).toMatch(new RegExp(`^${series} (?!0$)[\\d.e-]+$`, "m"));
    positive('store_statement_duration_seconds_count\\{store="postgres"\\}');
    positive('store_connections_opened_total\\{store="postgres"\\}');
    positive('store_connections_opened_total\\{store="redis"\\}');
    positive('admission_grant_wait_seconds_count\\{answer="granted"\\}');
    positive("admission_batch_commands_count");
    positive('process_memory_bytes\\{kind="heap_used"\\}');
    for (const name of ["process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"])
      positive(name);
    positive('usage_organization_cost\\{organization="(?!other")[^"]+"\\}');
    expect(text).toMatch(/^usage_organization_cost\{organization="other"\} 0$/m);
    const open = await fetch(`http://127.0.0.1:${port}/metrics`, {
      headers: { accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5" },
    });
    expect(open.headers.get("content-type")).toStartWith("application/openmetrics-text");
    expect(await open.text()).toEndWith("# EOF\n");
  } finally {
    await service.stop();
  }
}, 60_000);

const lockWait = "admission_batch_lock_wait_seconds";

test("a batch tells how long it waited for the locks of its organizations", async () => {
  const database = await migratedDatabase();
  const service = await startSluice({ store: "postgres", env: { DATABASE_URL: database.url } });
  const other = await serverDatabase(database.url);
  try {
    await (await ask(service, "tokens=5")).text();
    await until(async () => (await readingOf(service, `${lockWait}_count`)) >= 2, 5_000, "its settlement to be told");
    const waits = async () =>
      (await readingOf(service, `${lockWait}_count`)) - (await readingOf(service, `${lockWait}_bucket{le="0.25"}`));
    const before = await waits();
    let answered: Promise<Response> | null = null;
    await other.transaction(async (holder) => {
      await holder.query("select usage_lock(array(select id from organization))");
      answered = ask(service, "tokens=5");
      const hasWaited = async () => (await other.query(waiters)).length > 0;
      await until(hasWaited, 5_000, "a batch to have waited for 300 ms");
    });
    expect((await answered!).status).toBe(200);
    await until(async () => (await waits()) > before, 5_000, "the wait to be told");
    const seconds = await readingOf(service, `${lockWait}_sum`);
    expect(seconds).toBeGreaterThan(0.3);
    // A batch that waits longer is given up.
    expect(seconds).toBeLessThan(5);
  } finally {
    await other.close();
    await service.stop();
    await database.drop();
  }
}, 60_000);

const waiters = `
  select from pg_locks where locktype = 'advisory' and not granted and waitstart < clock_timestamp() - interval '300 ms'
  and database = (select oid from pg_database where datname = current_database())`;

test("in the embedded database nobody waits for locks, and each batch says so", async () => {
  const service = await startSluice({ store: "pglite" });
  try {
    await (await ask(service, "tokens=5")).text();
    const short = () => readingOf(service, `${lockWait}_bucket{le="0.1"}`);
    await until(async () => (await short()) >= 2, 5_000, "its admission and its settlement to be told");
  } finally {
    await service.stop();
  }
}, 60_000);

test("on the port of the API neither engines nor organizations are named", async () => {
  const service = await startSluice({ config: "metrics: { organizations_max: 5 }\n" });
  try {
    await (await ask(service, "tokens=5")).text();
    const metrics = async () => (await service.fetch("/metrics", { key: null })).text();
    const counted = async () => /^upstream_attempts_total\{.*outcome="answered"\} [1-9]/m.test(await metrics());
    await until(counted, 5_000, "the attempt to count");
    const settled = async () => /^usage_cost_total\{class="charged"\} (?!0$)[\d.e-]+$/m.test(await metrics());
    await until(settled, 5_000, "the settlement to count");
    const text = await metrics();
    expect([...new Set([...text.matchAll(/upstream="([^"]*)"/g)].map(([, name]) => name))]).toEqual([""]);
    expect(text).not.toMatch(/organization="/);
  } finally {
    await service.stop();
  }
}, 60_000);

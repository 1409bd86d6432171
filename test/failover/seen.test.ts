/** What operators see of engines: each route as it is, each attempt of a request, and nothing of it where clients look. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { freePort } from "../harness/daemon.ts";
import { lineOf } from "../harness/log-lines.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

const [sick, well] = [startEngine(), startEngine()] as [Engine, Engine];
let operator = "";
let sluice: Sluice;

beforeAll(async () => {
  const port = await freePort();
  operator = `http://127.0.0.1:${port}`;
  sluice = await startSluice({
    config: configOf(
      {
        "canary-sick": { url: sick.url, concurrent_max: 1 },
        "canary-well": {
          ...{ url: well.url, concurrent_max: 1 },
          identity_headers: {
            organization: "x-llm-d-inference-fairness-id",
            plan: "x-llm-d-inference-objective",
          },
        },
      },
      { seen: ["canary-sick", { upstream: "canary-well", priority: 1 }] },
    ),
    env: { SLUICE_OPERATOR_PORT: `${port}` },
    secrets: [new URL(sick.url).host, new URL(well.url).host],
  });
}, 60_000);
afterAll(async () => {
  await sluice.stop();
  await Promise.all([sick.stop(), well.stop()]);
});

const asks = async () => seen(await sluice.post("/v1/chat/completions", bodyOf("chat", "acme/seen", true)));
const lineOfRequest = (id: string) => lineOf(sluice, { event: "request", request_id: id });

test("the line of a request names its upstream, and each attempt where one failed", async () => {
  sick.isSick = true;
  const told = await asks();
  expect(told.text).toBe(words);
  const line = await lineOfRequest(told.requestId);
  expect(line).toMatchObject({
    upstream: "canary-well",
    attempts: [
      { upstream: "canary-sick", outcome: "failed", status: 503, ms: expect.any(Number) },
      { upstream: "canary-well", outcome: "answered", ms: expect.any(Number) },
    ],
  });
  const headers = well.asked.at(-1)!.headers;
  expect(headers.get("x-llm-d-inference-fairness-id")).toMatch(/^org_[0-9a-f]{32}$/);
  expect(headers.get("x-llm-d-inference-objective")).toMatch(/^(pro|unlimited)$/);
  expect(sick.asked.at(-1)!.headers.get("x-llm-d-inference-objective")).toBeNull();
  const { route } = await sluice.json<{ route: object }>("request", "show", told.requestId);
  expect(route).toMatchObject({ upstream: "canary-well", attempts: 2, tried: line.attempts! });
  const { stdout } = await sluice.cli("request", "show", told.requestId);
  expect(stdout).toMatch(
    /^attempt 1 +canary-sick, failed \(503\), \d+ ms: overloaded\nattempt 2 +canary-well, answered, \d+ ms$/m,
  );
  sick.isSick = false;
  const plain = await lineOfRequest((await asks()).requestId);
  expect(plain.upstream).toBe("canary-sick");
  expect(plain.attempts).toBeUndefined();
  expect(plain.queued_ms).toBeUndefined();
});

test("`sluice upstream list` shows each route as the server knows it now", async () => {
  const list = () => sluice.json<Record<string, unknown>[]>("upstream", "list");
  const idle = { model: "acme/seen", state: "closed", requests: 0, tokens: 0, waiting: 0 };
  expect(await list()).toEqual([
    { ...idle, upstream: "canary-sick" },
    { ...idle, upstream: "canary-well" },
  ]);
  sick.delay_ms = 8_000;
  well.delay_ms = 8_000;
  const running = [asks(), asks(), asks()];
  const isFull = ({ requests, waiting }: Record<string, unknown>) => requests === 1 && waiting === 1;
  await until(async () => (await list()).every(isFull), 10_000, "both to be full, and the third request to wait");
  expect((await list())[0]!.tokens).toBeGreaterThan(200);
  const inFleet = async () => (await sluice.json<{ engines: Record<string, unknown>[] }>("fleet")).engines;
  await until(async () => (await inFleet())[0]?.requests === 1, 10_000, "the fleet to see the requests");
  expect(await inFleet()).toMatchObject([
    { requests: 1, requests_max: 1 },
    { requests: 1, requests_max: 1 },
  ]);
  const { stdout } = await sluice.cli("upstream", "list");
  expect(stdout).toMatch(/^UPSTREAM +MODEL +STATE/);
  [sick.delay_ms, well.delay_ms] = [20, 20];
  const told = await Promise.all(running);
  const lines = await Promise.all(told.map(({ requestId }) => lineOfRequest(requestId)));
  expect(lines.filter(({ queued_ms = 0 }) => queued_ms > 1_000)).toHaveLength(1);
}, 60_000);

test("clients read no upstream's name; the operator's port has the time to the first part and the tokens of each", async () => {
  const verbose = await (await sluice.fetch("/readyz?verbose")).text();
  expect(verbose).not.toContain("canary");
  const metrics = await (await fetch(`${operator}/metrics`)).text();
  expect(metrics).toMatch(/^upstream_time_to_first_part_seconds_count\{upstream="canary-well"\} [1-9]/m);
  const written = /^upstream_tokens_total\{model="acme\/seen",upstream="canary-well",class="output"\} (\d+)$/m;
  // Each answer has three output tokens.
  expect(Number(written.exec(metrics)?.[1])).toBe(3 * well.asked.length);
  expect(metrics).toMatch(/^upstream_uncharged_tokens_total\{upstream="canary-sick",outcome="failed"\} [1-9]/m);
  expect(metrics).not.toMatch(/^upstream_uncharged_tokens_total\{upstream="canary-well"/m);
  const { code, stderr } = await sluice.cli("upstream", "list", "--url", sluice.url);
  expect(code).toBe(1);
  expect(stderr).toContain("names no routes");
});

/**
 * Information about engines that only operators see: the state of each route, each attempt of a request, and an
 * engine's error message within a failed response. Clients see none of it.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { authority } from "../harness/certificates.ts";
import { freePort } from "../harness/daemon.ts";
import { lineOf } from "../harness/log-lines.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { asks as asksAs, bodyOf, seen } from "./callers.ts";
import { configOf } from "./config.ts";
import { type Engine, startEngine, words } from "./engine.ts";

const [sick, well] = [startEngine(), startEngine()] as [Engine, Engine];
const cuda = "CUDA error: device-side assert triggered";
/** An engine that starts a stream with the status 200, and then sends an error with a reason. */
const breaking = Bun.serve({
  port: 0,
  fetch: async (request) => {
    await request.arrayBuffer();
    const chunk = { choices: [{ index: 0, delta: { role: "assistant", content: "It begins." }, finish_reason: null }] };
    const failure = { error: { message: `${cuda} in "my private words"`, type: "server_error", code: 500 } };
    const text = [chunk, failure].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  },
});
/** An engine whose certificate nobody here trusts. */
const { certificate: cert, key } = authority().issue(["127.0.0.1"]);
const untrusted = Bun.serve({ port: 0, tls: { cert, key }, fetch: () => new Response() });
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
        "canary-untrusted": { url: `https://127.0.0.1:${untrusted.port}/v1` },
        "canary-breaking": { url: `http://127.0.0.1:${breaking.port}/v1` },
      },
      {
        breaking: ["canary-untrusted", { upstream: "canary-breaking", priority: 1 }],
        seen: ["canary-sick", { upstream: "canary-well", priority: 1 }],
      },
    ),
    env: { SLUICE_OPERATOR_PORT: `${port}` },
    secrets: [new URL(sick.url).host, new URL(well.url).host, `127.0.0.1:${untrusted.port}`],
  });
}, 60_000);
afterAll(async () => {
  await sluice.stop();
  await Promise.all([sick.stop(), well.stop(), breaking.stop(true), untrusted.stop(true)]);
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
  const others = ({ upstream }: Record<string, unknown>) =>
    upstream !== "canary-breaking" && upstream !== "canary-untrusted";
  const list = async () => (await sluice.json<Record<string, unknown>[]>("upstream", "list")).filter(others);
  const idle = { model: "acme/seen", state: "closed", requests: 0, tokens: 0, waiting: 0 };
  expect(await list()).toEqual([
    { ...idle, upstream: "canary-sick" },
    { ...idle, upstream: "canary-well" },
  ]);
  [sick.delay_ms, well.delay_ms] = [30_000, 30_000];
  const began_ms = performance.now();
  const running = [asks(), asks(), asks()];
  const isFull = ({ requests, waiting }: Record<string, unknown>) => requests === 1 && waiting === 1;
  await until(async () => (await list()).every(isFull), 10_000, "both to be full, and the third request to wait");
  expect((await list())[0]!.tokens).toBeGreaterThan(200);
  const inFleet = async () =>
    (await sluice.json<{ engines: Record<string, unknown>[] }>("fleet")).engines.filter(others);
  await until(async () => (await inFleet())[0]?.requests === 1, 10_000, "the fleet to see the requests");
  expect(await inFleet()).toMatchObject([
    { requests: 1, requests_max: 1 },
    { requests: 1, requests_max: 1 },
  ]);
  const { stdout } = await sluice.cli("upstream", "list");
  expect(stdout).toMatch(/^UPSTREAM +MODEL +STATE/);
  [sick.delay_ms, well.delay_ms] = [20, 20];
  for (const engine of [sick, well]) engine.hurry();
  const waited_ms = performance.now() - began_ms;
  const told = await Promise.all(running);
  const lines = await Promise.all(told.map(({ requestId }) => lineOfRequest(requestId)));
  expect(lines.filter(({ queued_ms = 0 }) => queued_ms > waited_ms / 2)).toHaveLength(1);
}, 60_000);

test("clients read no upstream's name; the operator's port has the time to the first part and the tokens of each", async () => {
  const verbose = await (await sluice.fetch("/readyz?verbose")).text();
  expect(verbose).not.toContain("canary");
  const metrics = await (await fetch(`${operator}/metrics`)).text();
  expect(metrics).toMatch(/^upstream_time_to_first_part_seconds_count\{upstream="canary-well"\} [1-9]/m);
  const written = /^upstream_tokens_total\{model="acme\/seen",upstream="canary-well",class="output"\} (\d+)$/m;
  // Each response has three output tokens.
  expect(Number(written.exec(metrics)?.[1])).toBe(3 * well.asked.length);
  expect(metrics).toMatch(/^upstream_uncharged_tokens_total\{upstream="canary-sick",outcome="failed"\} [1-9]/m);
  expect(metrics).not.toMatch(/^upstream_uncharged_tokens_total\{upstream="canary-well"/m);
  const { code, stderr } = await sluice.cli("upstream", "list", "--url", sluice.url);
  expect(code).toBe(1);
  expect(stderr).toContain("names no routes");
});

interface Shown {
  outcome: string;
  route: { tried: { outcome: string; said?: string }[] };
}

test.each([
  ["chat", true],
  ["messages", true],
  ["responses", true],
  ["chat", false],
] as const)(
  "the words of an engine that fails inside its answer are found by `request show` alone: %s, streamed %p",
  async (caller, stream) => {
    const told = await asksAs(sluice, caller, "acme/breaking", stream);
    expect([told.isComplete, JSON.stringify(told).includes("CUDA")]).toEqual([false, false]);
    const shown = await sluice.json<Shown>("request", "show", told.requestId);
    expect(shown).toMatchObject({
      outcome: "failed",
      route: {
        tried: expect.arrayContaining([expect.objectContaining({ outcome: "failed", said: `${cuda} in "…"` })]),
      },
    });
    expect((await sluice.cli("request", "show", told.requestId)).stdout).toContain(cuda);
    const line = await lineOfRequest(told.requestId);
    expect(JSON.stringify(line)).not.toContain("CUDA");
  },
);

test("the log says why an engine was not reached, although another one took the request", async () => {
  await asksAs(sluice, "chat", "acme/breaking", true);
  const line = await lineOf(sluice, { event: "upstream_lost", upstream: "canary-untrusted" });
  expect(line).toMatchObject({ level: "warn", model: "acme/breaking", outcome: "unreachable" });
  expect(line.cause).toMatch(/certificate/i);
});

/**
 * The data that a collector gets about requests: their spans and the GenAI metrics, in the caller's trace, and without
 * content.
 */
import { expect, test } from "bun:test";
import { ROOT_CONTEXT, SpanStatusCode } from "@opentelemetry/api";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { Spans } from "../../../src/features/telemetry/spans.ts";
import { freePort } from "../../harness/daemon.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { modelEntry } from "../operations/model-entry.ts";
import { type Collector, type SpanSeen, startCollector } from "./collector.ts";

const theirs = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const traceparent = `00-${theirs.traceId}-${theirs.spanId}-01`;
const word = "walnut";

/** An engine whose first response is a 503, and which records the requests. */
function startEngine() {
  const headers: Headers[] = [];
  const chunk = (choice: object, more = {}) => `data: ${JSON.stringify({ choices: [choice], ...more })}\n\n`;
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      headers.push(request.headers);
      await request.text();
      if (headers.length === 1) return new Response("busy", { status: 503 });
      const text = (content: string) => chunk({ index: 0, delta: { content } });
      const usage = { prompt_tokens: 10, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } };
      const answer = [text("wal"), text("nut"), chunk({ index: 0, delta: {}, finish_reason: "stop" }, { usage })];
      return new Response(`${answer.join("")}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, headers, stop: () => server.stop(true) };
}

interface Tracing {
  /** The status of the collector's responses. */
  status?: number;
  /** Settings of `telemetry`; null if it is off. */
  settings?: string | null;
  env?: Record<string, string>;
}
interface Traced {
  collector: Collector;
  engine: ReturnType<typeof startEngine>;
  service: Sluice;
}

/** The models of the node: a chat model of the test's engine, and one of each other kind, of the built-in simulator. */
const prices = { input: 1, output: 1 };
const models = [
  modelEntry("acme/chat", "chat", "main", { prices }),
  modelEntry("acme/completion", "completion", "simulator", { prices }),
  modelEntry("acme/embedding", "embedding", "simulator"),
  modelEntry("acme/rerank", "rerank", "simulator"),
];

/**
 * Starts a collector, an engine and a node that exports to the collector, and stops them after the test, even if it
 * fails.
 */
async function traced(
  { status, settings = "sample_ratio: 1, metrics_ms: 0", env = {} }: Tracing,
  act: (it: Traced) => Promise<unknown>,
): Promise<void> {
  const [collector, engine] = [startCollector(status), startEngine()];
  const config = `upstreams: { main: { url: "${engine.url}" } }
metering: { currency: USD }
models: ${models.join("")}
${settings === null ? "" : `telemetry: { endpoint: "${collector.url}/", ${settings} }`}
`;
  const service = await startSluice({ config, env });
  try {
    await act({ collector, engine, service });
  } finally {
    await service.stop();
    await Promise.all([engine.stop(), collector.stop()]);
  }
}

const ask = (service: Sluice, headers: Record<string, string> = {}) =>
  service.post(
    "/v1/chat/completions",
    { model: "acme/chat", stream: true, messages: [{ role: "user", content: word }] },
    { headers },
  );

const named = (spans: SpanSeen[], name: string) => spans.filter((span) => span.name === name);

/** Waits until the collector has a span of each name. */
async function spansCome({ spans }: Collector, ...names: string[]): Promise<void> {
  for (const name of names) await until(() => named(spans, name).length === 1, 20_000, `the span ${name}`);
}

test("a request is a span of its caller's trace, with what happened inside, and the engine is told", async () => {
  const port = await freePort();
  const settings = "headers: { x-tenant: ours }, sample_ratio: 0, metrics_ms: 300";
  const env = { SLUICE_OPERATOR_PORT: String(port) };
  await traced({ settings, env }, async ({ collector, engine, service }) => {
    const sent = { traceparent, tracestate: "vendor=1", "x-request-id": "theirs-1", "user-agent": "agent/1" };
    const answer = await (await ask(service, sent)).text();
    expect(answer).toContain("nut");
    // Spans that end after the response may come in a later export.
    await spansCome(collector, "chat acme/chat", "stream", "settlement");
    await until(() => collector.metrics.has("gen_ai.client.token.usage"), 20_000, "the metrics");
    expectSpans(collector, engine.headers);
    expectReports(collector, new URL(engine.url));
    expectMetrics(collector);
    expect(collector.text()).not.toContain(word);
    expect(collector.headers[0]!.get("x-tenant")).toBe("ours");
    expect(collector.resource()).toMatchObject({ "service.name": "sluice" });

    // This request comes without a trace: it is not sampled, as the `traceparent` that the engine gets says.
    await (await ask(service)).text();
    expect(engine.headers.at(-1)!.get("traceparent")).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);

    const open = await fetch(`http://127.0.0.1:${port}/metrics`, {
      headers: { accept: "application/openmetrics-text" },
    });
    const exemplar = new RegExp(`^http_request_duration_seconds_bucket.*# \\{trace_id="${theirs.traceId}"\\}`, "m");
    const text = await open.text();
    expect(text).toMatch(exemplar);
    expect([...new Set([...text.matchAll(/trace_id="(\w+)"/g)].map(([, id]) => id))]).toEqual([theirs.traceId]);
    // A node that stops exports the rest first. The second request left no span.
    await (await ask(service, { traceparent })).text();
    await service.stop();
    expect(named(collector.spans, "chat acme/chat")).toHaveLength(2);
  });
}, 60_000);

function expectSpans({ spans }: Collector, sent: Headers[]): void {
  const [request] = named(spans, "chat acme/chat");
  expect(request).toMatchObject({
    traceId: theirs.traceId,
    parentSpanId: theirs.spanId,
    kind: 2,
    events: ["first part"],
  });
  expect(request!.attributes).toMatchObject({
    "http.route": "/v1/chat/completions",
    "http.response.status_code": 200,
    "http.request.header.x-request-id": ["theirs-1"],
    "user_agent.original": "agent/1",
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "acme/chat",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.cache_read.input_tokens": 4,
    "gen_ai.usage.output_tokens": 3,
    "sluice.outcome": "completed",
  });
  for (const span of spans) expect(span.traceId).toBe(theirs.traceId);
  for (const name of ["admission", "stream", "settlement"]) {
    const [inner, ...more] = named(spans, name);
    expect(more).toEqual([]);
    expect(inner?.parentSpanId).toBe(request!.spanId);
    expect(inner!.start_ms).toBeGreaterThanOrEqual(request!.start_ms);
  }
  const attempts = named(spans, "chat m");
  expect(attempts.map(({ isError, attributes }) => [isError, attributes["sluice.attempt.outcome"]])).toEqual([
    [true, "failed"],
    [false, "answered"],
  ]);
  expect(attempts.map(({ parentSpanId }) => parentSpanId)).toEqual([request!.spanId, request!.spanId]);
  expect(sent.map((headers) => headers.get("traceparent"))).toEqual(
    attempts.map(({ spanId }) => `00-${theirs.traceId}-${spanId}-01`),
  );
  expect(sent.map((headers) => headers.get("tracestate"))).toEqual(["vendor=1", "vendor=1"]);
}

/**
 * Checks that the span of each attempt names the address of its engine, and that the span of the successful attempt has
 * the usage that the engine reported.
 */
function expectReports({ spans, text }: Collector, { hostname, port }: URL): void {
  const [failed, answered] = named(spans, "chat m").map(({ attributes }) => attributes);
  const server = { "server.address": hostname, "server.port": Number(port) };
  expect(failed).toMatchObject(server);
  expect(Object.keys(failed!).filter((name) => /usage|finish/.test(name))).toEqual([]);
  expect(answered).toMatchObject({
    ...server,
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.cache_read.input_tokens": 4,
    "gen_ai.usage.output_tokens": 3,
    "gen_ai.response.finish_reasons": ["stop"],
  });
  expect(text()).not.toMatch(/sluice\.(organization|key|team)\.id/);
}

function expectMetrics({ metrics }: Collector): void {
  const tokens = metrics.get("gen_ai.client.token.usage")!;
  expect(tokens.map(({ attributes, sum }) => [attributes["gen_ai.token.type"], sum])).toEqual([
    ["input", 10],
    ["output", 3],
  ]);
  for (const name of ["request.duration", "time_to_first_token", "time_per_output_token"]) {
    const [point] = metrics.get(`gen_ai.server.${name}`) ?? [];
    expect(point).toMatchObject({ count: 1, attributes: { "gen_ai.request.model": "acme/chat" } });
  }
  expect(metrics.get("gen_ai.server.time_to_first_token")![0]!.bounds).toHaveLength(16);
}

test("a request whose status is 500 or more is an error of the server, and a client's mistake is none", () => {
  const ended: SpanStatusCode[] = [];
  const ignored = async () => {};
  const onEnd = ({ status }: { status: { code: SpanStatusCode } }) => void ended.push(status.code);
  const processor = { onStart() {}, onEnd, forceFlush: ignored, shutdown: ignored };
  const tracer = new TracerProvider({ spanProcessors: [processor] }).getTracer("test");
  const request = { id: "req_1", method: "GET", route: "/v1/models", headers: new Headers(), words: {} };
  for (const status of [200, 499, 500, 503]) new Spans(tracer, request, ROOT_CONTEXT, false).end(status, undefined);
  const { UNSET, ERROR } = SpanStatusCode;
  expect(ended).toEqual([UNSET, UNSET, ERROR, ERROR]);
});

const operations = [
  ["embeddings", "/v1/embeddings", { model: "acme/embedding", input: word }],
  ["rerank", "/v1/rerank", { model: "acme/rerank", query: word, documents: [word] }],
  ["text_completion", "/v1/completions", { model: "acme/completion", prompt: word }],
] as const;

test("spans have the name of their operation, and with caller_ids they say whose a request is: organization, key and team", async () => {
  const settings = "sample_ratio: 1, caller_ids: true, metrics_ms: 300";
  await traced({ settings }, async ({ collector, service }) => {
    const whose = ["--org", service.organization];
    const team = await service.json<{ id: string }>("team", "create", ...whose, "--name", "research");
    const words = ["key", "create", ...whose, "--name", "traced", "--team", team.id];
    const key = await service.json<{ id: string; key: string; organization_id: string }>(...words);
    const body = { model: "acme/chat", messages: [{ role: "user", content: word }] };
    for (const model of ["acme/chat", "acme/none"])
      await (await service.post("/v1/chat/completions", { ...body, model }, { key: key.key })).text();
    for (const name of ["chat m", "settlement", "POST /v1/chat/completions", "chat acme/chat"])
      await until(() => named(collector.spans, name).length > 0, 20_000, `the span ${name}`);
    const caller = { "sluice.organization.id": key.organization_id, "sluice.key.id": key.id };
    for (const name of ["chat acme/chat", "chat m", "settlement"]) {
      for (const { attributes } of named(collector.spans, name)) {
        expect(attributes).toMatchObject({ ...caller, "sluice.team.id": team.id });
      }
    }
    const [refused] = named(collector.spans, "POST /v1/chat/completions");
    expect(refused!.attributes).toMatchObject({ ...caller, "error.type": "model_not_found" });
    for (const [, path, body] of operations) {
      const response = await service.post(path, body);
      expect([path, response.status]).toEqual([path, 200]);
      await response.text();
    }
    for (const [operation, , { model }] of operations) {
      const name = `${operation} ${model}`;
      await spansCome(collector, name, `${operation} m`);
      for (const span of [name, `${operation} m`])
        expect(named(collector.spans, span)[0]!.attributes).toMatchObject({ "gen_ai.operation.name": operation });
    }
    const points = () => collector.metrics.get("gen_ai.client.token.usage") ?? [];
    const counted = () => new Set(points().map(({ attributes }) => attributes["gen_ai.operation.name"]));
    await until(() => operations.every(([operation]) => counted().has(operation)), 20_000, "the metrics");
    expect(collector.text()).not.toContain(word);
  });
}, 60_000);

test("a collector that is away, or refuses, costs a line in the log and no request", async () => {
  await traced({ status: 403 }, async ({ service }) => {
    expect((await ask(service)).status).toBe(200);
    await until(() => service.stderr().includes('"telemetry_unsent"'), 10_000, "the log");
    expect((await ask(service)).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
}, 60_000);

test("off, nothing is sent and the engine hears of no trace", async () => {
  await traced({ settings: null }, async ({ engine, service }) => {
    await (await ask(service, { traceparent })).text();
    expect(engine.headers.map((headers) => headers.get("traceparent"))).toEqual([null, null]);
  });
}, 60_000);

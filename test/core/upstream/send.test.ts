/** Header fields of requests to engines: those of the engine are serialized once, and each request adds its own. */
import { afterAll, expect, test } from "bun:test";
import type { Dialect } from "../../../src/core/protocol/dialect.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import { upstreamCodecs } from "../../../src/core/upstream/codecs.ts";
import { type Sending, send } from "../../../src/core/upstream/send.ts";
import type { Upstream } from "../../../src/core/upstream/target.ts";
import { saying } from "../../harness/request.ts";
import { upstreamOf } from "../routing/models.ts";
import { engineClient } from "./asking.ts";

const seen: Headers[] = [];
const paths: string[] = [];
const bodies: unknown[] = [];
const server = Bun.serve({
  port: 0,
  async fetch(request) {
    seen.push(request.headers);
    paths.push(new URL(request.url).pathname);
    bodies.push(await request.json());
    return new Response("{}");
  },
});
afterAll(() => server.stop(true));
const engines = engineClient();

const request = saying("hi", { stream: false });

const engine = (more: Partial<Upstream> = {}): Upstream =>
  upstreamOf(`http://127.0.0.1:${server.port}/v1`, { apiKey: "key", ...more });

async function headersAt(upstream: Upstream, more: Partial<Sending> = {}): Promise<Headers> {
  const sending: Sending = {
    ...{ client: engines, upstream, codec: upstreamCodecs[upstream.protocol], request, inputBytes: 10 },
    ...{ model: "m", stream: false, outputTokens_max: 10, ...more },
  };
  const reply = await send(sending, { connect_ms: 5_000, connected() {}, signal: new Cancellation() });
  while ((await reply.read()) !== null);
  return seen.at(-1)!;
}

const pick = (headers: Headers, ...names: string[]) => names.map((name) => headers.get(name));

test("they are ours and its key, and what the operator has set goes before", async () => {
  const names = ["content-type", "accept", "user-agent", "authorization", "x-own"];
  const ours = ["application/json", "text/event-stream, application/json", "sluice", "Bearer key", null];
  expect(pick(await headersAt(engine()), ...names)).toEqual(ours);
  const headers = { "user-agent": "ours", "x-own": "a" };
  const set = ["application/json", "text/event-stream, application/json", "ours", "Bearer key", "a"];
  expect(pick(await headersAt(engine({ headers })), ...names)).toEqual(set);
});

test("one engine's requests differ in for whom they are, and in whose trace", async () => {
  const identityHeaders = { organization: "x-for", plan: "x-plan" };
  const upstream = engine({ identityHeaders, headers: { "x-for": "nobody", tracestate: "set" } });
  const asks = async (organization: string, traceHeaders?: Record<string, string>) =>
    pick(
      await headersAt(upstream, {
        identified: { organization, plan: "free", session: null },
        ...(traceHeaders && { traceHeaders }),
      }),
      ...["x-for", "x-plan", "traceparent", "tracestate"],
    );
  expect(await asks("one", { traceparent: "00-1", tracestate: "a=1" })).toEqual(["one", "free", "00-1", "set"]);
  expect(await asks("two")).toEqual(["two", "free", null, "set"]);
});

test("an engine that has all of Messages gets the betas that the caller names, beside the operator's", async () => {
  const betas = "one-2026-01-01,two-2026-02-02";
  const asks = async (more: Partial<Upstream>, dialect: Dialect = dialects.anthropic) =>
    pick(await headersAt(engine({ protocol: "anthropic-messages", ...more }), { betas, dialect }), "anthropic-beta");
  expect(await asks({})).toEqual([betas]);
  expect(await asks({ headers: { "anthropic-beta": "three" } })).toEqual([`three, ${betas}`]);
  expect(await asks({}, dialects.vllm)).toEqual([null]);
  expect(await asks({ protocol: "openai-chat" })).toEqual([null]);
});

test("an engine gets the conversation and the priority of the plan, where it has headers for them", async () => {
  const identityHeaders = { session: "x-session-id", priority: "x-vllm-priority" };
  const upstream = engine({ identityHeaders, priorities: { pro: -5 }, headers: { "x-session-id": "fixed" } });
  const asks = async (plan: string, session: string | null) =>
    pick(
      await headersAt(upstream, { identified: { organization: "one", plan, session } }),
      ...["x-session-id", "x-vllm-priority"],
    );
  expect(await asks("pro", "a1")).toEqual(["a1", "-5"]);
  expect(await asks("free", "b2")).toEqual(["b2", null]);
  expect(await asks("pro", null)).toEqual([null, "-5"]);
});

test("an engine is asked to count on every chunk of a stream, in its own words", async () => {
  const askedBy = async (runningUsage: "usage" | "timings" | null, stream: boolean) => {
    await headersAt(engine(runningUsage ? { runningUsage } : {}), { stream });
    return bodies.at(-1)!;
  };
  expect(await askedBy("usage", true)).toMatchObject({
    stream_options: { include_usage: true, continuous_usage_stats: true },
  });
  expect(await askedBy("timings", true)).toMatchObject({
    ...{ stream_options: { include_usage: true }, timings_per_token: true },
  });
  for (const body of [await askedBy(null, true), await askedBy("timings", false), await askedBy("usage", false)])
    expect(JSON.stringify(body)).not.toMatch(/continuous|timings/);
});

test("one that speaks Messages is asked at its own path, with its own headers and the cap that it demands", async () => {
  const headers = await headersAt(engine({ protocol: "anthropic-messages" }), { stream: true });
  expect([paths.at(-1), ...pick(headers, "x-api-key", "anthropic-version", "authorization")]).toEqual([
    ...["/v1/messages", "key", "2023-06-01", null],
  ]);
  expect(bodies.at(-1)).toMatchObject({ model: "m", max_tokens: 10, stream: true });
  const keyless = await headersAt(engine({ protocol: "anthropic-messages", apiKey: null }));
  expect(pick(keyless, "anthropic-version")).toEqual(["2023-06-01"]);
});

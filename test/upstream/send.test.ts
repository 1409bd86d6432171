/** Header fields of what engines are asked: those of an engine are written once, and each request has its own beside them. */
import { afterAll, expect, test } from "bun:test";
import { openaiChatUpstream } from "../../src/protocol/openai-chat/codec.ts";
import { Cancellation } from "../../src/time/cancellation.ts";
import { client } from "../../src/upstream/http1/client.ts";
import { type Sending, send } from "../../src/upstream/send.ts";
import { defaultTimeouts, type Upstream } from "../../src/upstream/target.ts";
import { saying } from "../harness/request.ts";

const seen: Headers[] = [];
const server = Bun.serve({
  port: 0,
  async fetch({ headers }) {
    seen.push(headers);
    return new Response("{}");
  },
});
afterAll(() => server.stop(true));
const engines = client();
afterAll(() => engines.close());

const request = saying("hi", { stream: false });

const engine = (more: Partial<Upstream> = {}): Upstream => ({
  name: "engine",
  url: `http://127.0.0.1:${server.port}/v1`,
  protocol: "openai-chat",
  apiKey: "key",
  timeouts: defaultTimeouts,
  ...more,
});

async function headersAt(upstream: Upstream, more: Partial<Sending> = {}): Promise<Headers> {
  const sending: Sending = {
    ...{ client: engines, upstream, codec: openaiChatUpstream, request, inputBytes: 10 },
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
      await headersAt(upstream, { identified: { organization, plan: "free" }, ...(traceHeaders && { traceHeaders }) }),
      ...["x-for", "x-plan", "traceparent", "tracestate"],
    );
  expect(await asks("one", { traceparent: "00-1", tracestate: "a=1" })).toEqual(["one", "free", "00-1", "set"]);
  expect(await asks("two")).toEqual(["two", "free", null, "set"]);
});

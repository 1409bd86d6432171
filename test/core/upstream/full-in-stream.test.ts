/**
 * An engine that reports inside its stream, behind a 200, that it is full counts as one that answers 429, in each
 * protocol, so that no breaker counts it as a failure. An engine that reports another failure there counts as failed.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { Fault } from "../../../src/core/inference/fault.ts";
import { health } from "../../../src/core/routing/health.ts";
import { ask } from "../../../src/core/upstream/ask.ts";
import type { AttemptEnd } from "../../../src/core/upstream/attempt.ts";
import type { UpstreamProtocol } from "../../../src/core/upstream/codecs.ts";
import { engineClient, question } from "./asking.ts";

const full = "The request queue is full.";
/** The events of a stream: `full` for an engine at capacity, `failed` for one that is broken. */
const streams: Record<UpstreamProtocol, { full: object[]; failed: object[] }> = {
  "openai-chat": {
    full: [
      { error: { message: full, type: "service_unavailable", code: 503 } },
      { error: { message: full, type: "service_unavailable", code: "503" } },
      { error: { message: "Slow down.", code: 429 } },
      { error: { message: "Slow down.", type: "rate_limit_error", code: null } },
      { error: { message: "Slow down.", type: "requests", code: "rate_limit_exceeded" } },
      { object: "error", message: full, type: "ServiceUnavailable", code: 503 },
      { error: { message: "Rate limit reached for requests", code: "1302" } },
      { error: { message: "Context size has been exceeded.", type: "server_error", code: 500 } },
    ],
    failed: [
      { error: { message: "CUDA error", code: 500 } },
      { error: { message: "CUDA error", type: "server_error" } },
      { error: { message: "Loading.", code: 503 } },
      { error: "CUDA error" },
    ],
  },
  "openai-responses": {
    full: [
      { type: "response.failed", response: { error: { code: "rate_limit_exceeded", message: "Slow down." } } },
      { type: "error", code: "rate_limit_exceeded", message: "Slow down." },
      { type: "error", error: { type: "server_error", code: 503, message: full } },
      { type: "error", error: { code: "server_is_overloaded", message: full } },
    ],
    failed: [
      { type: "response.failed", response: { error: { code: "server_error", message: "CUDA error" } } },
      { type: "error", error: { code: "server_is_overloaded", message: "Loading." } },
    ],
  },
  "anthropic-messages": {
    full: [{ type: "error", error: { type: "rate_limit_error", message: "Slow down." } }],
    failed: [
      { type: "error", error: { type: "api_error", message: "CUDA error" } },
      { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
    ],
  },
};

let said: object = {};
const server = Bun.serve({
  port: 0,
  fetch: async (incoming) => {
    await incoming.arrayBuffer();
    const name = "type" in said && said.type !== "ServiceUnavailable" ? `event: ${said.type}\n` : "";
    const headers = { "content-type": "text/event-stream" };
    return new Response(`${name}data: ${JSON.stringify(said)}\n\n`, { headers });
  },
});
afterAll(() => server.stop(true));
const engines = engineClient();

async function endOf(protocol: UpstreamProtocol, event: object) {
  said = event;
  let end: AttemptEnd | null = null;
  let fault: Fault | null = null;
  const ended = (told: AttemptEnd) => {
    end = told;
  };
  const asked = question(`http://127.0.0.1:${server.port}/v1`, { client: engines, ended }, protocol);
  for await (const batch of ask(asked)) for (const one of batch) if (one.type === "response-failed") fault = one.fault;
  return { end: end as AttemptEnd | null, fault: fault as Fault | null, upstream: asked.upstream };
}

for (const [protocol, { full, failed }] of Object.entries(streams) as [
  UpstreamProtocol,
  (typeof streams)["openai-chat"],
][])
  describe(protocol, () => {
    test.each(full.map((event) => [JSON.stringify(event), event] as const))("%s is full", async (_, event) => {
      const { end, fault, upstream } = await endOf(protocol, event);
      expect([end!.kind, fault!.code, fault!.status]).toEqual(["busy", "capacity_exceeded", 429]);
      const known = health();
      const route = { upstream, model: "m", priority: 0, weight: 1 };
      for (let nth = 0; nth < 20; nth++) known.ended(route, end!, nth, nth);
      expect(known.stateOf(route, 20)).toBe("closed");
    });

    test.each(failed.map((event) => [JSON.stringify(event), event] as const))("%s is a failure", async (_, event) => {
      const { end, fault } = await endOf(protocol, event);
      expect([end!.kind, fault!.code === "capacity_exceeded"]).toEqual(["failed", false]);
      // Operators read the engine's own text in the request's record, and the caller reads none of it.
      const text = /CUDA error|Loading[.]|Overloaded/.exec(JSON.stringify(event))![0];
      expect(end!.said).toBe(text);
      expect(fault!.message).not.toContain(text);
    });
  });

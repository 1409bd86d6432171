/** An engine that speaks Messages, over HTTP; and what its protocol cannot express. */
import { afterAll, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { Fold } from "../../../src/core/inference/result.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import { ask } from "../../../src/core/upstream/ask.ts";
import { upstreamCodecs } from "../../../src/core/upstream/codecs.ts";
import { client } from "../../../src/core/upstream/http1/client.ts";
import { defaultTimeouts } from "../../../src/core/upstream/target.ts";
import { patience } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { grammarProblem } from "../protocol/grammar.ts";

const seen: { path: string; headers: Headers; body: Record<string, unknown> }[] = [];
const frames = [
  { type: "message_start", message: { usage: { input_tokens: 5, output_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
];
const server = Bun.serve({
  port: 0,
  async fetch(request) {
    const body = (await request.json()) as Record<string, unknown>;
    seen.push({ path: new URL(request.url).pathname, headers: request.headers, body });
    const stream = frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join("");
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  },
});
afterAll(() => server.stop(true));

const engines = client();
afterAll(() => engines.close());

const request = saying("Hello", { model: "acme/writer-1" });

async function events(protocol: "openai-chat" | "anthropic-messages", more: Partial<InferenceRequest>) {
  const out: InferenceEvent[] = [];
  for await (const batch of ask({
    upstream: {
      name: "e",
      url: `http://127.0.0.1:${server.port}/v1`,
      protocol,
      apiKey: "secret",
      timeouts: defaultTimeouts,
    },
    codec: upstreamCodecs[protocol]!,
    request: { ...request, ...more },
    model: "engine-model",
    stream: true,
    inputBytes: 100,
    outputTokens_max: 777,
    identity: { responseId: "msg_1", createdAtSeconds: 1, model: "acme/writer-1" },
    client: engines,
    patience: patience(),
    signal: new Cancellation(),
  }))
    out.push(...batch);
  expect(grammarProblem(out)).toBeNull();
  return out;
}

test("is asked at its own path, with its own headers and the cap that it demands, and read to its end", async () => {
  const fold = new Fold();
  for (const event of await events("anthropic-messages", {})) fold.push(event);
  const { parts, usage } = fold.result();
  expect(parts.map((part) => part.text)).toEqual(["hello"]);
  expect(usage).toMatchObject({ inputTokens: 5, outputTokens: 2 });
  const { path, headers, body } = seen.at(-1)!;
  expect([path, headers.get("x-api-key"), headers.has("anthropic-version"), headers.has("authorization")]).toEqual([
    "/v1/messages",
    "secret",
    true,
    false,
  ]);
  expect(body).toMatchObject({ model: "engine-model", max_tokens: 777, stream: true });
});

test("is told the version of the protocol without a key, too", () => {
  const told = upstreamCodecs["anthropic-messages"].headers(null);
  expect(told).toEqual({ "anthropic-version": "2023-06-01" });
});

test("what its protocol has no words for is the caller's to change, and is not asked", async () => {
  const before = seen.length;
  const [last] = await events("anthropic-messages", { sampling: { presencePenalty: 1 } });
  expect(last).toMatchObject({
    type: "response-failed",
    fault: { code: "unsupported_feature", details: { param: "presence_penalty" } },
  });
  const citations = { protocol: "anthropic-messages", feature: "citations", param: "messages[0]" } as const;
  const [refused] = await events("openai-chat", { nativeNeeds: [citations] });
  expect(refused).toMatchObject({
    type: "response-failed",
    fault: { code: "unsupported_feature", details: { param: "messages[0]" } },
  });
  expect(seen.length).toBe(before);
});

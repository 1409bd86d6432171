/** Bad input, by mutation: whatever a client sends is a request or a client error, and what is accepted can be served. */
import { describe, expect, test } from "bun:test";
import type fc from "fast-check";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { MessagesRequest } from "../../../src/core/protocol/anthropic-messages/contract.ts";
import type { CallerCodec } from "../../../src/core/protocol/codec.ts";
import { type Contract, contract } from "../../../src/core/protocol/contract.ts";
import { ChatCompletionRequest } from "../../../src/core/protocol/openai-chat/contract.ts";
import { ResponsesRequest, TypedResponsesRequest } from "../../../src/core/protocol/openai-responses/contract.ts";
import { SseDecoder } from "../../../src/core/sse/decode.ts";
import { changesTo } from "./changes.ts";
import { callers, upstreams, validated } from "./codecs.ts";
import { over, writtenBy } from "./events.ts";
import { forAll } from "./for-all.ts";
import { type ClientName, callers as clients } from "./pairs/wires.ts";
import { bytes, streamProblem } from "./reading.ts";

const chatBody = {
  model: "acme/writer-1",
  messages: [
    { role: "system", content: "s" },
    {
      role: "user",
      content: [
        { type: "text", text: "x" },
        { type: "image_url", image_url: { url: "https://x" } },
      ],
    },
    {
      role: "assistant",
      tool_calls: [
        { id: "c", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "d", type: "custom", custom: { name: "g", input: "x" } },
      ],
    },
    { role: "tool", tool_call_id: "c", content: "y" },
  ],
  stream: true,
  stream_options: { include_usage: true },
  temperature: 1,
  stop: ["a"],
  logit_bias: { "5": 1 },
  tools: [
    { type: "function", function: { name: "f", parameters: { type: "object" } } },
    {
      type: "custom",
      custom: { name: "g", format: { type: "grammar", grammar: { syntax: "lark", definition: "d" } } },
    },
  ],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } },
  reasoning_effort: "low",
};
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const messagesBody = {
  model: "acme/writer-1",
  max_tokens: 100,
  system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: [{ type: "text", text: "x" }, image] },
    { role: "system", content: "note", output_config: { effort: "low" }, clear_at: "never" },
    {
      role: "system",
      content: [
        { type: "tool_removal", tool: { type: "tool_reference", name: "g" } },
        { type: "tool_addition", tool: { type: "tool_definition", definition: { name: "h", input_schema: {} } } },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "tool_use", id: "c", name: "f", input: { x: 1 } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "c",
          content: [{ type: "tool_reference", tool_name: "f" }],
          is_error: true,
        },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "d" }, title: "t" },
      ],
    },
  ],
  stream: true,
  temperature: 1,
  stop_sequences: ["a"],
  tools: [
    { name: "f", input_schema: { type: "object" } },
    { name: "g", input_schema: {} },
    { type: "bash_20250124", name: "bash" },
  ],
  tool_choice: { type: "tool", name: "f" },
  thinking: { type: "enabled", budget_tokens: 1024 },
  output_config: { effort: "low", format: { type: "json_schema", schema: {} } },
  context_management: { edits: [{ type: "clear_thinking_20251015" }] },
  metadata: { user_id: "u" },
};
const f = { type: "function", name: "f", parameters: { type: "object" }, strict: null };
const p = { type: "custom", name: "p", format: { type: "grammar", syntax: "lark", definition: "x" } };
const responsesBody = {
  model: "acme/writer-1",
  instructions: "s",
  input: [
    { role: "developer", content: "d" },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "x" },
        { type: "input_image", image_url: "https://x", detail: "auto" },
        { type: "input_file", file_data: "eA==", filename: "x.pdf" },
      ],
    },
    { type: "reasoning", summary: [{ type: "summary_text", text: "r" }], encrypted_content: "e" },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}", namespace: "n" },
    { type: "custom_tool_call", call_id: "k", name: "p", input: "ls" },
    { type: "function_call_output", call_id: "c", output: "y" },
    { type: "custom_tool_call_output", call_id: "k", output: [{ type: "input_text", text: "z" }] },
    { type: "additional_tools", role: "developer", tools: [p] },
  ],
  stream: true,
  temperature: 1,
  tools: [f, { type: "namespace", name: "n", tools: [f, p] }, { type: "web_search" }],
  tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
  parallel_tool_calls: false,
  text: { format: { type: "json_schema", name: "n", schema: {} } },
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  store: false,
};
interface Subject {
  shape: Contract<unknown>;
  /** Valid bodies with changes. */
  bodies: fc.Arbitrary<unknown>;
  /** Takes a body as the service does, and throws what the client is refused with. */
  serve(body: unknown): void;
  runs: number;
}

const requestId = `req_${"0".repeat(32)}`;

/** Checks that a request that was accepted reaches engines, and that a stream can be written for its client. */
function serving<Body>(client: ClientName, codec: CallerCodec<Body, unknown>, validate: (body: unknown) => Body) {
  const { identity } = clients[client];
  return (body: unknown) => {
    const wire = validate(body);
    reachesEngines(codec.request.decode(wire));
    const encoder = codec.stream.encoder(wire, { requestId, identity, inputTokensEstimate: 1 });
    const beat = new SseDecoder().push(bytes(encoder.heartbeat()));
    const answer = writtenBy(encoder, [{ type: "response-start", ...identity }, over("stop")]);
    expect(streamProblem(client, [...beat, ...answer])).toBeNull();
  };
}

const serveResponses = serving("responses", callers.responses, validated.responses);
const subjects: Record<ClientName, Subject> = {
  chat: {
    shape: contract(ChatCompletionRequest, { topLevel: "closed" }),
    bodies: changesTo(chatBody, {
      words: "user tool function text image_url custom auto json_object none c f".split(" "),
      keys: ["role", "type", "x", "content", "n"],
    }),
    serve: serving("chat", callers.chat, validated.chat),
    runs: 3000,
  },
  messages: {
    shape: contract(MessagesRequest),
    bodies: changesTo(messagesBody, {
      words: [
        ..."user tool system text image document tool_use tool_result tool_addition tool_reference".split(" "),
        ..."thinking custom auto any none base64 url file c f g h".split(" "),
      ],
      keys: ["role", "type", "x", "content", "thread", "container", "tools"],
    }),
    serve: serving("messages", callers.messages, validated.messages),
    runs: 400,
  },
  responses: {
    shape: contract(TypedResponsesRequest),
    bodies: changesTo(responsesBody, {
      words: "user function input_text custom auto json_object none c f message constructor".split(" "),
      keys: ["role", "type", "x", "content", "id", "context_management", "background"],
    }),
    serve: serveResponses,
    runs: 1000,
  },
};

describe.each(Object.entries(subjects))("a changed request of %s", (_, { shape, bodies, serve, runs }) => {
  test("is refused with a client error whose path exists, or is missing; or it is accepted, and served", () => {
    forAll([bodies], runs, (body) => {
      try {
        serve(body);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(Fault);
        const fault = thrown as Fault;
        expect(fault.status).toBe(400);
        expect(fault.message).not.toContain("does not match the contract");
        expect(fault.message).not.toContain("undefined");
        const param = fault.details.param;
        if (param === undefined) expect(typeof body !== "object" || body === null || Array.isArray(body)).toBe(true);
        else if (fault.code !== "missing_field") expect(fault.message).toContain(param);
      }
    });
  });

  test("offends in the slow walk, which says what is wrong, exactly where the compiled check refuses it", () => {
    forAll([bodies], runs, (body) => {
      const clean = shape.violation(body).message.includes("does not match the contract");
      expect(clean).toBe(shape.satisfied(body));
    });
  });
});

/**
 * Checks that a request that was accepted can be sent to an engine of any protocol, or is refused with the name of the
 * feature.
 */
function reachesEngines(request: InferenceRequest): void {
  for (const upstream of Object.values(upstreams)) {
    try {
      const asked = upstream.request.encode(request, { model: "engine", stream: true, outputTokens_max: 1000 });
      const sent = JSON.parse(JSON.stringify(asked));
      expect((sent.messages ?? sent.input).length).toBeGreaterThan(0);
      expect(Object.values(sent)).not.toContain(null);
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(Fault);
      expect((thrown as Fault).code).toBe("unsupported_feature");
    }
  }
}

test("what is published lets through what is served, and a message of Responses needs no type in it", () => {
  const published = contract(ResponsesRequest);
  expect(published.satisfied(responsesBody)).toBe(true);
  forAll([subjects.responses.bodies], 50, (body) => {
    if (subjects.responses.shape.satisfied(body)) expect(published.satisfied(body)).toBe(true);
  });
});

test("a body whose keys are names of the language is data like any other", () => {
  const hostile = JSON.stringify(responsesBody)
    .replace('"stream":true', '"stream":true,"__proto__":{"store":true},"constructor":1')
    .replace('"name":"f","namespace":"n"', '"name":"__proto__","namespace":"constructor"');
  serveResponses(JSON.parse(hostile));
  expect(validated.responses(JSON.parse(hostile)).store).toBe(false);
});

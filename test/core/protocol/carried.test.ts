/**
 * Opaque values that an engine wants back (Gemini's signature of a call, OpenRouter's details of reasoning) return to
 * it through clients of all protocols, streamed and whole, and reach no other dialect or model.
 */
import { describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { carriedIn, signatureFor } from "../../../src/core/protocol/carried.ts";
import type { CallerCodec, Loss, StreamEncoder } from "../../../src/core/protocol/codec.ts";
import type { Dialect } from "../../../src/core/protocol/dialect.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { encodeSse } from "../../../src/core/sse/decode.ts";
import { callers, upstreams } from "./codecs.ts";
import { folded } from "./reading.ts";

type Json = Record<string, unknown>;
const model = "acme/one";
const identity = { responseId: "r_1", createdAtSeconds: 1, model };
const function_ = { name: "weather", arguments: '{"city":"Oslo"}' };
const google = { google: { thought_signature: "AbC+/=" } };
const details = [{ type: "reasoning.encrypted", data: "AbC+/=", id: "g1", format: "google-gemini-v1", index: 0 }];

const geminiCall = { index: 0, id: "g1", type: "function", function: function_, extra_content: google };
const plainCall = { index: 0, id: "g1", type: "function", function: function_ };
const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});

/** Each dialect with its message, whole and streamed, and the values that it wants back. */
const engines = {
  gemini: {
    whole: { role: "assistant", content: null, tool_calls: [geminiCall] },
    deltas: [chunk({ role: "assistant", tool_calls: [geminiCall] }), chunk({}, "tool_calls")],
    back: { extra_content: google },
    at: (message: Json) => (message.tool_calls as Json[])[0]!,
  },
  openrouter: {
    whole: { role: "assistant", content: null, reasoning: "Hm.", reasoning_details: details, tool_calls: [plainCall] },
    deltas: [
      chunk({ role: "assistant", reasoning: "Hm." }),
      chunk({ reasoning_details: details }),
      chunk({ tool_calls: [plainCall] }),
      chunk({}, "tool_calls"),
    ],
    back: { reasoning_details: details },
    at: (message: Json) => message,
  },
} as const;
type EngineName = keyof typeof engines;

/** A stream in which the signature comes after the first fragment of its call, and again with each further fragment. */
const lateDeltas = [
  chunk({ tool_calls: [{ ...plainCall, function: { name: "weather", arguments: "" } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city":' }, extra_content: google }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' }, extra_content: google }] }),
  chunk({}, "tool_calls"),
];

function answerOf(name: EngineName, dialect: Dialect, streamed: boolean): InferenceEvent[] {
  const { whole, deltas } = engines[name];
  if (!streamed) {
    const reply = { choices: [{ index: 0, message: whole, finish_reason: "tool_calls" }] };
    return upstreams.chat.response.decode(reply, identity, { dialect });
  }
  const decoder = upstreams.chat.stream.decoder(identity, { dialect });
  return [
    ...deltas.flatMap((delta) => decoder.push({ data: JSON.stringify(delta) })),
    ...decoder.push({ data: "[DONE]" }),
  ];
}

const tools = [{ type: "function", name: "weather" }];
const context = { requestId: "q", identity, inputTokensEstimate: 1 };

/** The parsed data of a stream's frames. */
function streamed(encoder: StreamEncoder, events: readonly InferenceEvent[]): Json[] {
  const text = [...events.flatMap((event) => encoder.push(event)), ...encoder.end()].map(encodeSse).join("");
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!) as Json);
}

/**
 * For each client, the request of the second turn, which repeats the engine's answer in the form in which the client's
 * SDK kept it.
 */
const clients = {
  chat: (events: InferenceEvent[], whole: boolean, asked = model): InferenceRequest => {
    const wire = { model: asked, messages: [{ role: "user", content: "Oslo?" }], stream: !whole };
    let message: Json;
    if (whole) {
      const reply = (callers.chat as CallerCodec<unknown, unknown>).response.encode(folded(events), wire) as never;
      message = (reply as { choices: { message: Json }[] }).choices[0]!.message;
    } else {
      const deltas = streamed(callers.chat.stream.encoder(wire as never, context), events).flatMap(({ choices }) =>
        (choices as { delta: Json }[]).map(({ delta }) => delta),
      );
      message = { role: "assistant", content: null };
      for (const delta of deltas) {
        if (delta.reasoning_details) message.reasoning_details = delta.reasoning_details;
        if (delta.reasoning_content)
          message.reasoning_content = `${message.reasoning_content ?? ""}${delta.reasoning_content}`;
        for (const call of (delta.tool_calls ?? []) as Json[]) {
          const [before] = (message.tool_calls ?? []) as Json[];
          const { function: fragment, ...more } = call;
          if (!before) message.tool_calls = [call];
          else {
            Object.assign(before, more);
            (before.function as Json).arguments += ((fragment as Json | undefined)?.arguments ?? "") as string;
          }
        }
      }
    }
    const messages = [...wire.messages, message, { role: "tool", tool_call_id: "g1", content: "4 C" }];
    return callers.chat.request.decode({ ...wire, messages } as never);
  },
  messages: (events: InferenceEvent[], whole: boolean, asked = model): InferenceRequest => {
    const caller = callers.messages;
    const wire = { model: asked, max_tokens: 99, messages: [{ role: "user", content: "Oslo?" }], stream: !whole };
    const content: Json[] = [];
    if (whole) content.push(...(caller.response.encode(folded(events), wire as never).content as never as Json[]));
    else
      for (const event of streamed(caller.stream.encoder(wire as never, context), events)) {
        const delta = (event.delta ?? {}) as Json;
        const last = content.at(-1)!;
        if (event.type === "content_block_start") content.push({ ...(event.content_block as Json) });
        if (delta.type === "thinking_delta") last.thinking = `${last.thinking}${delta.thinking}`;
        if (delta.type === "signature_delta") last.signature = delta.signature;
        if (delta.type === "input_json_delta") last.json = `${last.json ?? ""}${delta.partial_json}`;
        if (event.type === "content_block_stop" && last.json) {
          last.input = JSON.parse(last.json as string);
          delete last.json;
        }
      }
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "g1", content: "4 C" }] };
    return caller.request.decode({
      ...wire,
      messages: [...wire.messages, { role: "assistant", content }, result],
    } as never);
  },
  responses: (events: InferenceEvent[], whole: boolean, asked = model): InferenceRequest => {
    const wire = { model: asked, input: [{ type: "message", role: "user", content: "Oslo?" }], tools, stream: !whole };
    const output = whole
      ? (callers.responses.response.encode(folded(events), wire as never).output as never as Json[])
      : streamed(callers.responses.stream.encoder(wire as never, context), events).flatMap(({ type, item }) =>
          type === "response.output_item.done" ? [item as Json] : [],
        );
    const result = { type: "function_call_output", call_id: "g1", output: "4 C" };
    return callers.responses.request.decode({ ...wire, input: [...wire.input, ...output, result] } as never);
  },
};

function asked(request: InferenceRequest, dialect: Dialect) {
  const lost: Loss[] = [];
  const asking = {
    model: "m",
    stream: false,
    outputTokens_max: 9,
    dialect,
    lost: (loss: Loss) => void lost.push(loss),
  };
  const body = JSON.parse(JSON.stringify(upstreams.chat.request.encode(request, asking))) as { messages: Json[] };
  return { message: body.messages.find(({ role }) => role === "assistant")!, text: JSON.stringify(body), lost, asking };
}

describe.each(["gemini", "openrouter"] as const)("%s", (name) => {
  const { at, back } = engines[name];

  describe.each(Object.entries(clients))("through a %s client", (_, client) => {
    test.each([true, false])("what it wants back comes back to it (whole: %p)", (whole) => {
      const request = client(answerOf(name, dialects[name], !whole), whole);
      const { message, lost } = asked(request, dialects[name]);
      expect(at(message)).toMatchObject(back);
      expect((message.tool_calls as Json[])[0]).toMatchObject({ id: "g1", function: function_ });
      expect(lost).toEqual([]);
    });

    test.each([true, false])("also where it came late (whole: %p)", (whole) => {
      if (name !== "gemini") return;
      const decoder = upstreams.chat.stream.decoder(identity, { dialect: dialects.gemini });
      const events = lateDeltas.flatMap((delta) => decoder.push({ data: JSON.stringify(delta) }));
      const request = client([...events, ...decoder.push({ data: "[DONE]" })], whole);
      const { message } = asked(request, dialects.gemini);
      expect((message.tool_calls as Json[])[0]).toMatchObject({ function: function_, extra_content: google });
    });

    test("and under no name: an engine without a dialect gets back what it sent", () => {
      const request = client(answerOf(name, dialects.generic, true), false);
      expect(at(asked(request, dialects.generic).message)).toMatchObject(back);
    });

    test("but not to another dialect, protocol or model, where it is said to be lost, and the text stays", () => {
      const request = client(answerOf(name, dialects[name], true), false);
      const other = asked(request, dialects.vllm);
      expect(other.text).not.toContain("AbC");
      expect(other.text).not.toContain("reasoning_details");
      expect(other.lost).toEqual(["carried"]);
      if (name === "openrouter") expect(other.text).toContain('"Hm."');
      for (const codec of [upstreams.messages, upstreams.responses]) {
        const text = JSON.stringify(codec.request.encode(request, other.asking));
        expect(text).not.toMatch(/AbC|c2VydmljZTpjYXJyaWVk/);
        expect(text).toContain("Oslo");
      }
      const moved = { ...request, model: "acme/two" };
      expect(asked(moved, dialects[name]).text).not.toContain("AbC");
    });
  });
});

describe("an opaque value", () => {
  const carried = { model, by: "openrouter", field: "reasoning_details", value: [{ data: "Grüße 🌍" }] };

  test("is read from its signature as it was", () => {
    expect(carriedIn(signatureFor(carried))).toEqual(carried);
  });

  test("is left out where it is too large", () => {
    expect(signatureFor({ ...carried, value: [{ data: "x".repeat(64 * 1024) }] })).toBeUndefined();
  });

  test("comes back up to a mebibyte a request", () => {
    const signature = signatureFor({ ...carried, value: [{ data: "x".repeat(60_000) }] })!;
    const parts = Array.from({ length: 30 }, () => ({ kind: "reasoning" as const, text: "", signature }));
    const request = callers.chat.request.decode({ model, messages: [{ role: "user", content: "hi" }] } as never);
    request.turns = [...request.turns, { role: "assistant", parts }];
    const { message, lost } = asked(request, dialects.openrouter);
    expect(message.reasoning_details).toHaveLength(Math.floor((1024 * 1024) / signature.length));
    expect(lost).toContain("carried");
  });

  test.each([
    ["no JSON", "{"],
    ["a list", "[]"],
    ["no value", JSON.stringify({ ...carried, value: undefined })],
    ["a value of another kind", JSON.stringify({ ...carried, value: "x" })],
    ["a list of texts", JSON.stringify({ ...carried, value: ["x"] })],
    ["a call with a list", JSON.stringify({ ...carried, callId: "c" })],
    ["no model", JSON.stringify({ ...carried, model: 3 })],
  ])("that a client has written is none: %s", (_, json) => {
    expect(carriedIn(btoa(`service:carried.1:${json.replace(/[^ -~]/g, "")}`))).toBeNull();
  });

  test("of a call that is not there is left out", () => {
    const signature = signatureFor({
      model,
      by: "gemini",
      field: "extra_content.google.thought_signature",
      callId: "x",
      value: "y",
    });
    const request = callers.chat.request.decode({ model, messages: [{ role: "user", content: "hi" }] } as never);
    request.turns.push({
      role: "assistant",
      parts: [{ kind: "reasoning", text: "", ...(signature && { signature }) }],
    });
    expect(asked(request, dialects.gemini).lost).toEqual(["carried"]);
  });
});

/**
 * Real streams of chat engines (docs/design/protocols.md, Engine quirks), byte for byte, and the answers that are read
 * from them.
 */
import { describe, expect, test } from "bun:test";
import { openaiChatCaller, openaiChatUpstream } from "../../../../src/core/protocol/openai-chat/codec.ts";
import type { ChatCompletionRequest } from "../../../../src/core/protocol/openai-chat/contract.ts";
import { kindOfRefusal } from "../../../../src/core/upstream/attempt.ts";
import { decodedBytewise, folded } from "../reading.ts";

const identity = { responseId: `chatcmpl-${"0".repeat(31)}1`, createdAtSeconds: 1, model: "acme/writer-1" };

const eventsOf = (raw: string) => decodedBytewise(openaiChatUpstream, identity, raw);

const answerOf = (raw: string) => folded(eventsOf(raw));

const sse = (...chunks: unknown[]) =>
  `${chunks.map((chunk) => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
const delta = (delta: unknown, finish: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});
const call = (fragment: unknown, ...others: unknown[]) => delta({ tool_calls: [fragment, ...others] });
const fn = (name: string | undefined, args: string | undefined) => ({ name, arguments: args });

/** The answer that is read from these chunks, with `[DONE]` at the end. */
const answered = (...chunks: unknown[]) => answerOf(sse(...chunks));

function toolsIn(...chunks: unknown[]) {
  return answered(...chunks).parts.flatMap(({ head, text }) =>
    head.kind === "tool-call" ? [[head.callId, head.toolName, text]] : [],
  );
}

const twoCalls = [
  ["a", "f", '{"x":1}'],
  ["b", "g", '{"y":2}'],
];

describe("tool calls", () => {
  const same: Record<string, unknown[]> = {
    "fragments by index": [
      call({ index: 0, id: "a", function: fn("f", "") }),
      call({ index: 0, function: fn(undefined, '{"x"') }),
      call({ index: 0, function: fn(undefined, ":1}") }),
      call({ index: 1, id: "b", function: fn("g", '{"y":2}') }),
    ],
    "whole calls, one a chunk": [
      call({ index: 0, id: "a", function: fn("f", '{"x":1}') }),
      call({ index: 1, id: "b", function: fn("g", '{"y":2}') }),
    ],
    "two whole calls in one chunk": [
      call({ index: 0, id: "a", function: fn("f", '{"x":1}') }, { index: 1, id: "b", function: fn("g", '{"y":2}') }),
    ],
    "id and name repeated on each fragment": [
      call({ index: 0, id: "a", function: fn("f", '{"x"') }),
      call({ index: 0, id: "a", function: fn("f", ":1}") }),
      call({ index: 1, id: "b", function: fn("g", '{"y"') }),
      call({ index: 1, id: "b", function: fn("g", ":2}") }),
    ],
    "index always 0": [
      call({ index: 0, id: "a", function: fn("f", '{"x":1}') }),
      call({ index: 0, id: "b", function: fn("g", '{"y":2}') }),
    ],
    "index always 0, fragments": [
      call({ index: 0, id: "a", function: fn("f", '{"x"') }),
      call({ index: 0, function: fn(undefined, ":1}") }),
      call({ index: 0, id: "b", function: fn("g", '{"y"') }),
      call({ index: 0, function: fn(undefined, ":2}") }),
    ],
    "no index, two in one chunk": [
      call({ id: "a", function: fn("f", '{"x":1}') }, { id: "b", function: fn("g", '{"y":2}') }),
    ],
    "no index, one a chunk": [
      call({ id: "a", function: fn("f", '{"x":1}') }),
      call({ id: "b", function: fn("g", '{"y":2}') }),
    ],
    interleaved: [
      call({ index: 0, id: "a", function: fn("f", "") }, { index: 1, id: "b", function: fn("g", "") }),
      call({ index: 0, function: fn(undefined, '{"x"') }),
      call({ index: 1, function: fn(undefined, '{"y"') }),
      call({ index: 0, function: fn(undefined, ":1}") }),
      call({ index: 1, function: fn(undefined, ":2}") }),
    ],
    "arguments as an object": [
      call(
        { index: 0, id: "a", function: { name: "f", arguments: { x: 1 } } },
        { index: 1, id: "b", function: { name: "g", arguments: { y: 2 } } },
      ),
    ],
    "the name after the arguments": [
      call({ index: 0, id: "a", function: fn(undefined, '{"x"') }),
      call({ index: 0, function: fn("f", ":1}") }),
      call({ index: 1, id: "b", function: fn("g", '{"y":2}') }),
    ],
  };
  for (const [quirk, chunks] of Object.entries(same)) {
    test(quirk, () => expect(toolsIn(...chunks, delta({}, "tool_calls"))).toEqual(twoCalls));
  }

  test("the same id for two calls is made unique", () => {
    const ids = toolsIn(
      call({ index: 0, id: "a", function: fn("f", "{}") }, { index: 1, id: "a", function: fn("g", "{}") }),
      delta({}, "stop"),
    ).map(([id]) => id);
    expect(ids).toEqual(["a", "a_1"]);
  });

  test("missing ids are made", () => {
    const ids = toolsIn(
      call({ index: 0, function: fn("f", "{}") }, { index: 0, function: fn("g", "{}") }),
      delta({}, "stop"),
    ).map(([id]) => id);
    expect(new Set(ids).size).toBe(2);
    expect(ids.every((id) => /^call_0+1_\d$/.test(id ?? ""))).toBe(true);
  });

  test("finish_reason stop after tool calls means tool_calls", () => {
    expect(answered(call({ index: 0, id: "a", function: fn("f", "{}") }), delta({}, "stop")).reason).toBe("tool_calls");
  });

  test("finish_reason tool_calls without any means stop", () => {
    expect(answered(delta({ content: "hi" }), delta({}, "tool_calls")).reason).toBe("stop");
  });

  test("arguments cut at the token limit are handed on as they are", () => {
    const answer = answered(call({ index: 0, id: "a", function: fn("f", '{"x":') }), delta({}, "length"));
    expect(answer.reason).toBe("length");
    expect(answer.parts[0]?.text).toBe('{"x":');
  });

  test("a call without arguments has an empty object, unless its answer was cut", () => {
    const begun = call({ index: 0, id: "a", function: fn("f", "") });
    expect(toolsIn(begun, delta({}, "tool_calls"))).toEqual([["a", "f", "{}"]]);
    expect(toolsIn(begun, call({ index: 1, id: "b", function: fn("g", undefined) }), delta({}, "stop"))).toEqual([
      ["a", "f", "{}"],
      ["b", "g", "{}"],
    ]);
    expect(toolsIn(begun, delta({}, "length"))).toEqual([["a", "f", ""]]);
    const custom = call({ index: 0, id: "a", type: "custom", custom: { name: "f", input: "" } });
    expect(toolsIn(custom, delta({}, "tool_calls"))).toEqual([["a", "f", ""]]);
  });

  test("text after tool calls is a new part", () => {
    const kinds = answered(
      call({ index: 0, id: "a", function: fn("f", "{}") }),
      delta({ content: "so" }, "stop"),
    ).parts.map((part) => part.head.kind);
    expect(kinds).toEqual(["tool-call", "text"]);
  });

  test("a call that never gets a name is a failure", () => {
    expect(
      eventsOf(sse(call({ index: 0, id: "a", function: fn(undefined, "{}") }), delta({}, "tool_calls"))).at(-1)?.type,
    ).toBe("response-failed");
  });
});

describe("text, reasoning and ends", () => {
  const hello = (raw: string) => answerOf(raw).parts.map(({ head, text }) => [head.kind, text]);
  const helloIn = (...chunks: unknown[]) => hello(sse(...chunks));

  test("a first chunk without choices, empty tool_calls, null content, repeated role", () => {
    const raw = sse(
      { choices: [] },
      delta({ role: "assistant", content: null, tool_calls: [] }),
      delta({ role: "assistant", content: "he" }),
      delta({ role: "assistant", content: "llo", tool_calls: null }),
      delta({}, "stop"),
    );
    expect(hello(raw)).toEqual([["text", "hello"]]);
  });

  test("text, finish_reason and usage in one chunk", () => {
    const answer = answered({
      ...delta({ content: "hello" }, "stop"),
      usage: { prompt_tokens: 3, completion_tokens: 1 },
    });
    expect(answer.parts[0]?.text).toBe("hello");
    expect(answer.usage).toMatchObject({ inputTokens: 3, outputTokens: 1, source: "reported" });
  });

  test("usage after the finish; an explicit 0 stays 0; cached tokens are told apart", () => {
    const late = {
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 4 } },
    };
    expect(answered(delta({ content: "x" }), delta({}, "stop"), late).usage).toMatchObject({
      inputTokens: 6,
      cachedInputTokens: 4,
      outputTokens: 0,
      source: "reported",
    });
  });

  test("usage that says nothing is no report", () => {
    for (const usage of [null, {}, 7, { total_tokens: 9 }, { prompt_tokens: null }]) {
      expect(answered({ ...delta({ content: "x" }, "stop"), usage }).usage.source).toBe("counted");
    }
  });

  test("reasoning under either name; reasoning after text opens a new part", () => {
    expect(
      helloIn(
        delta({ reasoning: "hm" }),
        delta({ reasoning_content: "m" }),
        delta({ content: "a" }),
        delta({ reasoning: "b" }),
        delta({}, "stop"),
      ),
    ).toEqual([
      ["reasoning", "hmm"],
      ["text", "a"],
      ["reasoning", "b"],
    ]);
  });

  test("both names with the same text count once", () => {
    expect(helloIn(delta({ reasoning: "hm", reasoning_content: "hm" }), delta({ content: "a" }, "stop"))).toEqual([
      ["reasoning", "hm"],
      ["text", "a"],
    ]);
  });

  test("CRLF, comments, no space after data:, characters cut in the middle", () => {
    const raw = `: hello\r\ndata:${JSON.stringify(delta({ content: "grüße 🌍" }))}\r\n\r\n: ping\r\n\r\ndata:${JSON.stringify(delta({}, "stop"))}\r\n\r\ndata:[DONE]\r\n\r\n`;
    expect(hello(raw)).toEqual([["text", "grüße 🌍"]]);
  });

  test("[DONE] without a finish_reason ends an answer that had begun", () => {
    expect(answered(delta({ content: "hello" })).reason).toBe("stop");
  });

  test("[DONE] without a finish_reason ends no answer whose call is cut", () => {
    const cut = sse(call({ index: 0, id: "a", function: fn("f", '{"x"') }));
    expect(eventsOf(cut).at(-1)?.type).toBe("response-failed");
    const whole = sse(call({ index: 0, id: "a", function: fn("f", '{"x":1}') }));
    expect(answerOf(whole).reason).toBe("tool_calls");
  });

  test("an unknown finish_reason ends an answer with [DONE] alone, and is told", () => {
    const chunks = [delta({ content: "a" }), delta({}, "some_new_word")].map(
      (one) => `data: ${JSON.stringify(one)}\n\n`,
    );
    expect(eventsOf(chunks.join("")).at(-1)?.type).toBe("response-failed");
    expect(eventsOf(`${chunks.join("")}data: [DONE]\n\n`).at(-1)).toEqual({
      type: "response-end",
      reason: "stop",
      unknownReason: "some_new_word",
    });
  });

  test("a finish_reason of Gemini counts without the word that it adds", () => {
    const ended = (reason: string) => eventsOf(sse(delta({ content: "a" }), delta({}, reason))).at(-1);
    for (const word of ["PROHIBITED_CONTENT", "SAFETY", "RECITATION", "SOME_NEW_WORD"])
      expect(ended(`content_filter: ${word}`)).toEqual({ type: "response-end", reason: "content_filter" });
    for (const word of ["MALFORMED_FUNCTION_CALL", "SOME_NEW_WORD"])
      expect(ended(`function_call_filter: ${word}`)?.type).toBe("response-failed");
  });

  test("a finish_reason without [DONE] ends it too", () => {
    expect(answerOf(`data: ${JSON.stringify(delta({ content: "hello" }, "stop"))}\n\n`).reason).toBe("stop");
  });

  test("the matched stop sequence is kept", () => {
    expect(answered(delta({ content: "x" }), delta({}, "stop", { stop_reason: "END" })).stopSequence).toBe("END");
    expect(answered(delta({ content: "x" }), delta({}, "stop", { matched_stop: "END" })).stopSequence).toBe("END");
  });
});

describe("log probabilities", () => {
  const token = (text: string) => ({ token: text, logprob: -0.5, bytes: [...new TextEncoder().encode(text)] });
  const withTop = (text: string, count: number) => ({
    logprobs: { content: [{ ...token(text), id: 7, top_logprobs: Array(count).fill(token("x")) }] },
  });
  const asked = (fields: object) => {
    const wire = { model: "acme/writer-1", messages: [], ...fields } as unknown as ChatCompletionRequest;
    const events = eventsOf(
      sse(
        delta({ role: "assistant", content: null }),
        delta({ content: "a" }, null, withTop("a", 20)),
        delta({}, "stop"),
      ),
    );
    const encoder = openaiChatCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
    const streamed = events
      .flatMap((event) => encoder.push(event))
      .filter(({ data }) => data?.startsWith("{"))
      .flatMap(({ data }) => JSON.parse(data ?? "").choices[0]?.logprobs?.content ?? []);
    const whole = openaiChatCaller.response.encode(folded(events), wire).choices[0]?.logprobs?.content ?? [];
    expect(streamed).toEqual(whole);
    return whole.map((each) => each.top_logprobs.length);
  };

  test("an engine that gives 20 alternatives unasked (llama.cpp): the caller sees as many as it asked for", () => {
    expect(asked({ logprobs: true })).toEqual([0]);
    expect(asked({ logprobs: true, top_logprobs: 3 })).toEqual([3]);
    expect(asked({})).toEqual([]);
  });

  test("those of reasoning and of calls (llama.cpp sends them beside every delta) open no text", () => {
    const kinds = answered(
      delta({ role: "assistant", content: null }, null, withTop("<think>", 1)),
      delta({ reasoning_content: "h" }, null, withTop("h", 1)),
      delta({ reasoning_content: "m" }, null, withTop("m", 1)),
      delta({ content: "a" }, null, withTop("a", 1)),
      call({ index: 0, id: "a", function: fn("f", "{}") }),
      delta({ tool_calls: [{ index: 0, function: fn(undefined, "") }] }, null, withTop("}", 1)),
      delta({}, "tool_calls"),
    ).parts.map(({ head, text, logprobs }) => [head.kind, text, logprobs?.map((each) => each.token).join("")]);
    expect(kinds).toEqual([
      ["reasoning", "hm", undefined],
      ["text", "a", "a"],
      ["tool-call", "{}", undefined],
    ]);
  });

  test("tokens whose text comes later, because a character is not whole, keep theirs", () => {
    const [part] = answered(
      delta({ role: "assistant", content: null }, null, withTop("", 1)),
      delta({ content: "" }, null, withTop("<0xC3>", 1)),
      delta({ content: "ü" }, null, withTop("<0xBC>", 1)),
      delta({}, "stop"),
    ).parts;
    expect(part?.text).toBe("ü");
    expect(part?.logprobs?.map((each) => each.token)).toEqual(["", "<0xC3>", "<0xBC>"]);
  });

  test("a token without text at the end is a marker, and nobody's", () => {
    const [part] = answered(
      delta({ role: "assistant", content: "a" }, null, withTop("a", 1)),
      delta({ content: "" }, null, withTop("<|end|>", 1)),
      delta({}, "stop"),
    ).parts;
    expect([part?.text, part?.logprobs?.map((each) => each.token)]).toEqual(["a", ["a"]]);
  });
});

describe("what engines are asked, in words that they understand", () => {
  const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
  const asked = (fields: object) => {
    const wire = { model: "acme/writer-1", messages: [{ role: "user", content: "hi" }], ...fields };
    const request = openaiChatCaller.request.decode(wire as unknown as ChatCompletionRequest);
    const body = openaiChatUpstream.request.encode(request, { model: "m", stream: false, outputTokens_max: 100 });
    return JSON.parse(JSON.stringify(body));
  };

  test("a tool that must be called is the only one, required: llama.cpp takes a named choice for 'auto'", () => {
    const tools = [tool("f"), tool("g")];
    expect(asked({ tools, tool_choice: { type: "function", function: { name: "g" } } })).toMatchObject({
      tools: [tool("g")],
      tool_choice: "required",
      parallel_tool_calls: false,
    });
    expect(asked({ tools, tool_choice: "required" })).toMatchObject({ tools, tool_choice: "required" });
    expect(asked({ tools, tool_choice: "required" })).not.toHaveProperty("parallel_tool_calls");
  });

  test("a replayed call without arguments has an empty object: llama.cpp answers 500 to what is no JSON", () => {
    const calls = (written: string) => [{ id: "a", type: "function", function: { name: "f", arguments: written } }];
    const replayed = (written: string) => {
      const messages = [
        { role: "user", content: "hi" },
        { role: "assistant", content: null, tool_calls: calls(written) },
        { role: "tool", tool_call_id: "a", content: "x" },
      ];
      return asked({ messages }).messages[1].tool_calls;
    };
    expect(replayed("")).toEqual(calls("{}"));
    expect(replayed(" ")).toEqual(calls("{}"));
    expect(replayed('{"x": 1}')).toEqual(calls('{"x": 1}'));
  });
});

describe("a refusal of the request's own content that an engine calls a failure of its own (llama.cpp: 500)", () => {
  const said = (message: string, status = 500) =>
    openaiChatUpstream.fault.decode(status, { error: { code: status, message, type: "server_error" } });

  test("is the caller's to change, and not to be tried again", () => {
    for (const message of [
      "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1",
      "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
      "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
      "Failed to load image or audio file",
      "Failed to parse messages: Unsupported content part type",
    ]) {
      const fault = said(message);
      expect([message, fault.code, fault.details.param]).toEqual([message, "invalid_value", "messages"]);
      expect(fault.message).not.toMatch(/json|mmproj|hint/i);
    }
  });

  test("any other 500 is a failure", () => {
    for (const message of ["CUDA error", "The model produced output that does not match the expected format", ""])
      expect(said(message).code).toBe("upstream_unavailable");
    expect(said("Failed to load image or audio file", 503).code).toBe("overloaded");
  });
});

describe("failures", () => {
  test("an engine's 503 for a full queue is that it is full, not that it is ill", () => {
    const messages = [
      ...["The request queue is full.", "The request is aborted by a higher priority request.", "Request queue full."],
      "Service temporarily unavailable: All workers are busy, please retry later",
      "ResourceExhausted: Worker local total request limit reached (34/32)",
      // Messages of exceptions in vLLM 0.33.
      "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.",
      "The engine has reached its prefill token backlog limit. Please try again later or on a different instance.",
    ];
    for (const message of messages) {
      const fault = openaiChatUpstream.fault.decode(503, {
        error: { message, type: "Service Unavailable", code: 503 },
      });
      expect([message, fault.code, kindOfRefusal(503, fault)]).toEqual([message, "capacity_exceeded", "busy"]);
    }
    for (const message of ["Loading model", "CUDA error", ""]) {
      const fault = openaiChatUpstream.fault.decode(503, { error: { message } });
      expect([message, fault.code, kindOfRefusal(503, fault)]).toEqual([message, "overloaded", "failed"]);
    }
  });

  const failures: Record<string, string> = {
    "neither finish_reason nor [DONE]": `data: ${JSON.stringify(delta({ content: "hello" }))}\n\n`,
    "[DONE] and nothing else": "data: [DONE]\n\n",
    nothing: "",
    "a chunk that is no JSON": "data: {oops\n\n",
    "an error object": `data: {"error":{"message":"secret-host:8000 died","code":500}}\n\n`,
    "an error object with an integer code, then [DONE]": sse({ object: "error", message: "boom", code: 400 }),
    "an error as detail": sse({ detail: "boom" }),
    "an error after text": sse(delta({ content: "a" }), { error: "boom" }),
    "an event named error, then [DONE]": `${sse(delta({ content: "a" })).replace("data: [DONE]\n\n", "")}event: error\ndata: {"code":500,"message":"boom"}\n\ndata: [DONE]\n\n`,
    "an aborted generation": sse(delta({ content: "a" }), delta({}, "abort")),
  };
  for (const [quirk, raw] of Object.entries(failures)) {
    test(`${quirk} is a failure that tells nothing of the engine`, () => {
      const last = eventsOf(raw).at(-1);
      if (last?.type !== "response-failed") throw new Error(`expected a failure, got ${last?.type}`);
      expect(last.fault.message).not.toMatch(/secret|boom|8000/);
    });
  }
});

/**
 * Chunks recorded with model.py of test/clients/transformers; docs/engines.md describes further behaviour of this
 * server.
 */
describe("transformers serve 5.23.0", () => {
  const chunk = (delta: string, more = "") =>
    `data: {"id":"ab2b2bb6","choices":[{"delta":${delta},"index":0${more}}],"created":1795251358,"model":"tiny/parrot@main","object":"chat.completion.chunk","system_fingerprint":""}\n\n`;
  const role = chunk(`{"role":"assistant"}`);

  test("an error as bare text, whose quotes and line ends nobody escaped, after a head that promised an answer", () => {
    for (const said of [
      "`penalty` has to be a strictly positive float, but is 0.0",
      `cannot find "secret-model" in "/secret/path"`,
      "CUDA error\n\nsecret: device-side assert",
      "",
    ]) {
      const events = eventsOf(`${role}data: {"error": "${said}"}\n\n`);
      const last = events.at(-1);
      if (last?.type !== "response-failed") throw new Error(`expected a failure, got ${last?.type}`);
      expect(last.fault.code).toBe("upstream_unavailable");
      expect(last.fault.message).not.toMatch(/secret|penalty|CUDA/);
      // No part of an answer has begun, so another route could still be tried, and the status is not sent yet.
      expect(events.some((event) => event.type === "part-start")).toBe(false);
    }
  });
});

/** Chunks recorded with test/clients/engine; docs/engines.md describes further behaviour of this server. */
describe("llama-server of llama-cpp-python 0.3.36", () => {
  const end = `"created":1795251452,"id":"chatcmpl-Ik40","model":"m","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"`;
  const chunk = (delta: string, finish = "null", more = "") =>
    `data: {"choices":[{"finish_reason":${finish},"index":0,"delta":${delta}${more}}],${end}}\n\n`;
  const role = chunk(`{"role":"assistant","content":null}`);
  const usage = `data: {"choices":[],${end},"usage":{"completion_tokens":6,"prompt_tokens":27,"total_tokens":33,"prompt_tokens_details":{"cached_tokens":26}},"timings":{"cache_n":26,"prompt_n":1,"predicted_per_second":81.18}}\n\n`;
  const done = "data: [DONE]\n\n";

  test("a call cut in its head leaves an answer of nothing, which is an answer and no failure", () => {
    expect(answerOf(role + chunk("{}", `"length"`) + usage + done)).toMatchObject({ parts: [], reason: "length" });
    // All tokens were bytes that never became a character, so not even the role was sent.
    expect(answerOf(chunk("{}", `"length"`) + usage + done)).toMatchObject({ parts: [], reason: "length" });
  });

  test("the probabilities of a hidden </think> stand beside the role, and are nobody's", () => {
    const beside = (text: string) =>
      `,"logprobs":{"content":[{"id":262,"token":"${text}","bytes":[60],"logprob":-7.7,"top_logprobs":[]}]}`;
    const raw =
      chunk(`{"role":"assistant","content":null}`, "null", beside("<think>")) +
      chunk(`{"reasoning_content":" hm"}`, "null", beside(" hm")) +
      chunk(`{"content":" so"}`, "null", beside(" so")) +
      chunk("{}", `"stop"`) +
      done;
    expect(answerOf(raw).parts.map((part) => part.logprobs?.map((each) => each.token))).toEqual([undefined, [" so"]]);
  });
});

test("a finish_reason that every object has is one that nobody knows", () => {
  for (const reason of ["constructor", "toString", "__proto__"]) {
    expect(answered(delta({ content: "hello" }, reason)).reason).toBe("stop");
  }
});

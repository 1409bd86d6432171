/** Answers that Responses clients get: streams, whole objects, failures, and the form in which answers are stored. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent, PartHead } from "../../../../src/core/inference/event.ts";
import { Fault } from "../../../../src/core/inference/fault.ts";
import { CustomInput, customArguments, customInputOf } from "../../../../src/core/protocol/custom-tool.ts";
import type { ResponseObject } from "../../../../src/core/protocol/openai-responses/contract.ts";
import { withResolved } from "../../../../src/core/protocol/openai-responses/references.ts";
import { encodeSse, SseDecoder } from "../../../../src/core/sse/decode.ts";
import { historyOf, itemOf, storable } from "../../../../src/features/responses/kept-items.ts";
import { endingOf } from "../../../../src/features/responses/replay.ts";
import { cutAt } from "../../../harness/cut.ts";
import { faultOf } from "../../../harness/faults.ts";
import { callers, upstreams, validated } from "../codecs.ts";
import { begin, call, failed, finish, over, part, piece, text, writtenBy } from "../events.ts";
import { forAll } from "../for-all.ts";
import { folded, streamProblem } from "../reading.ts";

const responseId = `resp_${"a".repeat(32)}`;
const identity = { responseId, createdAtSeconds: 1_790_000_000, model: "acme/writer-1" };
const requestId = `req_${"b".repeat(32)}`;
const start: InferenceEvent = { type: "response-start", ...identity };
const request = (more: object = {}) => validated.responses({ model: "acme/writer-1", input: "hello", ...more });
const encoderOf = (wire = request()) =>
  callers.responses.stream.encoder(wire, { requestId, identity, inputTokensEstimate: 1 });

function streamed(wire: ReturnType<typeof request>, ...events: InferenceEvent[]) {
  const encoder = encoderOf(wire);
  const frames = writtenBy(encoder, events);
  expect(streamProblem("responses", frames)).toBeNull();
  return frames.slice(0, -1).map(({ data }) => JSON.parse(data));
}

function whole(wire: ReturnType<typeof request>, ...events: InferenceEvent[]): ResponseObject {
  return callers.responses.response.encode(folded(events), wire);
}

describe("the way back of tools", () => {
  const tools = [
    { type: "namespace", name: "agents", tools: [{ type: "function", name: "spawn" }] },
    { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark", definition: "x" } },
    { type: "namespace", name: "functions", tools: [{ type: "custom", name: "exec" }] },
  ];

  test("a namespaced tool is called by its own name and its namespace", () => {
    const events = [start, ...part(0, call("agents__spawn"), '{"a"', ":1}"), over("tool_calls")];
    const item = { type: "function_call", call_id: "c1", name: "spawn", namespace: "agents", arguments: '{"a":1}' };
    expect(whole(request({ tools }), ...events).output).toMatchObject([item]);
    const done = streamed(request({ tools }), ...events).find(({ type }) => type.endsWith("arguments.done"));
    expect(done).toMatchObject({ name: "spawn", arguments: '{"a":1}' });
  });

  test("a custom tool is called with its plain text, told piece by piece", () => {
    const events = [
      start,
      ...part(0, call("apply_patch"), '{"in', 'put":"*** Begin\\n', "+\\u00e", '9\\"', '"}'),
      over("tool_calls"),
    ];
    const input = '*** Begin\n+é"';
    const told = streamed(request({ tools }), ...events);
    const pieces = told.filter(({ type }) => type === "response.custom_tool_call_input.delta");
    expect(pieces.map(({ delta }) => delta)).toEqual(["*** Begin\n", "+", 'é"']);
    expect(told.at(-1).response.output).toMatchObject([{ type: "custom_tool_call", name: "apply_patch", input }]);
    expect(told.at(-1).response.output[0]).not.toHaveProperty("namespace");
    expect(whole(request({ tools }), ...events).output).toMatchObject([
      { type: "custom_tool_call", call_id: "c1", input },
    ]);
  });

  test("tools of the namespace functions are called by their bare names, which is what Codex expects", () => {
    const input = [
      { type: "additional_tools", role: "developer", tools },
      { role: "user", content: "go" },
    ];
    const events = [start, ...part(0, call("exec"), customArguments("ls")), over("tool_calls")];
    const [item] = whole(request({ input }), ...events).output;
    expect(item).toMatchObject({ type: "custom_tool_call", name: "exec", input: "ls" });
    expect(item).not.toHaveProperty("namespace");
  });

  test("what is left of a request, of which nothing is stored, knows the tools of its conversation and none of its words", () => {
    const input = [
      { type: "additional_tools", role: "developer", tools },
      { role: "user", content: "a secret" },
    ];
    const asked = request({ input, store: false, previous_response_id: responseId });
    const known = withResolved(asked, {
      history: [{ type: "message", role: "user", content: "another" }],
      items: new Map(),
    });
    const rest = callers.responses.request.remainder(known);
    const events = [start, ...part(0, call("agents__spawn"), "{}"), over("tool_calls")];
    expect(whole(rest, ...events)).toEqual(whole(known, ...events));
    expect(streamed(rest, ...events)).toEqual(streamed(known, ...events));
    expect(JSON.stringify(rest)).not.toContain("secret");
    const stored = request({ input });
    expect(callers.responses.request.remainder(stored)).toBe(stored);
  });

  test("an engine that speaks of namespaces and custom tools itself is taken at its word", () => {
    const head: PartHead = { kind: "tool-call", callId: "c1", toolName: "spawn", namespace: "agents", custom: true };
    const [item] = whole(request({ tools }), start, ...part(0, head, '{"input":"x"}'), over("tool_calls")).output;
    expect(item).toMatchObject({
      type: "custom_tool_call",
      name: "spawn",
      namespace: "agents",
      input: '{"input":"x"}',
    });
  });

  test("any text survives being an argument, however it is cut", () => {
    forAll(
      [fc.string({ unit: "binary" }), fc.array(fc.nat(), { maxLength: 8 }), fc.boolean()],
      200,
      (text, cuts, ascii) => {
        const json = customArguments(text);
        const written = ascii
          ? json.replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`)
          : json;
        const reader = new CustomInput();
        const pieces = cutAt(written, cuts).map((piece) => reader.push(piece));
        expect(pieces.join("") + reader.end()).toBe(text);
      },
    );
  });

  test.each([
    ["", ""],
    ["{}", ""],
    ["*** Begin Patch", "*** Begin Patch"],
    ['"ls"', "ls"],
    ['{"cmd":"ls"}', "ls"],
    ['{"why":"x","input":"ls"}', "ls"],
    ['{"input":3}', '{"input":3}'],
    ['{"input":"half', "half"],
    ["[1]", "[1]"],
  ])("what an engine wrote for a custom tool, %j, is %j", (written, input) => {
    expect(customInputOf(written)).toBe(input);
    const reader = new CustomInput();
    expect([...written].map((letter) => reader.push(letter)).join("") + reader.end()).toBe(input);
  });
});

describe("items that an engine tells side by side", () => {
  /** The client's events for each of the answer's events, abbreviated. */
  const heard = (...events: InferenceEvent[]) => {
    const encoder = encoderOf();
    return events.map((event) =>
      encoder.push(event).flatMap(({ data }) => {
        if (data === "[DONE]") return [];
        const { type, output_index, delta } = JSON.parse(data);
        return /added|delta|item.done/.test(type)
          ? [[type.split(".").at(-1), output_index, delta].join(" ").trim()]
          : [];
      }),
    );
  };

  test("come one at a time: the first as it comes, the next when it is whole, though its end was not told", () => {
    const steps: [InferenceEvent, string[]][] = [
      [start, []],
      [begin(0, call("f", "c1")), ["added 0"]],
      [piece(0, '{"x"'), ['delta 0 {"x"']],
      [begin(1, call("g", "c2")), []],
      [piece(1, '{"y"'), []],
      [piece(1, ":2"), []],
      // This fragment of the first call comes late.
      [piece(0, ":1}"), ["delta 0 :1}", "done 0", "added 1", 'delta 1 {"y":2']],
      // The fragment belongs to a call that is already done, so no event is sent that the client could run.
      [piece(0, "\n}"), []],
      [piece(1, "}"), ["delta 1 }"]],
      [finish(1), []],
      [finish(0), []],
      [over("tool_calls"), ["done 1"]],
    ];
    expect(heard(...steps.map(([event]) => event))).toEqual(steps.map(([, said]) => said));
  });

  test("and whose stream fails: what had not begun to be told is nowhere, what had not ended is not done", () => {
    const told = streamed(
      request(),
      ...[start, begin(0, call("f", "c1")), piece(0, '{"x"'), begin(1, call("g", "c2")), piece(1, "{}"), finish(1)],
      failed(new Fault("overloaded", "Busy.")),
    );
    expect(told.filter(({ type }) => type.endsWith("item.added")).map(({ item }) => item.call_id)).toEqual(["c1"]);
    expect(told.some(({ type }) => type.endsWith("item.done"))).toBe(false);
    expect(told.at(-1).response.output).toMatchObject([{ call_id: "c1", status: "incomplete", arguments: '{"x"' }]);
  });

  test("keep their log probabilities, pieces that waited too", () => {
    const logprobs = (token: string) => [{ token, logprob: -1, bytes: null, top_logprobs: [] }];
    const told = streamed(
      request({ top_logprobs: 0, include: ["message.output_text.logprobs"] }),
      ...[start, begin(0, call("f", "c1")), begin(1, text)],
      piece(1, "a", { logprobs: logprobs("a") }),
      piece(1, "b", { logprobs: logprobs("b") }),
      ...[piece(0, "{}"), finish(0), finish(1)],
      over("stop"),
    );
    const deltas = told.filter(({ type }) => type === "response.output_text.delta");
    expect(deltas.map(({ delta, logprobs }) => [delta, logprobs[0].token])).toEqual([
      ["a", "a"],
      ["b", "b"],
    ]);
  });
});

describe("the end", () => {
  test("an item that the limit cut is incomplete and last, whatever else was open", () => {
    const events = [
      start,
      begin(0, call("f", "c1")),
      begin(1, call("g", "c2")),
      piece(1, '{"y'),
      piece(0, "{}"),
      finish(0),
      finish(1),
      over("length"),
    ];
    const last = streamed(request(), ...events).at(-1);
    expect(last.type).toBe("response.incomplete");
    expect(last.response.incomplete_details).toEqual({ reason: "max_output_tokens" });
    expect(last.response.output.map((item: { status: string }) => item.status)).toEqual(["completed", "incomplete"]);
    expect(last.response.output[1].arguments).toBe('{"y');
  });

  test("usage has all its keys, and cached tokens within the input", () => {
    const usage = {
      inputTokens: 5,
      cachedInputTokens: 7,
      cacheWriteTokens: 2,
      outputTokens: 4,
      reasoningTokens: 3,
      source: "reported",
    } as const;
    expect(whole(request(), start, { type: "usage", usage }, over("stop")).usage).toEqual({
      input_tokens: 14,
      input_tokens_details: { cached_tokens: 7, cache_write_tokens: 2 },
      output_tokens: 4,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 18,
    });
  });

  test.each([
    [new Fault("capacity_exceeded", "Busy.", { retryAfterSeconds: 7 }), "rate_limit_exceeded"],
    [new Fault("usage_limit_reached", "Full."), "insufficient_quota"],
    [new Fault("context_length_exceeded", "Long."), "context_length_exceeded"],
    [new Fault("invalid_value", "Bad."), "invalid_prompt"],
    [new Fault("upstream_unavailable", "Away.", { retryAfterSeconds: 1 }), "server_error"],
    [new Fault("internal_error", "Broken."), "server_error"],
  ])("a failure is one that Codex knows: %s", (fault, code) => {
    const told = streamed(request(), start, ...part(0, call("f"), "{}"), failed(fault));
    const { type, response } = told.at(-1);
    expect([type, response.status, response.error.code]).toEqual(["response.failed", "failed", code]);
    expect(response.error.request_id).toBe(requestId);
    if (code === "rate_limit_exceeded") expect(response.error.message).toContain("try again in 7s");
    // Codex runs each item that is done, and would run it again when it repeats the request.
    expect(told.some((event) => event.type === "response.output_item.done")).toBe(false);
  });

  test("a failure before anything, and events without an end, are whole streams that failed", () => {
    const fault = new Fault("overloaded", "Busy.");
    expect(streamed(request(), failed(fault)).map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.failed",
    ]);
    expect(streamed(request(), start).at(-1).type).toBe("response.failed");
    expect(streamed(request()).at(-1).type).toBe("response.failed");
  });

  test("a stream that another node ends has what was written of each item, calls and texts alike", () => {
    const wire = request({ tools: [{ type: "custom", name: "patch" }] });
    const cut = (head: PartHead, ...deltas: string[]): ResponseObject => {
      const encoder = encoderOf(wire);
      const events = [start, ...part(0, text, "whole"), ...part(1, head, ...deltas)];
      const sent = events.slice(0, -1).flatMap((event) => encoder.push(event));
      const ending = endingOf({ operation: "responses" }, wire, identity);
      ending.saw(sent.map(encodeSse).join(""));
      const frames = ending.end(new Fault("overloaded", "Busy."), requestId);
      const [failed, end] = frames.trim().split("\n\n");
      expect([failed?.split("\n")[0], end]).toEqual(["event: response.failed", "data: [DONE]"]);
      return JSON.parse(failed!.split("\ndata: ")[1]!).response;
    };
    const done = { status: "completed", content: [{ type: "output_text", text: "whole" }] };
    expect(cut(call("look"), '{"x', '":1').output).toMatchObject([
      done,
      { type: "function_call", status: "incomplete", arguments: '{"x":1' },
    ]);
    expect(cut(call("patch"), `{"input":"a`, `b`).output).toMatchObject([
      done,
      { type: "custom_tool_call", input: "ab" },
    ]);
    expect(cut(text, "be", "gun").output).toMatchObject([done, { status: "incomplete", content: [{ text: "begun" }] }]);
  });

  test("a silent model is heard of: created first, then in_progress, and the numbers go on", () => {
    const encoder = encoderOf();
    const beats = encoder.heartbeat() + encoder.heartbeat();
    const frames = [
      ...new SseDecoder().push(new TextEncoder().encode(beats)),
      ...encoder.push(start),
      ...new SseDecoder().push(new TextEncoder().encode(encoder.heartbeat())),
      ...encoder.push(over("stop")),
    ];
    expect(frames.map(({ event }) => event)).toEqual([
      "response.created",
      "response.in_progress",
      "response.in_progress",
      "response.in_progress",
      "response.completed",
      undefined,
    ]);
    expect(streamProblem("responses", frames)).toBeNull();
    expect(encoder.heartbeat()).toBe("");
  });

  test("an error outside a stream has the envelope of chat, and the type by which Codex knows its limit", () => {
    const body = { window: "week", resets_at: 1, plan_type: "pro" };
    expect(callers.responses.fault.encode(new Fault("usage_limit_reached", "Full.", { body }), requestId)).toEqual({
      error: {
        message: "Full.",
        type: "usage_limit_reached",
        param: null,
        code: "usage_limit_reached",
        request_id: requestId,
        ...body,
      },
    });
    expect(callers.responses.fault.encode(new Fault("overloaded", "Busy."), requestId)).toMatchObject({
      error: { type: "api_error", code: "overloaded" },
    });
  });

  test("an input that is too long is said of the input, whatever the engine calls it", () => {
    const fault = upstreams.responses.fault.decode(400, { error: { message: "prompt is too long" } });
    expect(callers.responses.fault.encode(fault, requestId)).toMatchObject({
      error: { code: "context_length_exceeded", param: "input" },
    });
  });

  test("log probabilities are shown to whoever asked, as many as were asked for", () => {
    const token = (token: string) => ({ token, logprob: -1, bytes: null });
    const logprobs = [{ ...token("a"), top_logprobs: [token("a"), token("b")] }];
    const events = [start, begin(0, text), piece(0, "a", { logprobs }), finish(0), over("stop")];
    const shown = (more: object) => streamed(request(more), ...events).at(-1).response.output[0].content[0].logprobs;
    expect(shown({})).toEqual([]);
    expect(shown({ top_logprobs: 1 })).toEqual([
      { token: "a", logprob: -1, bytes: [], top_logprobs: [{ token: "a", logprob: -1, bytes: [] }] },
    ]);
    expect(shown({ include: ["message.output_text.logprobs"] })[0].top_logprobs).toEqual([]);
  });
});

describe("reasoning", () => {
  const thinks: InferenceEvent[] = [
    start,
    ...part(0, { kind: "reasoning" }, "Let me", " think."),
    ...part(1, text, "So be it."),
    over("stop"),
  ];
  const thought = "Let me think.";
  const types = (told: { type: string; output_index?: number }[]) =>
    told.filter(({ output_index }) => output_index === 0).map(({ type }) => type.replace("response.", ""));

  test.each([{ summary: "auto" }, { summary: "detailed", effort: "low" }, { generate_summary: "concise" }])(
    "where %j is asked for, it is told as a summary, streamed and whole",
    (reasoning) => {
      const told = streamed(request({ reasoning }), ...thinks);
      expect(types(told)).toEqual([
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
      ]);
      const [added, begun, first] = told.slice(2);
      expect(added.item).toMatchObject({ type: "reasoning", summary: [], content: [] });
      const place = { item_id: added.item.id, output_index: 0, summary_index: 0 };
      expect(begun).toMatchObject({ ...place, part: { type: "summary_text", text: "" } });
      expect(first).toMatchObject({ ...place, delta: "Let me" });
      const ended = told.at(-1).response;
      expect(ended.output[0]).toMatchObject({ summary: [{ type: "summary_text", text: thought }], content: [] });
      expect(ended.output).toEqual(whole(request({ reasoning }), ...thinks).output);
      const wanted = reasoning.summary ?? reasoning.generate_summary;
      for (const { response } of told.filter((event) => event.response))
        expect(response.reasoning).toEqual({ effort: reasoning.effort ?? null, summary: wanted });
    },
  );

  test.each([undefined, null, {}, { effort: "low" }, { summary: null, generate_summary: null }])(
    "where %j is, it is told as the model's own text",
    (reasoning) => {
      const told = streamed(request({ reasoning }), ...thinks);
      expect(types(told).filter((type) => type.includes("summary"))).toEqual([]);
      const { output, reasoning: shown } = told.at(-1).response;
      expect(output[0]).toMatchObject({ summary: [], content: [{ type: "reasoning_text", text: thought }] });
      expect(shown).toMatchObject({ summary: null });
    },
  );

  test("of which there is none has no summary", () => {
    const events = [start, ...part(0, { kind: "reasoning", encrypted: "E" }), over("stop")];
    const told = streamed(request({ reasoning: { summary: "auto" } }), ...events);
    expect(types(told)).toEqual(["output_item.added", "output_item.done"]);
    expect(told.at(-1).response.output[0]).toMatchObject({ summary: [], content: [] });
  });

  test("what is no wish for a summary is refused by its path", () => {
    for (const key of ["summary", "generate_summary"])
      expect(() => request({ reasoning: { [key]: "long" } })).toThrow(`reasoning.${key}`);
  });
});

describe("reasoning comes back", () => {
  const back = (
    wire: ReturnType<typeof request>,
    event: InferenceEvent[],
    forget: boolean | "content" | "encrypted_content",
    model = "acme/writer-1",
  ) => {
    const [item] = whole(wire, start, ...event, over("stop")).output as unknown as Record<string, unknown>[];
    const forgotten = forget === true ? { content: undefined } : forget ? { [forget]: undefined } : {};
    const input = [
      { ...item, ...forgotten },
      { role: "user", content: "go on" },
    ];
    const turns = callers.responses.request.decode(
      validated.responses(JSON.parse(JSON.stringify({ model, input }))),
    ).turns;
    return turns[0]?.role === "assistant" ? turns[0].parts[0] : null;
  };
  const signed: InferenceEvent[] = [...part(0, { kind: "reasoning" }, "hm").slice(0, 2), finish(0, { signature: "S" })];

  test("an engine's signature, with its text, though the client forgets the text", () => {
    for (const forget of [true, false])
      expect(back(request(), signed, forget)).toEqual({ kind: "reasoning", text: "hm", signature: "S" });
  });

  test("a summary, once, whatever else the client keeps of the item", () => {
    const include = ["reasoning.encrypted_content"];
    const wire = request({ reasoning: { summary: "auto" }, include });
    for (const forget of [false, "content", "encrypted_content"] as const) {
      expect(back(wire, part(0, { kind: "reasoning" }, "hm"), forget)).toEqual({ kind: "reasoning", text: "hm" });
      const signature = forget === "encrypted_content" ? {} : { signature: "S" };
      expect(back(wire, signed, forget)).toEqual({ kind: "reasoning", text: "hm", ...signature });
    }
  });

  test("what an engine encrypted", () => {
    const events = part(0, { kind: "reasoning", encrypted: "E" });
    expect(back(request(), events, true)).toEqual({ kind: "reasoning", text: "", encrypted: "E" });
  });

  test("the text of reasoning that nobody signed, where the client keeps encrypted content alone", () => {
    const events = part(0, { kind: "reasoning" }, "hm");
    const wire = request({ include: ["reasoning.encrypted_content"] });
    expect(back(wire, events, true)).toEqual({ kind: "reasoning", text: "hm" });
    expect(back(request(), events, true)).toBeNull();
  });

  test("no proof goes to another model than the one that gave it, and what others encrypted goes nowhere", () => {
    expect(back(request(), signed, true, "acme/other")).toEqual({ kind: "reasoning", text: "hm" });
    const input = [
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAAforeign" },
      { role: "user", content: "a" },
    ];
    expect(callers.responses.request.decode(request({ input })).turns).toHaveLength(1);
  });
});

describe("state", () => {
  test("reasoning that was told as a summary is kept, and reaches the engine once", () => {
    const wire = request({ reasoning: { summary: "auto" } });
    const told = whole(wire, start, ...part(0, { kind: "reasoning" }, "hm"), ...part(1, text, "yes"), over("stop"));
    const turn = storable(wire, told)!;
    const byId = request({ previous_response_id: responseId, input: "more" });
    const items = new Map(told.output.map(({ id }) => [id, itemOf(turn, id)!]));
    const references = told.output.map(({ id }) => ({ type: "item_reference", id }));
    const byItems = request({
      input: [{ role: "user", content: "hello" }, ...references, { role: "user", content: "more" }],
    });
    for (const whole of [
      withResolved(byId, { history: historyOf([turn]), items: new Map() }),
      withResolved(byItems, { history: null, items }),
    ]) {
      const { turns } = callers.responses.request.decode(whole);
      expect(turns[1]).toEqual({
        role: "assistant",
        parts: [
          { kind: "reasoning", text: "hm" },
          { kind: "text", text: "yes" },
        ],
      });
    }
  });

  test("what was never looked up is not guessed", () => {
    const byId = request({ previous_response_id: "resp_x" });
    const byItem = request({
      input: [
        { role: "user", content: "a" },
        { type: "item_reference", id: "msg_1" },
      ],
    });
    for (const [wire, param] of [
      [byId, "previous_response_id"],
      [byItem, "input[1].id"],
    ] as const)
      expect(faultOf(() => callers.responses.request.decode(wire))).toMatchObject({
        ...{ code: "previous_response_not_found", details: { param } },
      });
  });
});

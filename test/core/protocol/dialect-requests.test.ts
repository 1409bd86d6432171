/**
 * Requests in the dialects of engines: they differ as the dialect's rows say, and lose only what docs/protocols.md
 * lists. The cases are those of public reports (issue 50).
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { AssistantPart, InferenceRequest, InputPart, Turn } from "../../../src/core/inference/request.ts";
import type { Loss, UpstreamCodec } from "../../../src/core/protocol/codec.ts";
import type { Dialect } from "../../../src/core/protocol/dialect.ts";
import { type DialectName, dialectNames, dialects } from "../../../src/core/protocol/dialects.ts";
import { callers, upstreams } from "./codecs.ts";
import { forAll } from "./for-all.ts";

type Body = Record<string, unknown>;
type EngineName = keyof typeof upstreams;

function encoded(engine: EngineName, request: InferenceRequest, dialect: Dialect) {
  const lost = new Set<Loss>();
  const codec: UpstreamCodec = upstreams[engine];
  const asked = {
    model: "m",
    stream: false,
    outputTokens_max: 4096,
    dialect,
    lost: (loss: Loss) => void lost.add(loss),
  };
  const body = JSON.parse(JSON.stringify(codec.request.encode(request, asked))) as Body;
  return { body, lost: [...lost] };
}

const model = "acme/one";
const hi = { model, messages: [{ role: "user", content: "hi" }] };
const chat = (more: object) => callers.chat.request.decode({ ...hi, ...more } as never);
const messages = (more: object) => callers.messages.request.decode({ ...hi, max_tokens: 100, ...more } as never);
const responses = (more: object) => callers.responses.request.decode({ model, input: "hi", ...more } as never);

const thought = "The user wants Oslo; I call the tool.";
const called = { id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } };
const thoughtful = {
  chat: chat({
    messages: [
      { role: "user", content: "Oslo?" },
      { role: "assistant", content: null, tool_calls: [called], reasoning_content: thought },
      { role: "tool", tool_call_id: "c1", content: "4 C" },
    ],
  }),
  messages: messages({
    messages: [
      { role: "user", content: "Oslo?" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: thought, signature: "" },
          { type: "tool_use", id: "c1", name: "weather", input: { city: "Oslo" } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "4 C" }] },
    ],
  }),
  responses: responses({
    input: [
      { type: "message", role: "user", content: "Oslo?" },
      { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: thought }] },
      { type: "function_call", call_id: "c1", name: "weather", arguments: '{"city":"Oslo"}' },
      { type: "function_call_output", call_id: "c1", output: "4 C" },
    ],
  }),
};

describe("a replayed thought", () => {
  test.each(Object.entries(thoughtful))(
    "of a %s client reaches chat engines under the names of their dialect",
    (_, request) => {
      for (const name of dialectNames) {
        const { out } = dialects[name].reasoning;
        const { body, lost } = encoded("chat", request, dialects[name]);
        const turn = (body.messages as Body[]).find(({ role }) => role === "assistant")!;
        for (const field of ["reasoning", "reasoning_content"] as const)
          expect(turn[field]).toBe((out as readonly string[]).includes(field) ? thought : (undefined as never));
        expect(lost).toEqual(out.length === 0 ? ["thoughts"] : []);
      }
      expect(JSON.stringify(encoded("chat", request, dialects.vllm).body)).toContain(`"reasoning":"${thought}"`);
    },
  );

  test("that nobody signed goes to Messages engines that take it, and is said to be lost elsewhere", () => {
    expect(JSON.stringify(encoded("messages", thoughtful.chat, dialects.vllm).body)).toContain(
      `{"type":"thinking","thinking":"${thought}"}`,
    );
    const strict = encoded("messages", thoughtful.chat, dialects.anthropic);
    expect(JSON.stringify(strict.body)).not.toContain("thinking");
    expect(strict.lost).toEqual(["thoughts"]);
  });
});

test("a thought that nobody signed goes to no Responses engine that looks for its own under an id, and is said to be lost", () => {
  for (const request of Object.values(thoughtful)) {
    for (const name of ["openai", "azure"] as const) {
      const { body, lost } = encoded("responses", request, dialects[name]);
      expect(JSON.stringify(body)).not.toContain('"reasoning"');
      expect(lost).toEqual(["thoughts"]);
    }
    for (const name of ["generic", "vllm"] as const) {
      const { body, lost } = encoded("responses", request, dialects[name]);
      expect(JSON.stringify(body)).toContain(thought);
      expect(lost).toEqual([]);
    }
  }
});

test.each(Object.keys(upstreams) as EngineName[])("fields that only engines know reach a %s engine", (engine) => {
  const extra = { top_k: 77, thinking: { type: "enabled" }, mirostat: 2 };
  expect(encoded(engine, { ...chat({}), extra }, dialects.generic).body).toMatchObject(extra);
});

test("an image in its original size, as Codex sends it, is one of high detail for chat engines that know no other", () => {
  const image = { type: "input_image", image_url: "data:image/png;base64,AAAA" };
  const details = (name: DialectName) => {
    const sized = ["original", "low"].map((detail) => ({ ...image, detail }));
    const input = [
      { type: "message", role: "user", content: sized },
      { type: "function_call", call_id: "c1", name: "view_image", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: sized },
    ];
    const { body } = encoded("chat", responses({ input }), dialects[name]);
    return [...(JSON.stringify(body).match(/(?<="detail":")\w+/g) ?? [])];
  };
  for (const name of ["generic", "vllm", "sglang"] as const)
    expect(details(name)).toEqual(["high", "low", "high", "low"]);
  expect(details("openai")).toEqual(["original", "low", "original", "low"]);
});

test("several texts of a message are one string for an engine that reads no list, and a list for others", () => {
  const two = [
    { type: "text", text: "one" },
    { type: "text", text: "two" },
  ];
  const request = messages({
    system: two,
    messages: [
      { role: "user", content: two },
      { role: "assistant", content: [...two, { type: "tool_use", id: "c1", name: "look", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: two, is_error: true }] },
    ],
  });
  const contents = (name: DialectName) =>
    (encoded("chat", request, dialects[name]).body.messages as Body[]).map(({ content }) => content);
  const joined = "one\n\ntwo";
  expect(contents("deepseek")).toEqual([joined, joined, joined, `Error: ${joined}`]);
  const marked = [{ type: "text", text: "Error: one" }, two[1]];
  for (const name of ["generic", "openai"] as const) expect(contents(name)).toEqual([two, two, two, marked]);
});

test("a tool that must be called has one name in the list of tools and in the choice", () => {
  for (const name of ["fs.read", "x".repeat(100)]) {
    const tools = [{ type: "function", name, parameters: { type: "object", properties: {} } }];
    const { body } = encoded("responses", responses({ tools, tool_choice: { type: "function", name } }), dialects.vllm);
    const [tool] = body.tools as Body[];
    expect((body.tool_choice as Body).name).toBe(tool!.name as never);
  }
});

test("a thought without a text is said to be lost at chat engines, and goes on to the others", () => {
  const content = [
    { type: "redacted_thinking", data: "sealed" },
    { type: "text", text: "Yes." },
  ];
  const request = messages({
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content },
      { role: "user", content: "go on" },
    ],
  });
  expect(encoded("chat", request, dialects.vllm).lost).toEqual(["thoughts"]);
  for (const engine of ["messages", "responses"] as const) {
    const { body, lost } = encoded(engine, request, dialects.anthropic);
    expect(JSON.stringify(body)).toContain("sealed");
    expect(lost).toEqual([]);
  }
});

test("an encrypted thought goes to no Responses engine that reads its thoughts in the clear, and is said to be lost", () => {
  const content = [{ type: "redacted_thinking", data: "sealed" }];
  const request = messages({
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: [...content, { type: "text", text: "Yes." }] },
      { role: "user", content: "go on" },
    ],
  });
  const { body, lost } = encoded("responses", request, dialects["llama.cpp"]);
  expect(JSON.stringify(body)).not.toMatch(/sealed|"reasoning"/);
  expect(lost).toEqual(["thoughts"]);
});

describe("the cap", () => {
  test.each(dialectNames)("has the name that %s reads", (name: DialectName) => {
    const { body } = encoded("chat", chat({ max_completion_tokens: 512 }), dialects[name]);
    const { cap } = dialects[name];
    expect([body.max_tokens, body.max_completion_tokens]).toEqual(
      cap === "max_tokens" ? [512, undefined] : [undefined, 512],
    );
  });
});

describe("the effort", () => {
  const at = (effort: string, dialect: Dialect) =>
    encoded("chat", responses({ reasoning: { effort } }), dialect).body.reasoning_effort;

  test("is the engine's word for the level, or for the next lower one for which it has one", () => {
    expect(at("max", dialects.vllm)).toBe("max");
    expect(at("max", dialects.openai)).toBe("high");
    expect(at("low", dialects.deepseek)).toBe("high");
    expect(at("none", dialects.deepseek)).toBe("none");
    expect(["minimal", "xhigh", "max"].map((level) => at(level, dialects.generic))).toEqual(["low", "high", "high"]);
    const few = { ...dialects.generic, effort: { ...dialects.generic.effort, minimal: null, low: null } };
    expect(at("low", few)).toBeUndefined();
  });
});

test("the text of thoughts is asked for where it comes only as a summary, unless the client leaves it out", () => {
  const asked = (request: InferenceRequest, name: DialectName = "openai") =>
    encoded("responses", request, dialects[name]).body.reasoning as Body | undefined;
  const shown = { effort: "low", summary: "auto" };
  const thinking = { thinking: { type: "adaptive" }, output_config: { effort: "low" } };
  for (const name of ["openai", "azure"] as const) {
    expect(asked(chat({ reasoning_effort: "low" }), name)).toEqual(shown);
    expect(asked(messages(thinking), name)).toEqual(shown);
  }
  const adaptive = { thinking: { type: "adaptive" } };
  expect(asked(messages(adaptive))).toEqual({ summary: "auto" });
  expect(asked(messages(adaptive), "vllm")).toBeUndefined();
  expect(asked(messages({ thinking: { type: "disabled" } }))).toEqual({ effort: "none" });
  expect(asked(messages({ thinking: { type: "adaptive", display: "omitted" } }))).toBeUndefined();
  expect(asked(messages({}))).toBeUndefined();
  const omitted = { ...thinking, thinking: { type: "adaptive", display: "omitted" } };
  expect(asked(messages(omitted))).toEqual({ effort: "low" });
  expect(asked(chat({ reasoning_effort: "none" }))).toEqual({ effort: "none" });
  expect(asked(chat({ reasoning_effort: "low" }), "vllm")).toEqual({ effort: "low" });
  expect(asked(responses({ reasoning: { effort: "low" } }))).toEqual({ effort: "low" });
  expect(asked(chat({}))).toBeUndefined();
});

describe("the schema of a tool", () => {
  const tool = (parameters: unknown) => ({ tools: [{ type: "function", function: { name: "list", parameters } }] });
  const schemaAt = (engine: EngineName, request: InferenceRequest, dialect: Dialect) => {
    const [first] = encoded(engine, request, dialect).body.tools as Body[];
    return (first!.parameters ?? (first!.function as Body).parameters) as unknown;
  };
  const empty = { type: "object", properties: {} };

  test.each([{ type: "object" }, {}, { type: "object", properties: null }])(
    "%j is mended where it would be refused",
    (schema) => {
      const flat = { tools: [{ type: "function", name: "list", parameters: schema }] };
      for (const engine of ["chat", "responses"] as const)
        for (const request of [
          chat(tool(schema)),
          messages({ tools: [{ name: "list", input_schema: schema }] }),
          responses(flat),
        ])
          expect(schemaAt(engine, request, dialects.openai)).toEqual(empty);
      expect(schemaAt("chat", chat(tool(schema)), dialects.vllm)).toEqual(schema);
    },
  );

  test("a nested object without properties stays, and true and false become schemas", () => {
    const nested = { type: "object", properties: { o: { type: "object" } } };
    expect(schemaAt("chat", chat(tool(nested)), dialects.openai)).toEqual(nested);
    const booleans = {
      type: "object",
      properties: { any: true, none: false, list: { type: "array", items: true }, properties: { const: true } },
      additionalProperties: false,
      required: ["any"],
    };
    expect(schemaAt("chat", chat(tool(booleans)), dialects.openai)).toEqual({
      type: "object",
      properties: { any: {}, none: { not: {} }, list: { type: "array", items: {} }, properties: { const: true } },
      additionalProperties: false,
      required: ["any"],
    });
  });
});

test("the form of a Messages client's answer is strict if OpenAI takes its schema so: closed, with all properties", () => {
  const strictness = (more: object, inner: object = {}) => {
    const list = { type: "array", items: { type: "object", additionalProperties: false, ...inner } };
    const schema = { type: "object", properties: { list, nickname: { type: "string" } }, ...more };
    const request = messages({ output_config: { format: { type: "json_schema", schema } } });
    const { body } = encoded("chat", request, dialects.openai);
    const { text } = encoded("responses", request, dialects.openai).body;
    const { strict, ...written } = (body.response_format as { json_schema: Body }).json_schema;
    expect((text as { format: Body }).format).toEqual({ type: "json_schema", ...written, strict });
    expect(written.schema).toEqual(schema);
    return strict as boolean;
  };
  const whole = { required: ["list", "nickname"], additionalProperties: false };
  expect(strictness(whole)).toBe(true);
  expect(strictness({ ...whole, required: ["list"] })).toBe(false);
  expect(strictness({ required: whole.required })).toBe(false);
  expect(strictness(whole, { properties: { a: {} } })).toBe(false);
  expect(strictness(whole, { additionalProperties: true })).toBe(false);
  expect(strictness({ ...whole, type: "array" })).toBe(false);
  for (const kind of ["oneOf", "allOf"])
    expect(strictness(whole, { properties: { a: { [kind]: [{ type: "null" }] } }, required: ["a"] })).toBe(false);
  const either = { properties: { a: { anyOf: [{ type: "null" }] } }, required: ["a"] };
  expect(strictness(whole, either)).toBe(true);
});

describe("a tool that must be called", () => {
  const tools = ["weather", "time"].map((name) => ({ type: "function", function: { name } }));
  const request = chat({ tools, tool_choice: { type: "function", function: { name: "time" } } });

  test("is named beside all tools where the engine obeys a name", () => {
    const { body } = encoded("chat", request, dialects.vllm);
    expect(body.tools).toHaveLength(2);
    expect(body.tool_choice).toEqual({ type: "function", function: { name: "time" } });
    expect(encoded("responses", request, dialects.openai).body.tool_choice).toEqual({ type: "function", name: "time" });
  });

  test("is sent alone elsewhere", () => {
    const { body } = encoded("chat", request, dialects["llama.cpp"]);
    expect(body.tools).toHaveLength(1);
    expect(body.tool_choice).toBe("required");
  });
});

describe("a Messages engine that is not Anthropic's", () => {
  const request = messages({
    system: [{ type: "text", text: "You test.", cache_control: { type: "ephemeral", ttl: "1h" } }],
    tools: [{ name: "a", input_schema: { type: "object", properties: { cache_control: { const: { ttl: "1h" } } } } }],
    messages: [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "", signature: "x" },
          { type: "text", text: "yes" },
        ],
      },
      { role: "user", content: "go on" },
    ],
  });

  test("gets no time of a cache mark and no empty thought, and schemas stay as they are", () => {
    const { body, lost } = encoded("messages", request, dialects.vllm);
    expect(body.system).toEqual([{ type: "text", text: "You test.", cache_control: { type: "ephemeral" } }]);
    expect(JSON.stringify(body.messages)).not.toContain("thinking");
    expect(JSON.stringify(body.tools)).toContain('{"ttl":"1h"}');
    expect(lost).toEqual(["stripped"]);
  });

  test("and Anthropic gets both", () => {
    const { body, lost } = encoded("messages", request, dialects.anthropic);
    expect(JSON.stringify(body)).toMatch(/"ttl":"1h".*"type":"thinking"/);
    expect(lost).toEqual([]);
  });
});

describe("a call before its turn's text", () => {
  const request = responses({
    input: [
      { type: "message", role: "user", content: "weather?" },
      { type: "function_call", call_id: "c1", name: "weather", arguments: "{}" },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "I look it up." }] },
      { type: "function_call_output", call_id: "c1", output: "4 C" },
    ],
  });

  test("goes behind it in Messages, in one turn whose result follows", () => {
    const { body, lost } = encoded("messages", request, dialects.generic);
    const turns = body.messages as { role: string; content: { type: string }[] }[];
    expect(turns.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(turns[1]!.content.map(({ type }) => type)).toEqual(["text", "tool_use"]);
    expect(lost).toEqual(["order"]);
  });

  test("keeps its place in Responses, and where a dialect says so", () => {
    const items = encoded("responses", request, dialects.generic).body.input as Body[];
    expect(items.map(({ type }) => type)).toEqual(["message", "function_call", "message", "function_call_output"]);
    const kept = encoded("messages", request, { ...dialects.generic, callBeforeText: "kept" });
    expect(JSON.stringify(kept.body)).toMatch(/tool_use.*I look it up/);
    expect(kept.lost).toEqual([]);
  });
});

describe("more than the engine takes is refused by its name", () => {
  test("stop sequences, with their number", () => {
    const request = messages({ stop_sequences: ["a", "b", "c", "d", "e", "f"] });
    expect(encoded("messages", request, dialects.generic).body.stop_sequences).toHaveLength(6);
    const fault = upstreams.chat.request.refusal(request, dialects.openai);
    expect(fault).toMatchObject({ code: "unsupported_feature", details: { param: "stop_sequences" } });
    expect(fault?.message).toContain("at most 4 stop sequences, and 'stop_sequences' has 6");
  });

  test("tools, and their names", () => {
    const tools = (names: string[]) => chat({ tools: names.map((name) => ({ type: "function", function: { name } })) });
    const refusal = (names: string[], dialect: Dialect) =>
      upstreams.chat.request.refusal(tools(names), dialect)?.message;
    const many = Array.from({ length: 129 }, (_, at) => `t${at}`);
    expect(refusal(many, dialects.openai)).toContain("at most 128 tools, and 'tools' has 129");
    expect(refusal(["a".repeat(65)], dialects.openai)).toContain("at most 64 characters");
    expect(refusal(["server.tool"], dialects.openai)).toContain("characters that it refuses");
    for (const names of [many, ["a".repeat(256)], ["server.tool"]])
      expect(refusal(names, dialects.vllm)).toBeUndefined();
  });
});

// ---- laws ------------------------------------------------------------------------------------------------------------

const word = fc.stringMatching(/^[a-z]{4,9}$/);
const part: fc.Arbitrary<AssistantPart> = fc.oneof(
  word.map((text): AssistantPart => ({ kind: "text", text })),
  word.map((text): AssistantPart => ({ kind: "reasoning", text })),
  fc.tuple(word, word).map(
    ([callId, value]): AssistantPart => ({
      kind: "tool-call",
      callId,
      toolName: "weather",
      arguments: JSON.stringify({ value }),
    }),
  ),
);
const turn: fc.Arbitrary<Turn> = fc.oneof(
  word.map((text): Turn => ({ role: "user", parts: [{ kind: "text", text }] })),
  fc.array(part, { minLength: 1, maxLength: 5 }).map((parts): Turn => ({ role: "assistant", parts })),
);
function textsOf({ turns }: InferenceRequest, kinds: readonly string[]): string[] {
  const parts = turns.flatMap((one): (AssistantPart | InputPart)[] => one.parts);
  return parts.flatMap((one) => {
    if (!kinds.includes(one.kind)) return [];
    if (one.kind === "tool-call") return [JSON.parse(one.arguments).value as string];
    return "text" in one ? [one.text] : [];
  });
}

test("an encode in any dialect loses nothing but what the table of losses says", () => {
  forAll(
    [
      fc.array(turn, { minLength: 1, maxLength: 6 }),
      fc.constantFrom(...dialectNames),
      fc.constantFrom("chat" as const, "messages" as const, "responses" as const),
    ],
    100,
    (turns, name, engine) => {
      const request: InferenceRequest = {
        ...chat({}),
        turns: [{ role: "user", parts: [{ kind: "text", text: "begin" }] }, ...turns],
      };
      const { body, lost } = encoded(engine, request, dialects[name]);
      const text = JSON.stringify(body);
      const kept = lost.includes("thoughts") ? ["text", "tool-call"] : ["text", "tool-call", "reasoning"];
      for (const one of textsOf(request, kept)) expect(text).toContain(one);
    },
  );
});

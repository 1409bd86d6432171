import { describe, expect, test } from "bun:test";
import { validateChatRequest } from "../../../../src/core/protocol/openai-chat/validate.ts";
import { faultOf } from "../../../harness/faults.ts";

const user = { role: "user", content: "Hello" };
const base = { model: "acme/writer-1", messages: [user] };
const tool = { type: "function", function: { name: "look_up", parameters: { type: "object", properties: {} } } };
const call = { id: "call_1", type: "function", function: { name: "look_up", arguments: "{}" } };
const says = (...messages: unknown[]) => ({ model: "acme/writer-1", messages });
const content = (part: unknown) => says({ role: "user", content: [part] });

/** The code and the parameter of the refusal (`code param`), or "accepted". */
function verdict(body: unknown, extraParams: string[] = []): string {
  const fault = faultOf(() => validateChatRequest(body, extraParams));
  return fault ? `${fault.code} ${fault.details.param ?? "-"}` : "accepted";
}

const message = (body: unknown) => faultOf(() => validateChatRequest(body, []))?.message ?? "";

describe("a chat request that satisfies the contract is accepted", () => {
  const accepted: Record<string, unknown> = {
    "the least": base,
    "a tool conversation": {
      ...says(
        { role: "developer", content: [{ type: "text", text: "Be brief." }] },
        { role: "system", content: "And kind." },
        { role: "user", name: "ann", content: [{ type: "text", text: "What is this?" }] },
        { role: "assistant", content: null, tool_calls: [call, { ...call, id: "call_2" }] },
        { role: "tool", tool_call_id: "call_2", content: "4" },
        { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "2" }] },
        { role: "assistant", content: "Six.", reasoning_content: "2 + 4", tool_calls: [] },
        user,
      ),
      tools: [tool],
      tool_choice: { type: "function", function: { name: "look_up" } },
      parallel_tool_calls: true,
    },
    "allowed tools": {
      ...base,
      tools: [tool],
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "look_up" } }] },
      },
    },
    "unknown keys in message items": says({
      ...user,
      cache_control: { type: "ephemeral" },
      refusal: 1,
      annotations: [],
    }),
    "an image, a file and a sound": says({
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "https://example.org/a.png", detail: "low" } },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" } },
        { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
      ],
    }),
    "an empty answer of the assistant": says({ role: "assistant", content: "" }, user),
    "2000 messages and 128 tools": { ...says(...Array(2000).fill(user)), tools: Array(128).fill(tool) },
    "a model id of 256 characters": { ...base, model: "\u{1F600}".repeat(256) },
    "a schema without a type": { ...base, tools: [{ type: "function", function: { name: "f", parameters: {} } }] },
  };
  for (const [name, body] of Object.entries(accepted)) test(name, () => expect(message(body)).toBe(""));
});

describe("a chat request that breaks a rule is refused, naming the code and the first offending field", () => {
  const refused: [string, unknown][] = [
    ["invalid_value -", null],
    ["invalid_value -", []],
    ["invalid_value -", "text"],
    ["missing_field messages", { model: "a/b" }],
    ["invalid_value model", { ...base, model: "x".repeat(257) }],
    ["invalid_value messages", says(...Array(2001).fill(user))],
    ["unknown_field foo", { ...base, foo: 1 }],
    ["unknown_field __proto__", JSON.parse('{"model":"a","messages":[{"role":"user","content":"x"}],"__proto__":{}}')],
    ["unknown_field first", { model: "a/b", first: 1, temperature: 9, messages: [user] }],
    ["invalid_value temperature", { model: "a/b", temperature: 9, last: 1, messages: [user] }],
    ["invalid_value stop[1]", { ...base, stop: ["a", 1] }],
    ['invalid_value logit_bias["5"]', { ...base, logit_bias: { 5: 101 } }],
    ["unknown_field response_format.schema", { ...base, response_format: { type: "json_object", schema: {} } }],
    ["invalid_value stream_options", { ...base, stream_options: { include_usage: true } }],
    ["invalid_value stream_options", { ...base, stream: false, stream_options: {} }],
    ["mutually_exclusive max_completion_tokens", { ...base, max_tokens: 1, max_completion_tokens: 1 }],
    ["mutually_exclusive max_tokens", { ...base, max_completion_tokens: 1, max_tokens: 1 }],
    ["invalid_value top_logprobs", { ...base, top_logprobs: 2 }],
    ["invalid_value top_logprobs", { ...base, logprobs: false, top_logprobs: 2 }],
    ["invalid_value tools", { ...base, tools: Array(129).fill(tool) }],
    ["invalid_value tool_choice", { ...base, tool_choice: "auto" }],
    ["invalid_value tool_choice", { ...base, tools: [tool], tool_choice: "any" }],
    [
      "invalid_value tool_choice.function.name",
      { ...base, tools: [tool], tool_choice: { type: "function", function: { name: "other" } } },
    ],
    ["invalid_value parallel_tool_calls", { ...base, parallel_tool_calls: false }],
    ["invalid_value messages[1].role", says(user, { role: "robot", content: "x" })],
    ["invalid_value messages[0].content", says({ role: "user", content: [] })],
    ["invalid_value messages[0].content[0].type", content({ type: "image" })],
    [
      "invalid_value messages[0].content[0].image_url.url",
      content({ type: "image_url", image_url: { url: "file:/x" } }),
    ],
    ["missing_field messages[0].content", says({ role: "assistant", content: null })],
    ["missing_field messages[0].content", says({ role: "assistant", content: [], tool_calls: [] })],
    ["invalid_value messages[1].tool_call_id", says(user, { role: "tool", tool_call_id: "call_1", content: "x" })],
    [
      "invalid_value messages[0].tool_call_id",
      says({ role: "tool", tool_call_id: "call_1", content: "x" }, { role: "assistant", tool_calls: [call] }),
    ],
    ["unsupported_feature modalities[1]", { ...base, modalities: ["text", "audio"] }],
    ["unsupported_feature function_call", { ...base, function_call: "auto" }],
    ["unsupported_feature store", { ...base, store: true }],
    [
      "invalid_value tool_choice.custom.name",
      { ...base, tools: [tool], tool_choice: { type: "custom", custom: { name: "x" } } },
    ],
    ["unsupported_feature messages[1].role", says(user, { role: "function", name: "f", content: "x" })],
    [
      "unsupported_feature messages[0].content[0].type",
      content({ type: "video_url", video_url: { url: "https://x" } }),
    ],
    ["unsupported_feature messages[0].content[0].file.file_id", content({ type: "file", file: { file_id: "f" } })],
    [
      "unsupported_feature messages[0].content[0].type",
      says({ role: "tool", tool_call_id: "c", content: [{ type: "image_url", image_url: { url: "https://x" } }] }),
    ],
  ];
  for (const [expected, body] of refused) {
    const name = JSON.stringify(body);
    test(`${expected}: ${name.length > 90 ? `${name.slice(0, 90)}…` : name}`, () =>
      expect(verdict(body)).toBe(expected));
  }
});

test("a field that the catalog allows for the model is let through, whatever its value, and no other", () => {
  expect(verdict({ ...base, top_k: { any: [1] } }, ["top_k"])).toBe("accepted");
  expect(verdict({ ...base, top_k: 1 })).toBe("unknown_field top_k");
  expect(verdict({ ...base, top_k: 1, min_p: 1 }, ["top_k"])).toBe("unknown_field min_p");
});

describe("the message says what is wrong and what to do", () => {
  test("a number out of range", () =>
    expect(message({ ...base, temperature: 3 })).toBe("'temperature' must be a number from 0 to 2, but is 3."));
  test("a number that is a string", () =>
    expect(message({ ...base, max_tokens: "5" })).toBe(
      "'max_tokens' must be an integer of at least 1, but is the string '5'.",
    ));
  test("a misspelt field", () =>
    expect(message({ ...base, temprature: 1 })).toBe("'temprature' is not a known field. Did you mean 'temperature'?"));
  test.each(["top_k", "min_p", "repetition_penalty", "chat_template_kwargs", "stop_token_ids"])(
    "a field of engines that the model does not list: %s",
    (name) =>
      expect(message({ ...base, [name]: 1 })).toBe(
        `'${name}' is a field of engines, and this model does not take it. Remove it, or ask whoever runs the service to list it in the model's 'extra_params'.`,
      ),
  );
  test("a field of engines that no model may list", () => {
    expect(message({ ...base, ignore_eos: true })).toBe(
      "'ignore_eos' is a field of engines that no client may send, because it changes how much is generated, which the service limits and counts. Remove it.",
    );
    expect(message({ ...base, chat_template: "x" })).toBe(
      "'chat_template' is a field of engines that no client may send, because it replaces or cuts the prompt, or its template. Remove it.",
    );
    expect(message({ ...base, stream_options: { priority: 1 }, stream: true })).toBe(
      "'stream_options.priority' is not a known field. Remove it, or correct its name.",
    );
  });
  test.each([
    ["max_output_tokens", "'max_completion_tokens'"],
    ["stop_sequences", "'stop'"],
    ["system", "a message of the role 'system'"],
    ["input", "'messages'"],
    ["text", "'response_format'"],
    ["thinking", "'reasoning_effort'"],
  ])("a field of another protocol: %s", (name, use) =>
    expect(message({ ...base, [name]: {} })).toBe(`'${name}' is not a field of chat completions. Use ${use} instead.`),
  );
  test("a field of others, and a name of one or two letters, are no slips", () => {
    for (const name of ["speed", "models"])
      expect(message({ ...base, [name]: 1 })).toBe(`'${name}' is not a field of this service. Remove it.`);
    for (const name of ["p", "k"])
      expect(message({ ...base, [name]: 1 })).toBe(`'${name}' is not a known field. Remove it, or correct its name.`);
  });
  test("a missing field", () =>
    expect(message({ model: "a/b" })).toBe("'messages' is missing. It must be an array of 1 to 2000 items."));
  test("a feature that is not served", () =>
    expect(message(says({ role: "function", content: "x" }))).toContain("the role 'function' (use 'tool')"));
});

describe("nothing that looks like a credential is echoed, and nothing long", () => {
  const key = `slk_${"aB3".repeat(13)}`;
  const bodies = [
    { ...base, temperature: key },
    { ...base, [key]: 1 },
    { ...base, metadata: key },
    { ...base, reasoning_effort: `Bearer ${key}` },
    { ...base, logit_bias: { [key]: 1 } },
    { ...base, tools: [tool], tool_choice: { type: "function", function: { name: key } } },
    says({ role: key, content: "x" }),
    says({ role: "tool", tool_call_id: key, content: "x" }),
    { ...base, stop: [1], [`x${"y".repeat(10_000)}`]: 1 },
    { [`${"y".repeat(10_000)}`]: 1 },
    { ...base, temperature: "y".repeat(10_000_000) },
  ];
  for (const body of bodies) {
    test(JSON.stringify(body).slice(0, 80), () => {
      const said = `${message(body)} ${verdict(body)}`;
      expect(said).not.toContain("aB3");
      expect(said.length).toBeLessThan(600);
    });
  }
});

test("values nested as deep as a parser allows, and huge arrays, are judged without exhausting the stack", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 200_000; level++) deep = [deep];
  expect(verdict({ ...base, temperature: deep })).toBe("invalid_value temperature");
  expect(verdict({ ...base, metadata: { deep } })).toBe("accepted");
  expect(verdict({ ...base, tools: [{ ...tool, function: { name: "f", parameters: { deep } } }] })).toBe("accepted");
  expect(verdict(says({ role: "user", content: deep }))).toBe("invalid_value messages[0].content[0]");
  expect(verdict({ ...base, messages: Array(1_000_000).fill(0) })).toBe("invalid_value messages");
});

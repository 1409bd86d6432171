/**
 * The option `bounds: engine`: requests that engines accept are not refused, and the specification's bounds stay for
 * all other models.
 */
import { describe, expect, test } from "bun:test";
import { dialects } from "../../../../src/core/protocol/dialects.ts";
import { beyondAll } from "../../../../src/core/protocol/engine-options.ts";
import { validateChatRequest } from "../../../../src/core/protocol/openai-chat/validate.ts";
import { faultOf } from "../../../harness/faults.ts";
import { callers, upstreams } from "../codecs.ts";

const hi = { model: "acme/one", messages: [{ role: "user", content: "hi" }] };
const tools = (...names: string[]) => names.map((name) => ({ type: "function", function: { name } }));
const many = (count: number) => tools(...Array.from({ length: count }, (_, at) => `t${at}`));
const long = "mcp__plugin_chrome-devtools-mcp_chrome-devtools__get_console_message_of_page";

const refusal = (more: object, bounds?: "engine", unchecked: Record<string, unknown[]> | null = null) =>
  faultOf(() => validateChatRequest({ ...hi, ...more }, [], unchecked, bounds));

const taken: [string, object][] = [
  ["an empty list of tools", { tools: [] }],
  ["a choice without tools", { tool_choice: "auto" }],
  ["no choice, without tools", { tools: [], tool_choice: "none" }],
  ["parallel calls without tools", { tools: [], parallel_tool_calls: true }],
  ["an empty list of stop sequences", { stop: [] }],
  ["64 stop sequences", { stop: Array.from({ length: 64 }, (_, at) => `${at}`) }],
  ["129 tools", { tools: many(129) }],
  ["4,096 tools", { tools: many(4096) }],
  [
    "a choice among 129 tools",
    {
      tools: many(129),
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: many(129) } },
    },
  ],
  ["a name of 76 characters", { tools: tools(long) }],
  ["a name with a dot", { tools: tools("server.tool") }],
  ["2,001 messages", { messages: Array.from({ length: 2001 }, () => hi.messages[0]) }],
  ["the effort max", { reasoning_effort: "max" }],
];

describe("what engines take", () => {
  test.each(taken)("%s is taken by a model with the bounds of its engine", (_, more) => {
    expect(refusal(more, "engine")).toBeNull();
  });

  test.each(taken)("%s is refused by the specification, and the setting named", (_, more) => {
    const fault = refusal(more);
    expect(fault?.status).toBe(400);
    expect(fault?.message).toEndWith("(Whoever runs this service can allow this with 'bounds: engine' of the model.)");
  });

  test("the setting is not named where it would not help", () => {
    for (const more of [{ temperature: 3 }, { tools: [], temperature: 3 }, { tools: many(4097) }])
      expect(refusal(more)?.message).not.toContain("bounds: engine");
  });
});

test.each<[string, object, string]>([
  ["4,097 tools", { tools: many(4097) }, "tools"],
  ["20,001 messages", { messages: Array.from({ length: 20_001 }, () => hi.messages[0]) }, "messages"],
  ["a name of 257 characters", { tools: tools("a".repeat(257)) }, "tools[0].function.name"],
  ["a name with a blank", { tools: tools("a b") }, "tools[0].function.name"],
  ["65 stop sequences", { stop: Array.from({ length: 65 }, (_, at) => `${at}`) }, "stop"],
  ["a choice that requires a tool", { tools: [], tool_choice: "required" }, "tool_choice"],
  ["an effort that is none", { reasoning_effort: "most" }, "reasoning_effort"],
  ["an unknown field", { top_kk: 3 }, "top_kk"],
])("%s is refused in any mode", (_, more, param) => {
  expect(refusal(more, "engine")?.details.param).toBe(param);
});

test("a tool that was valid for another model is still held to the specification", () => {
  const listed = tools("server.tool");
  expect(refusal({ tools: listed }, undefined, { messages: [], tools: [] })?.details.param).toBe(
    "tools[0].function.name",
  );
});

test("the absolute bounds hold for Messages too", () => {
  const listed = Array.from({ length: 4097 }, (_, at) => ({ name: `t${at}`, input_schema: { type: "object" } }));
  const request = callers.messages.request.decode({ ...hi, max_tokens: 9, tools: listed } as never);
  expect(beyondAll(request)).toMatchObject({ code: "invalid_value", details: { param: "tools" } });
  expect(beyondAll({ ...request, tools: request.tools.slice(1) })).toBeNull();
});

test("an empty list of tools needs no capability, and engines get none", () => {
  const request = callers.chat.request.decode({ ...hi, tools: [], tool_choice: "auto" } as never);
  expect(request.needs).toEqual([]);
  const asked = upstreams.chat.request.encode(request, { model: "m", stream: false, outputTokens_max: 9 });
  expect([asked.tools, asked.tool_choice]).toEqual([undefined, undefined]);
});

test("max is the engine's word for it, and refused where it has none", () => {
  const request = callers.chat.request.decode({ ...hi, reasoning_effort: "max" } as never);
  const asked = { model: "m", stream: false, outputTokens_max: 9, dialect: dialects.vllm };
  expect(upstreams.chat.request.encode(request, asked).reasoning_effort).toBe("max");
  const fault = upstreams.chat.request.refusal(request, dialects.openai);
  expect(fault).toMatchObject({ code: "invalid_value", details: { param: "reasoning_effort" } });
});

test("a name that one engine takes is still refused for another, whichever is asked first", () => {
  const request = callers.chat.request.decode({ ...hi, tools: tools(long) } as never);
  const params = (["vllm", "openai", "vllm", "anthropic", "openai"] as const).map(
    (name) => upstreams.chat.request.refusal(request, dialects[name])?.details.param,
  );
  expect(params).toEqual([undefined, "tools[0]", undefined, undefined, "tools[0]"]);
});

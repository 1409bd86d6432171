/** Requests of Responses clients, and the requests that engines of each protocol get for them. */

import { describe, expect, test } from "bun:test";
import { withoutLostHints } from "../../../../src/core/inference/request.ts";
import type { ResponseObject } from "../../../../src/core/protocol/openai-responses/contract.ts";
import { withResolved } from "../../../../src/core/protocol/openai-responses/references.ts";
import { storable } from "../../../../src/features/responses/kept-items.ts";
import { faultOf } from "../../../harness/faults.ts";
import { callers, upstreams, validated } from "../codecs.ts";

const stored = { id: `resp_${"0".repeat(32)}`, status: "completed", output: [] } as unknown as ResponseObject;
const ask = { model: "engine", stream: true, outputTokens_max: 1000 };
const body = (more: object) => ({ model: "acme/writer-1", input: "hello", ...more });
const centre = (more: object) => callers.responses.request.decode(validated.responses(sent(body(more))));
// The value as it reaches an engine, after serialization as JSON.
const sent = (value: unknown) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
const toChat = (more: object) => sent(upstreams.chat.request.encode(centre(more), ask));
const toMessages = (more: object) => sent(upstreams.messages.request.encode(centre(more), ask));
const toResponses = (more: object) => sent(upstreams.responses.request.encode(centre(more), ask));

function refused(more: object): { code: string; param: string | undefined } {
  const { code, details } = faultOf(() => centre(more))!;
  return { code, param: details.param };
}

const lark = { type: "grammar", syntax: "lark", definition: "start: LINE+" };
const patch = { type: "custom", name: "apply_patch", description: "Edits files.", format: lark };
const spawn = {
  type: "function",
  name: "spawn",
  parameters: { type: "object", properties: { task: {} } },
  strict: false,
};
const agents = { type: "namespace", name: "multi_agent_v1", description: "Agents.", tools: [spawn] };
const shell = { type: "function", name: "exec_command", parameters: { type: "object", properties: { cmd: {} } } };
const search = { type: "web_search", external_web_access: true };

describe("conversations", () => {
  test("a text is what the user says, and instructions stand before it", () => {
    expect(toChat({ instructions: "Be brief." }).messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "hello" },
    ]);
  });

  test("items need no type to be messages, of any of the four roles", () => {
    const input = [
      { role: "system", content: "a" },
      { role: "developer", content: [{ type: "input_text", text: "b" }] },
      { role: "user", content: "c" },
      {
        type: "message",
        role: "assistant",
        id: "msg_1",
        status: "completed",
        content: [{ type: "output_text", text: "d" }],
      },
      { type: null, role: "user", content: [{ type: "input_text", text: "e" }] },
    ];
    expect(toChat({ input }).messages).toEqual([
      { role: "system", content: "a" },
      { role: "system", content: "b" },
      { role: "user", content: "c" },
      { role: "assistant", content: "d" },
      { role: "user", content: "e" },
    ]);
  });

  test("calls in a row are one turn of the assistant with what it said and thought before, results directly after", () => {
    const input = [
      { role: "user", content: "go" },
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "hm" }] },
      { role: "assistant", content: "Looking." },
      { type: "function_call", call_id: "c1", name: "exec_command", arguments: '{"cmd":"a"}' },
      { type: "function_call", call_id: "c2", name: "exec_command", arguments: "" },
      { role: "developer", content: "note" },
      { type: "function_call_output", call_id: "c1", output: "one" },
      { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "two" }] },
    ];
    const call = (id: string, written: string) => ({
      id,
      type: "function",
      function: { name: "exec_command", arguments: written },
    });
    expect(toChat({ input, tools: [shell] }).messages).toEqual([
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: "Looking.",
        reasoning_content: "hm",
        tool_calls: [call("c1", '{"cmd":"a"}'), call("c2", "{}")],
      },
      { role: "tool", tool_call_id: "c1", content: "one" },
      { role: "tool", tool_call_id: "c2", content: "two" },
      { role: "system", content: "note" },
    ]);
  });

  describe("a call that brings more than one result has one at the engine, with all that they say", () => {
    const call = (call_id: string) => ({ type: "custom_tool_call", call_id, name: "exec", input: "notify()" });
    const output = (call_id: string, text: string) => ({ type: "custom_tool_call_output", call_id, output: text });
    const results = (input: object[]) =>
      (toChat({ input }).messages as { role: string; tool_call_id: string; content: unknown }[])
        .filter(({ role }) => role === "tool")
        .map(({ tool_call_id, content }) => [tool_call_id, textOf(content)]);
    const textOf = (content: unknown) =>
      typeof content === "string" ? content : (content as { text: string }[]).map(({ text }) => text).join("|");

    test("one directly after the other, as the script ends", () => {
      const input = [call("c1"), output("c1", "the end"), output("c1", "half way")];
      expect(results(input)).toEqual([["c1", "the end|half way"]]);
      const { messages } = toMessages({ input }) as { messages: { role: string; content: { type: string }[] }[] };
      expect(messages.at(-1)?.content.map(({ type }) => type)).toEqual(["tool_result"]);
      expect((toResponses({ input }).input as { type: string }[]).map(({ type }) => type)).toEqual([
        "custom_tool_call",
        "custom_tool_call_output",
      ]);
    });

    test("one of them after a later call", () => {
      const late = [call("c1"), output("c1", "yields"), call("c2"), output("c1", "half way"), output("c2", "the end")];
      expect(results(late)).toEqual([
        ["c1", "yields|half way"],
        ["c2", "the end"],
      ]);
    });

    test("but calls that share an id keep a result each", () => {
      const same = [call("c1"), call("c1"), output("c1", "one"), output("c1", "two")];
      expect(results(same).map(([, text]) => text)).toEqual(["one", "two"]);
      const again = [call("c1"), output("c1", "one"), call("c1"), output("c1", "two")];
      expect(results(again).map(([, text]) => text)).toEqual(["one", "two"]);
    });
  });
});

describe("tools", () => {
  test("chat engines are told of functions alone: namespaces in the name, custom tools with one string", () => {
    const tools = toChat({ tools: [shell, agents, patch, search] }).tools as { function: Record<string, unknown> }[];
    expect(tools.map((tool) => tool.function.name)).toEqual(["exec_command", "multi_agent_v1__spawn", "apply_patch"]);
    expect(tools[2]?.function.description).toBe(
      "Edits files.\n\nIts input must follow this lark grammar:\nstart: LINE+",
    );
    expect(tools[2]?.function.parameters).toMatchObject({
      required: ["input"],
      properties: { input: { type: "string" } },
    });
  });

  test("an engine of the same protocol is told of them as the caller wrote them", () => {
    expect(toResponses({ tools: [shell, agents, patch, search] }).tools).toEqual([shell, agents, patch]);
  });

  test("the tools of additional_tools items are tools like any other; of the namespace functions by their bare names", () => {
    const exec = { type: "custom", name: "exec" };
    const functions = { type: "namespace", name: "functions", tools: [exec, shell] };
    const input = [
      { type: "additional_tools", role: "developer", tools: [functions, agents] },
      { role: "user", content: "go" },
    ];
    const tools = toChat({ input }).tools as { function: { name: string } }[];
    expect(tools.map((tool) => tool.function.name)).toEqual(["exec", "exec_command", "multi_agent_v1__spawn"]);
    expect(centre({ input }).needs[0]).toEqual({ capability: "tools", param: "input[0]" });
  });

  test("names that would collide, or are too long or strange for engines, become names of their own", () => {
    const inner = (name: string) => ({ type: "function", name });
    const long = "x".repeat(100);
    const tools = [
      inner("a__b"),
      { type: "namespace", name: "a", tools: [inner("b"), inner(long), inner(`${long}y`)] },
      inner("with.dots and spaces"),
    ];
    const told = (toChat({ tools }).tools as { function: { name: string } }[]).map((tool) => tool.function.name);
    expect(new Set(told).size).toBe(5);
    for (const name of told) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  });

  test("a hostile list of tools, all of one name, costs no more than its length", () => {
    const tools = Array.from({ length: 10_000 }, (_, at) => ({
      type: "function",
      name: [...at.toString(2)].map((bit) => (bit === "1" ? "." : " ")).join(""),
    }));
    expect(new Set(centre({ tools }).tools.map((tool) => tool.name)).size).toBe(10_000);
  });

  test("calls of the history keep the names that engines were told, custom ones their text", () => {
    const input = [
      { role: "user", content: "go" },
      { type: "function_call", call_id: "c1", name: "spawn", namespace: "multi_agent_v1", arguments: '{"task":"x"}' },
      { type: "custom_tool_call", call_id: "c2", name: "apply_patch", input: '*** Begin "x"\n' },
      { type: "function_call_output", call_id: "c1", output: "ok" },
      { type: "custom_tool_call_output", call_id: "c2", output: "done" },
    ];
    const messages = toChat({ input, tools: [agents, patch] }).messages as Record<string, unknown>[];
    const calls = messages[1]?.tool_calls as { function: { name: string; arguments: string } }[];
    expect(calls.map((call) => call.function.name)).toEqual(["multi_agent_v1__spawn", "apply_patch"]);
    expect(JSON.parse(calls[1]?.function.arguments ?? "")).toEqual({ input: '*** Begin "x"\n' });
    expect(toResponses({ input, tools: [agents, patch] }).input).toEqual([
      { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
      ...input.slice(1),
    ]);
  });

  test("a call without arguments in the history has an empty object: llama.cpp answers 500 to what is no JSON", () => {
    const call = { type: "function_call", id: "fc_1", call_id: "c1", name: "spawn", namespace: "multi_agent_v1" };
    const result = { type: "function_call_output", call_id: "c1", output: "ok" };
    for (const written of ["", " "]) {
      const [, replayed] = toResponses({
        input: [{ role: "user", content: "go" }, { ...call, arguments: written }, result],
      }).input as object[];
      expect(replayed).toMatchObject({ name: "spawn", namespace: "multi_agent_v1", arguments: "{}" });
    }
    const custom = { type: "custom_tool_call", call_id: "c1", name: "apply_patch", input: "" };
    const { input } = toResponses({ input: [{ role: "user", content: "go" }, custom], tools: [patch] });
    expect(input).toContainEqual(custom);
  });
});

describe("the rest", () => {
  test("input that says nothing is refused here, not by an engine", () => {
    const silent = [
      { type: "additional_tools", tools: [shell] },
      { type: "reasoning", encrypted_content: "another service's" },
    ];
    expect(refused({ input: silent })).toEqual({ code: "invalid_value", param: "input" });
    expect(centre({ input: silent, instructions: "Speak." }).turns).toHaveLength(1);
  });

  test("what coding agents always send is accepted, and asks nothing of a model", () => {
    const request = centre({
      reasoning: { effort: "high", summary: "auto", context: "x" },
      include: ["reasoning.encrypted_content"],
      store: false,
      text: { verbosity: "low" },
      truncation: "disabled",
      prompt_cache_key: "k",
      client_metadata: { a: 1 },
      metadata: { a: "b" },
      service_tier: "auto",
      stream_options: { include_obfuscation: false },
      tools: [],
      tool_choice: "auto",
      parallel_tool_calls: true,
      background: false,
      instructions: null,
      max_output_tokens: null,
      context_management: [],
      something_new: [1],
    });
    expect(request.needs).toEqual([]);
    expect(request.outputTokens_max).toBeUndefined();
    expect(request.reasoning?.effort).toBe("high");
    expect(withoutLostHints(request, { capabilities: new Set() }).reasoning).toBeUndefined();
    expect(request.cacheKey).toBe("k");
    expect(Object.keys(sent(upstreams.chat.request.encode(request, ask)))).not.toContain("max_tokens");
  });

  test("an engine of the same protocol is told of effort and summary as the caller said, and asked for what it encrypts", () => {
    const told = toResponses({ reasoning: { effort: "xhigh", summary: "auto", context: "x" } });
    expect(told.reasoning).toEqual({ effort: "xhigh", summary: "auto" });
    expect(told.include).toEqual(["reasoning.encrypted_content"]);
    expect(toResponses({ reasoning: { generate_summary: "concise" } }).reasoning).toEqual({ summary: "concise" });
    expect(toResponses({ reasoning: { summary: null, generate_summary: null } })).not.toHaveProperty("reasoning");
    expect(toResponses({})).not.toHaveProperty("include");
    expect(toChat({ reasoning: { summary: "auto" } })).not.toHaveProperty("reasoning_effort");
    expect(toResponses({}).store).toBe(false);
  });

  test("a format is flat here and nested in chat", () => {
    const format = { type: "json_schema", name: "n", strict: true, schema: { type: "object" } };
    expect(toChat({ text: { format } }).response_format).toEqual({
      type: "json_schema",
      json_schema: { name: "n", strict: true, schema: { type: "object" } },
    });
    expect(toResponses({ text: { format } }).text).toEqual({ format });
    expect(centre({ text: { format } }).needs).toEqual([{ capability: "structured_output", param: "text.format" }]);
  });

  test.each([
    [{ input: [{ role: "user", content: [{ type: "input_audio" }] }] }, "input[0].content[0].type"],
    [
      { input: [{ role: "system", content: [{ type: "input_image", image_url: "data:a" }] }] },
      "input[0].content[0].type",
    ],
  ])("what the service does not have is refused by name: %j", (more, param) => {
    expect(refused(more)).toEqual({ code: "unsupported_feature", param });
  });

  test("programs are refused in words that say what they are", () =>
    expect(() => centre({ input: [{ type: "program", id: "p", call_id: "c", code: "1" }] })).toThrow(
      /programmatic tool calling \('program/,
    ));

  test.each([
    [{ input: undefined }, "missing_field", "input"],
    [{ input: [] }, "invalid_value", "input"],
    [{ input: [{}] }, "missing_field", "input[0].type"],
    [{ input: [{ role: "user", content: [{ type: "nonsense" }] }] }, "invalid_value", "input[0].content[0].type"],
    [
      {
        input: [
          { role: "user", content: "a" },
          { role: "user", content: [{ type: "input_image", image_url: "ftp://x" }] },
        ],
      },
      "invalid_value",
      "input[1].content[0].image_url",
    ],
    [{ input: [{ type: "function_call_output", call_id: "c", output: "x" }] }, "invalid_value", "input[0].call_id"],
    [
      { input: [{ type: "function_call", call_id: "c", name: "f", arguments: {} }] },
      "invalid_value",
      "input[0].arguments",
    ],
    [{ tools: [{ type: "function" }] }, "missing_field", "tools[0].name"],
    [{ tool_choice: "required" }, "invalid_value", "tool_choice"],
    [{ tools: [shell], tool_choice: { type: "function", name: "other" } }, "invalid_value", "tool_choice.name"],
  ])("a body that cannot be is told where: %j", (more, code, param) => {
    expect(refused(more)).toEqual({ code, param });
  });
});

describe("a configuration update", () => {
  const update = (settings: object) => ({ type: "configuration_update", ...settings });
  const low = update({ reasoning: { effort: "low" } });
  const said = { role: "user", content: "hello" };
  const schema = (name: string) => ({ type: "json_schema", name, schema: { type: "object" } });
  const effortOf = (...input: object[]) => centre({ reasoning: { effort: "high" }, input }).reasoning?.effort;

  test("replaces the effort of the request, and the last one is in force", () => {
    expect(effortOf(said)).toBe("high");
    expect(effortOf(said, low)).toBe("low");
    expect(effortOf(low, said, update({ reasoning: { effort: "max" } }), said)).toBe("max");
  });

  test("changes nothing that it does not name", () => {
    expect(effortOf(low, said, update({ text: { format: schema("n") } }))).toBe("low");
    expect(effortOf(low, said, update({ reasoning: { effort: null } }), update({}))).toBe("low");
    expect(centre({ reasoning: { effort: "high", summary: "auto" }, input: [low, said] }).reasoning).toEqual({
      effort: "low",
      native: { protocol: "openai-responses", wire: { effort: "low", summary: "auto" } },
    });
  });

  test("replaces the form of the answer, also by plain text", () => {
    const format = (...input: object[]) => centre({ text: { format: schema("first") }, input }).format;
    expect(format(said)).toMatchObject({ name: "first" });
    expect(format(update({ text: { format: schema("second") } }), said)).toMatchObject({ name: "second" });
    expect(format(update({ text: { format: { type: "text" } } }), said)).toBeUndefined();
  });

  test("that asks for a form of the answer asks for the capability by its own path", () =>
    expect(centre({ input: [said, update({ text: { format: schema("n") } })] }).needs).toEqual([
      { capability: "structured_output", param: "input[1].text.format" },
    ]));

  test("stays in force in a stored conversation", () => {
    const wire = validated.responses({ ...body({ input: "go on" }), previous_response_id: "resp_1" });
    const history = [low, { type: "message", role: "user", content: "hello" }] as never;
    const request = callers.responses.request.decode(withResolved(wire, { history, items: new Map() }));
    expect(request.reasoning?.effort).toBe("low");
    expect(storable(validated.responses(body({ input: [low, said] })), stored)?.input).toMatchObject([
      { type: "configuration_update", id: expect.stringMatching(/^cu_/) },
      { type: "message" },
    ]);
  });

  test("alone is no conversation", () =>
    expect(refused({ input: [low] })).toEqual({ code: "invalid_value", param: "input" }));

  test.each([
    ["an effort that there is not", { reasoning: { effort: "huge" } }, "input[0].reasoning.effort"],
    ["a form that there is not", { text: { format: { type: "xml" } } }, "input[0].text.format.type"],
    ["a text for settings", { reasoning: "low" }, "input[0].reasoning"],
  ])("with %s is told by its path", (_, settings, param) =>
    expect(refused({ input: [update(settings), said] })).toEqual({ code: "invalid_value", param }),
  );
});

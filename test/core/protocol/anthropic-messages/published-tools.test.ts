/**
 * Tools that a Messages caller lists by their type alone: the functions that they become, and their calls and results.
 */
import { describe, expect, test } from "bun:test";
import { Compile } from "typebox/compile";
import { publishedTools } from "../../../../src/core/protocol/anthropic-messages/published-tools.ts";
import { faultOf } from "../../../harness/faults.ts";
import { callers, upstreams, validated } from "../codecs.ts";
import { folded } from "../reading.ts";

const ask = { model: "engine", stream: true, outputTokens_max: 4096 };
const base = { model: "acme/writer-1", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
const centre = (body: object) => callers.messages.request.decode(validated.messages({ ...base, ...body }));

/** Inputs as Anthropic's documentation shows them, and inputs that are not valid. */
const calls: Record<string, { good: object[]; bad: object[] }> = {
  bash: { good: [{ command: "ls" }, { restart: true }], bad: [{ command: 1 }] },
  str_replace_editor: {
    good: [
      { command: "view", path: "/a", view_range: [1, -1] },
      { command: "insert", path: "/a", insert_line: 0, new_str: "x" },
      { command: "undo_edit", path: "/a" },
    ],
    bad: [{ command: "delete", path: "/a" }, { command: "view" }],
  },
  str_replace_based_edit_tool: {
    good: [
      { command: "view", path: "/a" },
      { command: "create", path: "/a", file_text: "x" },
      { command: "str_replace", path: "/a", old_str: "x", new_str: "y" },
      { command: "insert", path: "/a", insert_line: 2, insert_text: "x" },
    ],
    bad: [{ command: "undo_edit", path: "/a" }, { path: "/a" }],
  },
  memory: {
    good: [
      { command: "view", path: "/memories" },
      { command: "insert", path: "/memories/a", insert_line: 0, insert_text: "x" },
      { command: "delete", path: "/memories/a" },
      { command: "rename", old_path: "/memories/a", new_path: "/memories/b" },
    ],
    bad: [{ command: "undo_edit", path: "/memories" }, {}],
  },
};

describe.each(Object.entries(publishedTools))("%s", (type, { name }) => {
  const listed = { type, name };

  test.each(Object.entries(upstreams))("is a function with its published schema at an engine of %s", (_, upstream) => {
    const asked = JSON.stringify(upstream.request.encode(centre({ tools: [listed] }), ask));
    expect(asked).toContain(`"name":"${name}"`);
    expect(asked).toContain('"command":{"type":"string"');
    expect(asked).not.toContain(type);
  });

  test("has a schema that takes what clients answer to, and nothing else", () => {
    const [tool] = centre({ tools: [listed] }).tools;
    const schema = Compile(tool!.parameters as never);
    for (const input of calls[name]!.good) expect([input, schema.Check(input)]).toEqual([input, true]);
    for (const input of calls[name]!.bad) expect([input, schema.Check(input)]).toEqual([input, false]);
    if (name === "str_replace_editor") expect(tool!.parameters!.properties).not.toHaveProperty("insert_text");
  });

  test("keeps what a client says beside its type, for engines that know it", () => {
    const more = { cache_control: { type: "ephemeral" }, strict: true, max_characters: 100 };
    const [asked] = upstreams.messages.request.encode(centre({ tools: [{ ...listed, ...more }] }), ask).tools as Record<
      string,
      unknown
    >[];
    expect(asked).toMatchObject({ name, cache_control: { type: "ephemeral" }, strict: true });
    expect(asked).not.toHaveProperty("max_characters");
    expect(asked).toHaveProperty("input_schema.properties.command");
  });

  test("is called, and its result returned, under its name", () => {
    const identity = { responseId: `msg_${"0".repeat(32)}`, createdAtSeconds: 1, model: "a/b" };
    const input = calls[name]!.good[0]!;
    const reply = {
      choices: [
        {
          finish_reason: "tool_calls",
          message: {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "c1", type: "function", function: { name, arguments: JSON.stringify(input) } }],
          },
        },
      ],
    };
    const wire = validated.messages({ ...base, tools: [listed] });
    const answer = folded(upstreams.chat.response.decode(reply, identity));
    const use = { type: "tool_use", id: "c1", name, input };
    expect(callers.messages.response.encode(answer, wire)).toMatchObject({
      content: [use],
      stop_reason: "tool_use",
    });
    const next = centre({
      tools: [listed],
      messages: [
        ...base.messages,
        { role: "assistant", content: [use] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "RESULT" }] },
      ],
    });
    for (const upstream of Object.values(upstreams))
      expect(JSON.stringify(upstream.request.encode(next, ask))).toMatch(/c1.*RESULT/);
  });

  test("may be chosen, beside tools with a schema", () => {
    const other = { name: "f", input_schema: {} };
    expect(centre({ tools: [other, listed], tool_choice: { type: "tool", name } }).toolChoice).toEqual({
      kind: "tool",
      name,
    });
  });
});

test.each([
  ["a name that is not the tool's", { type: "bash_20250124", name: "shell" }, "invalid_value tools[0].name"],
  ["no name", { type: "memory_20250818" }, "missing_field tools[0].name"],
  ["a version that nobody published", { type: "bash_20991231", name: "bash" }, "unsupported_feature tools[0].type"],
  ["computer use", { type: "computer_20251124", name: "computer" }, "unsupported_feature tools[0].type"],
])("%s is refused", (_, tool, told) => {
  const { code, details, message } = faultOf(() => validated.messages({ ...base, tools: [tool] }))!;
  expect(`${code} ${details.param}`).toBe(told);
  if (code === "unsupported_feature") expect(message).toContain(tool.type);
});

/**
 * An engine that has all of Messages (`wholeMessages`) gets a conversation as its client wrote it, so that the beginning of a
 * conversation that grows stays as it was: such an engine refuses a thought if anything before it has changed, and caches
 * what does not change.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { dialects } from "../../../../src/core/protocol/dialects.ts";
import { withoutRefused } from "../../../../src/core/protocol/refused-field.ts";
import { callers, upstreams } from "../codecs.ts";
import { forAll } from "../for-all.ts";

type Body = Record<string, unknown> & { messages: unknown[]; tools?: { name: string }[] };
type Message = Record<string, unknown>;

const whole = dialects.anthropic;
const decoded = (more: object) =>
  callers.messages.request.decode({ model: "acme/one", max_tokens: 100, ...more } as never);

function encoded(request: ReturnType<typeof decoded>, dialect: (typeof dialects)[keyof typeof dialects] = whole): Body {
  const ask = { model: "m", stream: false, outputTokens_max: 4096, dialect };
  return JSON.parse(JSON.stringify(upstreams.messages.request.encode(request, ask))) as Body;
}
const sent = (more: object) => encoded(decoded(more));

const tool = (name: string, more: object = {}) => ({ name, input_schema: { type: "object" }, ...more });
const thinking = { type: "thinking", thinking: "I look for a tool.", signature: "c2lnbmVk" };
const asked = { role: "user", content: "Fetch the page." };
const search = { type: "tool_use", id: "toolu_1", name: "ToolSearch", input: { query: "fetch" } };
const found = {
  type: "tool_result",
  tool_use_id: "toolu_1",
  content: [{ type: "tool_reference", tool_name: "WebFetch" }],
};
const searched = [asked, { role: "assistant", content: [thinking, search] }, { role: "user", content: [found] }];

describe("a conversation of Claude Code, at an engine that has all of Messages,", () => {
  test("has the tools that were found as deferred ones, and the reference to them", () => {
    const tools = [tool("ToolSearch"), tool("WebFetch", { defer_loading: true })];
    const body = sent({ messages: searched, tools });
    expect(body.messages).toEqual(searched);
    expect(body.tools).toEqual(tools);
  });

  test("keeps the messages that change the tools or that are cleared, and the tools as they were listed", () => {
    const messages = [
      asked,
      { role: "system", content: "Be brief.", clear_at: "next_user_message" },
      { role: "assistant", content: [thinking, { type: "text", text: "How?" }] },
      { role: "user", content: "By hand." },
      {
        role: "system",
        content: [
          { type: "tool_removal", tool: { type: "tool_reference", name: "WebFetch" } },
          { type: "tool_addition", tool: { type: "tool_definition", definition: tool("Hand") } },
        ],
      },
      { role: "system", output_config: { effort: "low" } },
    ];
    const tools = [tool("WebFetch")];
    const body = sent({ messages, tools, system: [{ type: "text", text: "You fetch." }] });
    expect(body.messages).toEqual(messages);
    expect(body.tools).toEqual(tools);
    expect(body.system).toBe("You fetch.");
  });

  test("says what is to become of thoughts that do not fit", () => {
    const bound = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };
    expect(sent({ messages: searched, thinking: bound }).thinking).toEqual(bound);
    expect(encoded(decoded({ messages: searched, thinking: bound }), dialects.vllm).thinking).toEqual({
      type: "adaptive",
    });
  });

  test("begins as it began, however it goes on", () => {
    const name = fc.constantFrom("", "one", "two");
    const text = name.map((value) => ({ type: "text", text: value, cache_control: null }));
    const blocks = {
      user: name.map((value) => ({ type: "tool_result", tool_use_id: `call.${value}`, content: value })),
      assistant: fc.oneof(
        name.map((value) => ({ type: "thinking", thinking: value, signature: value })),
        name.map((value) => ({ type: "tool_use", id: `call.${value}`, name: "one", input: {} })),
      ),
      system: name.map((value) => ({ type: "tool_removal", tool: { type: "tool_reference", name: value } })),
    };
    const message = fc.constantFrom("user", "assistant", "system").chain((role) =>
      fc.record({
        role: fc.constant(role),
        content: fc.oneof(name, fc.array(fc.oneof(text, blocks[role]), { minLength: 1, maxLength: 4 })),
        ...(role === "system" && { clear_at: fc.constantFrom("never", "next_user_message", null) }),
      }),
    );
    forAll([fc.array(message, { maxLength: 6 }), fc.nat(6)], 500, (rest: Message[], at) => {
      const messages = [asked, ...rest];
      const before = sent({ messages: messages.slice(0, at + 1) }).messages;
      expect(sent({ messages }).messages.slice(0, before.length)).toEqual(before);
    });
  });
});

test("what such an engine refuses is left out or put in order, message by message", () => {
  const foreign = { type: "thinking", thinking: "Hm.", signature: "c2VydmljZTp1bnNpZ25lZA==" };
  const messages = [
    asked,
    {
      role: "assistant",
      content: [foreign, { type: "tool_use", id: "call.1", name: "one", input: null }, { type: "text", text: "Look." }],
    },
    {
      role: "user",
      content: [
        { type: "text", text: "There.", cache_control: null },
        { type: "tool_result", tool_use_id: "call.1", content: [{ type: "text", text: "" }], is_error: null },
      ],
    },
    { role: "assistant", content: [foreign, { type: "text", text: "" }] },
    { role: "system", content: null },
  ];
  expect(sent({ messages }).messages).toEqual([
    asked,
    {
      role: "assistant",
      content: [
        { type: "text", text: "Look." },
        { type: "tool_use", id: "call_1", name: "one", input: {} },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_1", content: [] },
        { type: "text", text: "There." },
      ],
    },
  ]);
});

test("tools that the service would run itself are not listed there either", () => {
  const hosted = { type: "web_search_20250305", name: "web_search" };
  expect(sent({ messages: [asked], tools: [tool("one"), hosted] }).tools).toEqual([tool("one")]);
});

describe("the request's turns are what is sent", () => {
  const messages = [...searched, { role: "system", content: "Be brief.", clear_at: "next_user_message" }, asked];

  test("to engines that have only a part of Messages", () => {
    const body = encoded(decoded({ messages, tools: [tool("one", { defer_loading: true })] }), dialects.vllm);
    expect(JSON.stringify(body)).not.toMatch(/defer_loading|tool_reference|clear_at/);
  });

  test("once they differ from what the client wrote: without the thoughts that an engine has refused", () => {
    const request = decoded({ messages });
    const error = { message: "messages.1.content.0: Invalid `signature` in `thinking` block." };
    const without = withoutRefused({ request, dialect: whole }, 400, { error })!.request!;
    expect(JSON.stringify(encoded(request))).toContain(thinking.signature);
    expect(JSON.stringify(encoded(without))).not.toContain(thinking.signature);
  });

  test("if instructions stand at the head of the messages", () => {
    const body = sent({ messages: [{ role: "system", content: "Be brief." }, asked], system: "You fetch." });
    expect(body.messages).toEqual([{ role: "user", content: [{ type: "text", text: asked.content }] }]);
    expect(JSON.stringify(body.system)).toContain("Be brief.");
  });
});

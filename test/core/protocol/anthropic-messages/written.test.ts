/**
 * An engine that supports all of Messages (`wholeMessages`) gets a conversation as its client wrote it, so that the
 * beginning stays the same while the conversation grows: such an engine refuses a thinking block if anything before it
 * has changed, and caches the part that does not change.
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
const says = (role: string, text: string) => ({ role, content: [{ type: "text", text }] });
const asked = says("user", "Fetch the page.");
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
      { ...says("system", "Be brief."), clear_at: "next_user_message" },
      { role: "assistant", content: [thinking, { type: "text", text: "How?" }] },
      says("user", "By hand."),
      {
        role: "system",
        content: [
          { type: "tool_removal", tool: { type: "tool_reference", name: "WebFetch" } },
          { type: "tool_addition", tool: { type: "tool_definition", definition: tool("Hand") } },
        ],
      },
      { role: "system", content: [], output_config: { effort: "low" } },
    ];
    const tools = [tool("WebFetch")];
    const output_config = { effort: "high" };
    const system = [{ type: "text", text: "You fetch." }];
    const body = sent({ messages, tools, system, thinking: { type: "adaptive" }, output_config });
    expect(body.output_config).toEqual(output_config);
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
    const word = fc.constantFrom("", " ", "one", "two");
    const text = word.map((value) => ({ type: "text", text: value, cache_control: null }));
    const thought = word.map((value) => ({ type: "thinking", thinking: value, signature: value }));
    const tools = [tool("one"), tool("two", { defer_loading: true })];
    const change = fc.record({
      type: fc.constantFrom("tool_addition", "tool_removal"),
      tool: fc.constantFrom("one", "two").map((name) => ({ type: "tool_reference", name })),
    });
    const system = fc.record({
      role: fc.constant("system"),
      content: fc.oneof(word, fc.array(fc.oneof(text, change), { minLength: 1, maxLength: 3 })),
      clear_at: fc.constantFrom("never", "next_user_message", null),
    });
    // One round: the model's message, the answer of the user or a tool, and perhaps instructions.
    const round = fc
      .record({
        said: fc.array(fc.oneof(text, thought), { maxLength: 3 }),
        called: fc.option(fc.constantFrom("call.1", "call.2", "call_1")),
        answer: fc.array(text, { minLength: 1, maxLength: 2 }),
        instructions: fc.array(system, { maxLength: 2 }),
      })
      .map(({ said, called, answer, instructions }): Message[] => [
        {
          role: "assistant",
          content: [...said, ...(called ? [{ type: "tool_use", id: called, name: "one", input: {} }] : [])],
        },
        {
          role: "user",
          content: called ? [{ type: "tool_result", tool_use_id: called, content: answer }, ...answer] : answer,
        },
        ...instructions,
      ]);
    forAll([fc.array(round, { maxLength: 5 }), fc.nat(20)], 500, (rounds: Message[][], at) => {
      const messages = [asked, ...rounds.flat()];
      const before = sent({ messages: messages.slice(0, at + 1), tools });
      const after = sent({ messages, tools });
      expect(after.messages.slice(0, before.messages.length)).toEqual(before.messages);
      expect(after.tools).toEqual(before.tools);
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
        { type: "tool_result", tool_use_id: "call_1", content: "" },
        { type: "text", text: "There." },
      ],
    },
  ]);
});

describe("tools that the service would run itself", () => {
  const hosted = { type: "web_search_20250305", name: "web_search" };

  test("are not listed there either", () => {
    expect(sent({ messages: [asked], tools: [tool("one"), hosted] }).tools).toEqual([tool("one")]);
  });

  test("are not added by a message, and no change of them is sent", () => {
    const definition = { type: "tool_definition", definition: hosted };
    for (const [type, changed] of [
      ["tool_addition", definition],
      ["tool_removal", { type: "tool_reference", name: "web_search" }],
    ] as const) {
      const messages = [asked, { role: "system", content: [{ type, tool: changed }] }];
      expect(JSON.stringify(sent({ messages, tools: [tool("one"), hosted] }))).not.toContain("web_search");
    }
  });

  test("cannot find deferred tools, so these are listed like others; and one tool at least is", () => {
    const deferred = tool("one", { defer_loading: true });
    const search = { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" };
    expect(sent({ messages: [asked], tools: [search, tool("two"), deferred] }).tools).toEqual([
      tool("two"),
      tool("one"),
    ]);
    expect(sent({ messages: [asked], tools: [deferred] }).tools).toEqual([tool("one")]);
  });
});

describe("what is mended for other engines of Messages is mended for this one:", () => {
  const jpeg = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAEB";

  test("the media type of an image, in a result too", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: jpeg } };
    const result = { type: "tool_result", tool_use_id: "toolu_1", content: [image] };
    const messages = [asked, { role: "assistant", content: [search] }, { role: "user", content: [result, image] }];
    const body = JSON.stringify(sent({ messages }));
    expect(body.match(/image\/jpeg/g)).toHaveLength(2);
    expect(body).not.toContain("image/png");
  });

  test("texts of blanks alone, schemas without a type, keys that mean nothing, nulls", () => {
    const messages = [
      asked,
      {
        role: "assistant",
        id: "msg_1",
        content: [{ type: "text", text: "\n\n", index: 0 }, search],
        stop_reason: null,
      },
      { role: "user", content: [{ ...found, uuid: "1" }] },
    ];
    const body = sent({ messages, tools: [{ name: "one", input_schema: {}, strict: null, uuid: 1 }] });
    expect(body.messages).toEqual([
      asked,
      { role: "assistant", content: [search] },
      { role: "user", content: [found] },
    ]);
    expect(body.tools).toEqual([tool("one")]);
  });

  test("no effort of the whole request is made of one of a message, before the answer and after it", () => {
    const said = [thinking, { type: "text", text: "How?" }];
    const messages = [asked, { role: "system", content: [], output_config: { effort: "low" } }];
    for (const body of [
      sent({ messages }),
      sent({ messages: [...messages, says("user", "Go on."), { role: "assistant", content: said }, asked] }),
    ]) {
      expect(body.messages.slice(0, 2)).toEqual(messages);
      expect(body.output_config).toBeUndefined();
    }
  });

  test("efforts, for a model that does not reason", () => {
    const messages = [asked, { role: "system", output_config: { effort: "low" } }, asked];
    const request = decoded({ messages, output_config: { effort: "high" } });
    expect(encoded(request)).toMatchObject({ output_config: { effort: "high" } });
    delete request.reasoning;
    expect(JSON.stringify(encoded(request))).not.toContain("effort");
  });
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

  test("if something stands between a call and its result, or one answer of the model is in two messages", () => {
    const [, called, result] = searched;
    const between = sent({ messages: [asked, called, says("system", "Be brief."), result] });
    expect(between.messages.map((message) => (message as Message).role)).toEqual([
      "user",
      "assistant",
      "user",
      "system",
    ]);
    const waiting = sent({ messages: [asked, called, says("user", "Wait."), result] });
    expect(JSON.stringify(waiting.messages)).toMatch(/toolu_1.*tool_result.*Wait/);
    const changed = {
      role: "system",
      content: [{ type: "tool_removal", tool: { type: "tool_reference", name: "one" } }],
    };
    expect(sent({ messages: [asked, called, changed, result], tools: [tool("one")] }).messages).toHaveLength(3);
    const split = sent({ messages: [asked, called, says("assistant", "Look."), result] });
    expect(split.messages).toHaveLength(3);
  });

  test("if instructions stand at the head of the messages", () => {
    const body = sent({ messages: [{ role: "system", content: "Be brief." }, asked], system: "You fetch." });
    expect(body.messages).toEqual([asked]);
    expect(JSON.stringify(body.system)).toContain("Be brief.");
  });
});

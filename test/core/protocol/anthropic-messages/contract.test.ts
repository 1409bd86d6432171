/** Which Messages requests are valid, and how an invalid one is refused: a 400 whose message begins with the path. */
import { describe, expect, test } from "bun:test";
import { encodeFault } from "../../../../src/core/protocol/anthropic-messages/fault.ts";
import {
  validateCountTokens,
  validateMessagesRequest,
} from "../../../../src/core/protocol/anthropic-messages/validate.ts";
import { faultOf } from "../../../harness/faults.ts";

const user = { role: "user", content: "Hello" };
const base = { model: "acme/writer-1", max_tokens: 100, messages: [user] };
const tool = { name: "look_up", description: "Looks up.", input_schema: { type: "object", properties: {} } };
const webSearch = { type: "web_search_20250305", name: "web_search", max_uses: 8 };
const use = { type: "tool_use", id: "toolu_1", name: "look_up", input: {} };
const result = { type: "tool_result", tool_use_id: "toolu_1", content: "4 degrees" };
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const imageOf = (more: object) => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: png, ...more },
});
const image = imageOf({});
const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQK" } };
const cache = { cache_control: { type: "ephemeral", ttl: "1h" } };

const says = (...messages: unknown[]) => ({ ...base, messages });
const content = (...blocks: unknown[]) => says({ role: "user", content: blocks });
const loop = (...results: unknown[]) =>
  says(user, { role: "assistant", content: [use] }, { role: "user", content: results });

const refusal = (body: unknown) => faultOf(() => validateMessagesRequest(body));
const verdict = (body: unknown) => {
  const fault = refusal(body);
  return fault ? `${fault.code} ${fault.details.param ?? "-"}` : "accepted";
};

describe("a request that clients really send is accepted", () => {
  const accepted: Record<string, unknown> = {
    "the least": base,
    "what Claude Code sends": {
      ...base,
      max_tokens: 32_000,
      stream: true,
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.329.f01; cch=00000;" },
        { type: "text", text: "You are an agent.", ...cache },
      ],
      tools: [
        tool,
        {
          name: "DeferredToolPlaceholder",
          description: "never call",
          input_schema: { type: "object" },
          defer_loading: true,
        },
        { ...tool, name: "found", defer_loading: true },
        webSearch,
      ],
      metadata: { user_id: '{"session_id":"s"}' },
      thinking: { type: "adaptive", display: "omitted" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      output_config: { effort: "high" },
      messages: [
        user,
        { role: "system", content: [{ type: "text", text: "A note." }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "not ours" },
            { type: "text", text: "I look." },
            use,
          ],
        },
        {
          role: "user",
          content: [
            {
              ...result,
              content: [{ type: "tool_reference", tool_name: "found" }, image, pdf],
              is_error: false,
              ...cache,
            },
          ],
        },
        { role: "system", content: "Another note." },
      ],
    },
    "thinking with a budget above the cap": { ...base, thinking: { type: "enabled", budget_tokens: 31_999 } },
    "additional keys of any type": { ...base, anything: [1, { x: null }], betas: ["x"], service_tier: 3, speed: {} },
    "additional keys in blocks, messages and tools": {
      ...says({ ...user, x: 1 }, { role: "assistant", content: [{ type: "text", text: "a", citations: null, y: [] }] }),
      tools: [{ ...tool, allowed_callers: ["direct"], input_examples: [{}], z: 0 }],
    },
    "one role several times in a row": says(
      user,
      user,
      { role: "assistant", content: "a" },
      { role: "assistant", content: [] },
      user,
    ),
    "an assistant message that says nothing": says(user, { role: "assistant", content: "" }),
    "documents of text, of blocks, and search results": content(
      { type: "document", source: { type: "text", media_type: "text/plain", data: "x" }, title: "T", context: "C" },
      {
        type: "document",
        source: { type: "content", content: [{ type: "text", text: "x" }, image] },
        citations: { enabled: true },
      },
      { type: "search_result", source: "https://a", title: "A", content: [{ type: "text", text: "x" }] },
    ),
    "an image by URL": content({ type: "image", source: { type: "url", url: "https://a/b.png" } }),
    "an image that is another kind than it says": content(imageOf({ media_type: "image/gif" })),
    "a tool result without content, and one that failed": loop(
      { type: "tool_result", tool_use_id: "toolu_1" },
      { ...result, is_error: true },
    ),
    "a tool of type custom, and one of type null": {
      ...base,
      tools: [
        { ...tool, type: "custom" },
        { ...tool, name: "b", type: null },
      ],
    },
    "a choice of one tool": { ...base, tools: [tool], tool_choice: { type: "tool", name: "look_up" } },
    "structured output, and its older name": {
      ...base,
      output_config: { format: { type: "json_schema", schema: { type: "object" } } },
      output_format: { type: "json_schema", schema: {} },
    },
    "redacted thinking": says(
      user,
      {
        role: "assistant",
        content: [
          { type: "redacted_thinking", data: "abc" },
          { type: "text", text: "a" },
        ],
      },
      user,
    ),
    "200 tools": { ...base, tools: Array.from({ length: 200 }, (_, at) => ({ ...tool, name: `t${at}` })) },
  };
  for (const [what, body] of Object.entries(accepted)) test(what, () => expect(verdict(body)).toBe("accepted"));
});

describe("a request that is wrong is refused at its first offence", () => {
  const refused: Record<string, [body: unknown, verdict: string]> = {
    "no object": [[], "invalid_value -"],
    nothing: [null, "invalid_value -"],
    "no messages": [{ model: "a/b", max_tokens: 1 }, "missing_field messages"],
    "a conversation that says nothing": [
      says({ role: "assistant", content: "" }, { role: "system", content: [{ type: "text", text: "" }] }),
      "invalid_value messages",
    ],
    "an empty conversation": [{ ...base, messages: [] }, "invalid_value messages"],
    "no cap": [{ model: "a/b", messages: [user] }, "missing_field max_tokens"],
    "a cap of null": [{ ...base, max_tokens: null }, "invalid_value max_tokens"],
    "a cap of 0, which fills a cache and answers nothing": [
      { ...base, max_tokens: 0 },
      "unsupported_feature max_tokens",
    ],
    "a wrong model behind a cap of 0": [{ ...base, max_tokens: 0, model: 3 }, "invalid_value model"],
    "system with an image": [{ ...base, system: [image] }, "invalid_value system[0].type"],
    "an empty stop sequence": [{ ...base, stop_sequences: ["a", ""] }, "invalid_value stop_sequences[1]"],
    "a choice of a tool that is not there": [
      { ...base, tools: [tool], tool_choice: { type: "tool", name: "x" } },
      "invalid_value tool_choice.name",
    ],
    "a tool must be called, and there is none": [
      { ...base, tool_choice: { type: "any" } },
      "invalid_value tool_choice",
    ],
    "a role nobody knows": [says({ role: "tool", content: "x" }), "invalid_value messages[0].role"],
    "content without blocks": [content(), "invalid_value messages[0].content"],
    "a block of a kind nobody knows": [
      says(user, { role: "user", content: [{ type: "video" }] }),
      "invalid_value messages[1].content[0].type",
    ],
    "a tool result of the assistant's": [
      says(user, { role: "assistant", content: [result] }),
      "invalid_value messages[1].content[0].type",
    ],
    "a tool result before its tool use": [
      says({ role: "user", content: [result] }, { role: "assistant", content: [use] }),
      "invalid_value messages[0].content[0].tool_use_id",
    ],
    "an image in a result that is none": [
      loop({ ...result, content: [imageOf({ data: "AAAA" })] }),
      "invalid_value messages[2].content[0].content[0].source.data",
    ],
  };
  for (const [what, [body, expected]] of Object.entries(refused))
    test(what, () => expect(verdict(body)).toBe(expected));

  /** For a block that comes first in the user's message: the code of the refusal, and the path within the block. */
  const blocks: Record<string, [block: object, verdict: string]> = {
    "a block without a type": [{ text: "x" }, "missing_field type"],
    "a tool use of the user's": [use, "invalid_value type"],
    "a tool result that answers nothing": [result, "invalid_value tool_use_id"],
    "an image of a kind nobody shows": [imageOf({ media_type: "image/tiff" }), "invalid_value source.media_type"],
    "an image that is text": [imageOf({ data: "aGVsbG8gd29ybGQhISEh" }), "invalid_value source.data"],
    "an image that is not base64": [
      { type: "image", source: { ...image.source, data: `${png}!` } },
      "invalid_value source.data",
    ],
    "an image that is nothing": [imageOf({ data: "" }), "invalid_value source.data"],
    "an image in a document that is none": [
      {
        type: "document",
        source: { type: "content", content: [imageOf({ data: "AAAA" })] },
      },
      "invalid_value source.content[0].source.data",
    ],
    "an image over plain HTTP": [
      { type: "image", source: { type: "url", url: "http://a/b.png" } },
      "invalid_value source.url",
    ],
    "a PDF that is not base64": [{ ...pdf, source: { ...pdf.source, data: "%PDF-1.4" } }, "invalid_value source.data"],
  };
  for (const [what, [block, expected]] of Object.entries(blocks))
    test(what, () => expect(verdict(content(block))).toBe(expected.replace(" ", " messages[0].content[0].")));
});

describe("what the service does not have is refused by name", () => {
  const refused: Record<string, [body: unknown, param: string]> = {
    "an edit of the future": [
      { ...base, context_management: { edits: [{ type: "clear_x_20290101" }] } },
      "context_management.edits[0].type",
    ],
    "a version of the bash tool that nobody published": [
      { ...base, tools: [tool, { type: "bash_20991231", name: "bash" }] },
      "tools[1].type",
    ],
    "a tool of the future": [{ ...base, tools: [tool, { type: "telepathy_20290101", name: "t" }] }, "tools[1].type"],
  };
  for (const [what, [body, param]] of Object.entries(refused))
    test(what, () => expect(verdict(body)).toBe(`unsupported_feature ${param}`));
});

describe("the words of a refusal", () => {
  const words = (body: unknown) => encodeFault(refusal(body)!, `req_${"0".repeat(32)}`);

  test("begin with the path, once", () => {
    expect(words(says({ role: "bot", content: "x" }))).toEqual({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: "messages[0].role: must be one of 'user', 'assistant' or 'system', but is the string 'bot'.",
        details: { error_code: "invalid_value" },
      },
      request_id: `req_${"0".repeat(32)}`,
    });
    expect(words({ ...base, max_tokens: 0 }).error.message).toStartWith(
      "max_tokens: This service does not support filling",
    );
  });

  test("of a thread are what the SDK goes on from, whatever else is wrong", () => {
    for (const thread of [{ type: "create" }, { type: "continue", previous_message_id: "msg_1" }, "x"]) {
      const { status, details } = {
        status: refusal({ ...base, thread })!.status,
        ...words({ thread, messages: [] }).error,
      };
      expect(status).toBe(400);
      expect(details).toEqual({ error_code: "thread_unsupported_request", unsupported: ["thread"] });
    }
  });

  test("never echo a secret", () => {
    const secret = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (const body of [
      { ...base, tools: [{ type: secret, name: "x" }] },
      says({ role: secret, content: "x" }),
      content({ ...result, tool_use_id: secret }),
    ])
      expect(words(body).error.message).not.toContain("AAAA");
  });
});

describe("a count", () => {
  const verdictOfCount = (body: unknown) => {
    const fault = faultOf(() => validateCountTokens(body));
    return fault ? `${fault.code} ${fault.details.param}` : "accepted";
  };

  test("needs no cap, and ignores what is not input", () => {
    const { max_tokens: _, ...uncapped } = base;
    expect(verdictOfCount(uncapped)).toBe("accepted");
    expect(verdictOfCount({ ...uncapped, tools: [], max_tokens: "x", temperature: "hot", thread: {}, stream: 1 })).toBe(
      "accepted",
    );
    expect(verdictOfCount({ ...uncapped, messages: [{ role: "user", content: [result] }] })).toBe("accepted");
  });

  test("is refused where the input is wrong", () => {
    expect(verdictOfCount({ model: "a/b" })).toBe("missing_field messages");
    expect(verdictOfCount({ ...base, messages: [{ role: "user", content: [{ type: "x" }] }] })).toBe(
      "invalid_value messages[0].content[0].type",
    );
  });
});

describe("size", () => {
  const many = (count: number, message: (at: number) => unknown) => ({
    ...base,
    messages: Array.from({ length: count }, (_, at) => message(at)),
  });
  const short = (at: number) => ({
    role: at % 2 ? "assistant" : "user",
    content: at % 3 ? "hi" : [{ type: "text", text: "hi" }],
  });

  test("100,000 short messages are judged without holding up anybody, good or bad", () => {
    const good = many(100_000, short);
    const bad = many(100_000, (at) => (at === 99_999 ? { role: "user", content: [{ type: "x" }] } : short(at)));
    for (const [body, expected] of [
      [good, "accepted"],
      [bad, "invalid_value messages[99999].content[0].type"],
    ] as const) {
      // The fastest of five runs, so that other work on this machine does not count.
      const times = Array.from({ length: 5 }, () => {
        const before = performance.now();
        expect(verdict(body)).toBe(expected);
        return performance.now() - before;
      });
      expect(Math.min(...times)).toBeLessThan(200);
    }
  });

  test("free-form parts as deep as a parser allows are judged without exhausting the stack", () => {
    let deep: unknown = 0;
    for (let level = 0; level < 50_000; level++) deep = { x: deep };
    expect(verdict({ ...base, anything: deep })).toBe("accepted");
    expect(verdict({ ...base, tools: [{ ...tool, input_schema: { properties: deep } }] })).toBe("accepted");
    expect(verdict(content({ type: deep }))).toBe("invalid_value messages[0].content[0].type");
  });
});

/** The engine's request for a Messages caller, and a Messages engine's request for a chat caller. */

import { describe, expect, test } from "bun:test";
import type { InferenceRequest } from "../../../../src/core/inference/request.ts";
import { anthropicMessagesCaller } from "../../../../src/core/protocol/anthropic-messages/codec.ts";
import { unsigned } from "../../../../src/core/protocol/anthropic-messages/signature.ts";
import { faultOf } from "../../../harness/faults.ts";
import { callers, upstreams, validated } from "../codecs.ts";

const ask = { model: "writer-awq", stream: true, outputTokens_max: 4096 };
const base = { model: "acme/writer-1", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const imageUrl = `data:image/png;base64,${png}`;
const tool = { name: "look_up", description: "Looks up.", input_schema: { type: "object", properties: {} } };
const use = (id: string, input: object = {}) => ({ type: "tool_use", id, name: "look_up", input });
const result = (id: string, content: unknown, more: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  content,
  ...more,
});
const text = (text: string, more: object = {}) => ({ type: "text", text, ...more });
const closed = { type: "object", properties: {}, additionalProperties: false };
const marked = { cache_control: { type: "ephemeral", ttl: "1h" } };

type Asked = Record<string, unknown> & { messages: unknown[] };
const wired = (value: unknown) => JSON.parse(JSON.stringify(value)) as Asked;
const centre = (body: object, options = {}): InferenceRequest =>
  anthropicMessagesCaller(options).request.decode(validated.messages({ ...base, ...body }));
const toChat = (body: object, options = {}) =>
  wired(upstreams.chat.request.encode(centre(body), { ...ask, ...options }));
const toMessages = (body: object, options = {}) =>
  wired(upstreams.messages.request.encode(centre(body), { ...ask, ...options }));
const says = (...messages: unknown[]) => ({ messages });
const user = (...content: unknown[]) => ({ role: "user", content });
const assistant = (...content: unknown[]) => ({ role: "assistant", content });

describe("a chat engine is asked", () => {
  test("with instructions, turns, caps and sampling in its own words", () => {
    const asked = toChat({
      system: "Be brief.",
      max_tokens: 7,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 4,
      stop_sequences: ["END", "STOP"],
      tools: [{ ...tool, strict: true }],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
      output_config: { effort: "xhigh", format: { type: "json_schema", schema: closed } },
    });
    expect(asked).toEqual({
      model: "writer-awq",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 7,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 4,
      stop: ["END", "STOP"],
      tools: [
        {
          type: "function",
          function: { name: "look_up", description: "Looks up.", parameters: tool.input_schema, strict: true },
        },
      ],
      tool_choice: "required",
      parallel_tool_calls: false,
      response_format: {
        type: "json_schema",
        json_schema: { name: "output", schema: closed, strict: true },
      },
      reasoning_effort: "high",
    });
  });

  test("with parallel calls as one message, their results directly after it, and the rest behind", () => {
    const { messages } = toChat(
      says(
        user(text("Look.")),
        assistant(text("I look."), use("a", { x: 1 }), use("b")),
        { role: "system", content: "A note." },
        user(text("And hurry."), result("b", "two"), result("a", [text("one")])),
      ),
    );
    expect(messages).toEqual([
      { role: "user", content: "Look." },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          { id: "a", type: "function", function: { name: "look_up", arguments: '{"x":1}' } },
          { id: "b", type: "function", function: { name: "look_up", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "b", content: "two" },
      { role: "tool", tool_call_id: "a", content: "one" },
      { role: "system", content: "A note." },
      { role: "user", content: "And hurry." },
    ]);
  });

  test("with the images and files of tool results in the message after all results", () => {
    const pdf = {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" },
      title: "a.pdf",
    };
    const { messages } = toChat(
      says(
        user(text("Look.")),
        assistant(use("a"), use("b")),
        user(result("a", [image]), result("b", [text("see"), pdf]), text("Now?")),
      ),
    );
    expect(messages.slice(2)).toEqual([
      { role: "tool", tool_call_id: "a", content: "The result is attached to the next message." },
      { role: "tool", tool_call_id: "b", content: "see" },
      {
        role: "user",
        content: [
          { type: "text", text: "Attached to the result of the tool call a:" },
          { type: "image_url", image_url: { url: imageUrl } },
          { type: "text", text: "Attached to the result of the tool call b:" },
          { type: "file", file: { file_data: "data:application/pdf;base64,JVBERi0x", filename: "a.pdf" } },
          { type: "text", text: "Now?" },
        ],
      },
    ]);
  });

  test("with results that failed, found tools, or hold nothing, as text", () => {
    const { messages } = toChat(
      says(
        user(text("Look.")),
        assistant(use("a"), use("b"), use("c"), use("d"), use("e")),
        user(
          result("a", "no such place", { is_error: true }),
          result("b", [{ type: "tool_reference", tool_name: "fly" }]),
          { type: "tool_result", tool_use_id: "c" },
          result("d", [image], { is_error: true }),
          result("e", [], { is_error: true }),
        ),
      ),
    );
    expect(messages.slice(2, 7).map((message) => (message as { content: unknown }).content)).toEqual([
      "Error: no such place",
      "The tool fly is available.",
      "",
      "Error: The result is attached to the next message.",
      "Error: ",
    ]);
  });

  test("with documents and search results inlined as text", () => {
    const { messages } = toChat(
      says(
        user(
          {
            type: "document",
            source: { type: "text", media_type: "text/plain", data: "Once." },
            title: "Tale",
            context: "old",
          },
          { type: "document", source: { type: "content", content: [text("Twice."), image] } },
          { type: "search_result", source: "https://a", title: "A", content: [text("x"), text("y")] },
        ),
      ),
    );
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Document: Tale\nContext: old\n\nOnce." },
          { type: "text", text: "Twice." },
          { type: "image_url", image_url: { url: imageUrl } },
          { type: "text", text: "Search result: A\nSource: https://a\n\nx\ny" },
        ],
      },
    ]);
  });

  test("with thinking beside what was said, never in it", () => {
    const { messages } = toChat(
      says(
        user(text("?")),
        assistant(
          { type: "thinking", thinking: "hm", signature: "s" },
          { type: "redacted_thinking", data: "d" },
          text("!"),
        ),
        user(text("?")),
      ),
    );
    expect(messages[1]).toEqual({ role: "assistant", content: "!", reasoning_content: "hm" });
    const sealed = assistant({ type: "redacted_thinking", data: "d" }, text("!"));
    expect(toChat(says(user(text("?")), sealed, user(text("?")))).messages[1]).toEqual({
      role: "assistant",
      content: "!",
    });
  });

  test("with messages of one role in a row as one turn", () => {
    const { messages } = toChat(
      says(
        { role: "user", content: "a" },
        user(text("b")),
        assistant(text("c")),
        assistant(use("x")),
        user(result("x", "y")),
      ),
    );
    expect(messages).toEqual([
      { role: "user", content: [text("a"), text("b")] },
      {
        role: "assistant",
        content: "c",
        tool_calls: [{ id: "x", type: "function", function: { name: "look_up", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "x", content: "y" },
    ]);
  });

  test("with instructions inside the conversation where its template takes them, else in the user's words", () => {
    const body = {
      system: "Head.",
      ...says(user(text("a")), { role: "system", content: "Note." }, assistant(text("b")), {
        role: "system",
        content: [text("Last.")],
      }),
    };
    expect(toChat(body).messages.map((message) => (message as { role: string }).role)).toEqual([
      "system",
      "user",
      "system",
      "assistant",
      "system",
    ]);
    expect(toChat(body, { instructionsInside: false }).messages).toEqual([
      { role: "system", content: "Head." },
      { role: "user", content: [text("a"), text("<system>\nNote.\n</system>")] },
      { role: "assistant", content: "b" },
      { role: "user", content: "<system>\nLast.\n</system>" },
    ]);
  });
});

describe("what a request needs of its model", () => {
  const needs = (body: object) => centre(body).needs.map(({ capability, param }) => `${capability} ${param}`);

  test("is told with the path that asks for it, within a tool's result too", () => {
    expect(needs(says(user(text("a")), assistant(use("a")), user(result("a", [image]))))).toEqual([
      "tools messages[1].content",
      "vision messages[2].content[0].content[0]",
    ]);
  });

  test("is what shares a session for its route, and nothing that is handed on", () => {
    expect(centre({ metadata: { user_id: "session" } }).cacheKey).toBe("session");
    expect(centre({ metadata: {} }).cacheKey).toBeUndefined();
  });
});

describe("thinking", () => {
  const effort = (body: object) => toChat(body).reasoning_effort;

  test("becomes a level of effort: its own where it is named, else that of the budget", () => {
    expect(effort({ thinking: { type: "enabled", budget_tokens: 1024 } })).toBe("low");
    expect(effort({ thinking: { type: "enabled", budget_tokens: 4096 } })).toBe("medium");
    expect(effort({ thinking: { type: "enabled", budget_tokens: 16_384 } })).toBe("high");
    expect(effort({ thinking: { type: "enabled", budget_tokens: 31_999 }, output_config: { effort: "low" } })).toBe(
      "low",
    );
    expect(effort({ thinking: { type: "adaptive" }, output_config: { effort: "medium" } })).toBe("medium");
    expect(effort({ thinking: { type: "adaptive" } })).toBeUndefined();
    expect(effort({ thinking: { type: "disabled" }, output_config: { effort: "high" } })).toBe("none");
  });

  test("reaches a Messages engine as it was written, within what the cap leaves", () => {
    const thinking = (thinking: object, max_tokens = 100_000) => toMessages({ thinking, max_tokens }).thinking;
    expect(thinking({ type: "adaptive", display: "omitted" })).toEqual({ type: "adaptive", display: "omitted" });
    expect(thinking({ type: "enabled", budget_tokens: 5000 })).toEqual({ type: "enabled", budget_tokens: 5000 });
    expect(thinking({ type: "enabled", budget_tokens: 5000 }, 5000)).toEqual({ type: "enabled", budget_tokens: 4999 });
    expect(thinking({ type: "enabled", budget_tokens: 5000 }, 1024)).toEqual({ type: "disabled" });
  });

  test("is not switched on by an effort alone: a Messages engine decides then", () => {
    const asked = toMessages({ output_config: { effort: "high" } });
    expect([asked.thinking, asked.output_config]).toEqual([undefined, { effort: "high" }]);
    expect(toChat({ output_config: { effort: "high" } }).reasoning_effort).toBe("high");
  });
});

describe("the line that changes with every request", () => {
  const line = (version: string) => `x-anthropic-billing-header: cc_version=${version}; cch=1;`;
  const forms: Record<string, (version: string) => unknown> = {
    "a block of its own": (version) => [text(line(version)), text("You are an agent.", marked)],
    "the head of a block": (version) => [text(`${line(version)}\nYou are an agent.`, marked), text("Be brief.")],
    "the head of a string": (version) => `${line(version)}\nYou are an agent.`,
    "all there is": (version) => [text(line(version))],
  };
  for (const [form, system] of Object.entries(forms)) {
    test(`as ${form}, leaves no trace: requests that differ only there are the same bytes to an engine`, () => {
      for (const to of [toChat, toMessages]) {
        const [one, other] = ["1.0", "2.0"].map((version) => JSON.stringify(to({ system: system(version) })));
        expect(one).toBe(other!);
        expect(one).not.toContain("billing");
      }
    });
  }

  test("stays where a switch says so, and where it is no line at the head", () => {
    const kept = anthropicMessagesCaller({ keep_billing_line: true }).request.decode(
      validated.messages({ ...base, system: line("1.0") }),
    );
    expect(JSON.stringify(upstreams.chat.request.encode(kept, ask))).toContain("billing");
    expect(JSON.stringify(toChat({ system: `Say ${line("1.0")}` }))).toContain("billing");
  });
});

describe("a Messages engine is asked", () => {
  test("for a Messages caller, as the caller wrote it", () => {
    const body = {
      max_tokens: 100,
      system: [text("Be brief.", marked)],
      messages: [
        user(
          text("Look.", marked),
          { ...image, ...marked },
          {
            type: "document",
            source: { type: "content", content: [text("a"), image] },
            title: "T",
            citations: { enabled: true },
            ...marked,
          },
        ),
        assistant(
          { type: "thinking", thinking: "hm\n", signature: "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds/+=" },
          { type: "thinking", thinking: "", signature: "" },
          {
            type: "redacted_thinking",
            data: "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPkNRj2YfWXGmKDxH4mPnZ5sQ7vB9m",
          },
          text("I look.", { citations: [{ type: "char_location", cited_text: "a", document_index: 0 }] }),
          { ...use("toolu_1", { q: [1, { a: null }] }), ...marked },
          use("toolu_2"),
        ),
        user(result("toolu_1", [text("one", marked), image], marked), result("toolu_2", "no", { is_error: true }), {
          type: "search_result",
          source: "s",
          title: "t",
          content: [text("x")],
          citations: { enabled: true },
        }),
        { role: "system", content: [text("A note.", marked)] },
        { role: "assistant", content: [text("So")] },
      ],
      tools: [{ ...tool, type: "custom", strict: true, input_examples: [{ q: 1 }], ...marked }],
      tool_choice: { type: "tool", name: "look_up", disable_parallel_tool_use: true },
      thinking: { type: "enabled", budget_tokens: 50, display: "omitted" },
      output_config: { effort: "max", format: { type: "json_schema", schema: { type: "object" } } },
      stop_sequences: ["END"],
      temperature: 1,
      top_p: 0.5,
      top_k: 3,
      cache_control: { type: "ephemeral" },
    };
    expect(toMessages(body)).toEqual({ ...body, model: "writer-awq", stream: true } as unknown as Asked);
  });

  const chat = (body: object) =>
    wired(
      upstreams.messages.request.encode(
        callers.chat.request.decode(
          validated.chat({ model: "acme/writer-1", messages: [{ role: "user", content: "Hello" }], ...body }),
        ),
        ask,
      ),
    );

  test("for a chat caller, in its own words, with the cap that it demands", () => {
    const call = { id: "functions.look_up:0", type: "function", function: { name: "look_up", arguments: '{"q": 1}' } };
    const asked = chat({
      messages: [
        { role: "developer", content: "Be brief." },
        { role: "user", content: [text("Look."), { type: "image_url", image_url: { url: imageUrl, detail: "low" } }] },
        { role: "assistant", content: "I look.", reasoning_content: "hm", tool_calls: [call] },
        { role: "tool", tool_call_id: call.id, content: "one" },
        { role: "user", content: "And?" },
        { role: "system", content: "A note." },
        { role: "assistant", refusal: "No." },
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url: "https://a/b.png" } },
            { type: "file", file: { file_data: "JVBERi0x", filename: "a.pdf" } },
          ],
        },
      ],
      temperature: 0.5,
      seed: 3,
      stop: "END",
      tools: [{ type: "function", function: { name: "look_up" } }],
      tool_choice: "required",
      parallel_tool_calls: false,
      reasoning_effort: "minimal",
      response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } },
    });
    expect(asked).toEqual({
      model: "writer-awq",
      max_tokens: 4096,
      system: "Be brief.",
      messages: [
        user(text("Look."), image),
        assistant(text("I look."), { type: "tool_use", id: "functions_look_up_0", name: "look_up", input: { q: 1 } }),
        user(result("functions_look_up_0", "one"), text("And?")),
        { role: "system", content: [text("A note.")] },
        assistant(text("No.")),
        user(
          { type: "image", source: { type: "url", url: "https://a/b.png" } },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" },
            title: "a.pdf",
          },
        ),
      ],
      tools: [{ name: "look_up", input_schema: { type: "object", properties: {} } }],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
      stream: true,
      stop_sequences: ["END"],
      temperature: 0.5,
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: "low", format: { type: "json_schema", schema: { type: "object" } } },
    });
  });

  test("with the media type of an image's content, whatever the caller calls it", () => {
    for (const label of ["jpg", "jpeg", "png"]) {
      const url = imageUrl.replace("image/png", `image/${label}`);
      const { messages } = chat(says(user({ type: "image_url", image_url: { url } })));
      expect(messages).toEqual([user(image)]);
    }
  });

  /** The same order as in the caller's bytes of a large body: an engine's prefix cache begins with the tools. */
  test("with a tool's schema in the order in which the caller wrote it", () => {
    const parameters = { properties: { b: {}, a: {} }, required: ["b"], type: "object" };
    const asked = chat({ tools: [{ type: "function", function: { name: "a", parameters } }] });
    expect(JSON.stringify(asked.tools)).toContain(JSON.stringify(parameters));
  });

  test("with arguments that were cut off as none, and ids unique in its alphabet", () => {
    const call = (id: string, written: string) => ({
      id,
      type: "function",
      function: { name: "f", arguments: written },
    });
    const { messages } = chat({
      messages: [
        { role: "user", content: "?" },
        { role: "assistant", tool_calls: [call("a:1", '{"q":'), call("a_1", "")] },
        { role: "tool", tool_call_id: "a_1", content: "" },
        { role: "tool", tool_call_id: "a:1", content: "x" },
      ],
    });
    expect(messages.slice(1)).toEqual([
      assistant(
        { type: "tool_use", id: "a_1", name: "f", input: {} },
        { type: "tool_use", id: "a_1_1", name: "f", input: {} },
      ),
      user(result("a_1_1", ""), result("a_1", "x")),
    ]);
  });

  test("without texts of blanks alone, which the engine refuses, where nothing else is said", () => {
    const called = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
    const asked = chat({
      messages: [
        { role: "system", content: "  " },
        { role: "user", content: "?" },
        { role: "assistant", content: "\n\n", tool_calls: [called] },
        { role: "tool", tool_call_id: "a", content: "x" },
        { role: "assistant", content: " " },
        { role: "user", content: " " },
      ],
    });
    expect([asked.system, asked.messages]).toEqual([
      undefined,
      [
        user(text("?")),
        assistant({ type: "tool_use", id: "a", name: "f", input: {} }),
        user(result("a", "x"), text(" ")),
      ],
    ]);
  });

  test("with blanks that stand between words, and with those that a Messages caller marked", () => {
    const spaced = assistant(text("a"), text("\n\n"), text("b"));
    expect(toMessages(says(user(text("?")), spaced, user(text("?")))).messages[1]).toEqual(spaced);
    const own = assistant(text("\n", { cache_control: { type: "ephemeral" } }), use("a"));
    expect(toMessages(says(user(text("?")), own, user(result("a", "x")))).messages[1]).toEqual(own);
  });

  test("for a summary of thoughts, where the caller of another protocol asks for an effort", () => {
    const thinking = (reasoning_effort?: string) => chat({ reasoning_effort }).thinking;
    expect(thinking("high")).toEqual({ type: "adaptive", display: "summarized" });
    expect([thinking("none"), thinking()]).toEqual([{ type: "disabled" }, undefined]);
  });

  test("with instructions and nothing else as what is to be answered", () => {
    const asked = chat({ messages: [{ role: "system", content: "Say hello." }] });
    expect([asked.system, asked.messages]).toEqual([undefined, [user(text("Say hello."))]]);
  });

  test("for no image in a data: URL without base64: that is refused by name", () => {
    const content = [{ type: "image_url", image_url: { url: "data:image/svg+xml,<svg/>" } }];
    const refused = faultOf(() => chat({ messages: [{ role: "user", content }] }));
    expect([refused?.code, refused?.details.param]).toEqual(["unsupported_feature", "messages[0].content[0]"]);
  });

  test("without thinking that nobody signed", () => {
    const { messages } = toMessages(
      says(
        user(text("?")),
        assistant({ type: "thinking", thinking: "hm", signature: unsigned }, text("!")),
        user(text("?")),
      ),
    );
    expect(messages[1]).toEqual(assistant(text("!")));
    const silent = toMessages(says(user(text("a")), assistant({ type: "thinking", thinking: "hm" }), user(text("b"))));
    expect(silent.messages).toEqual([user(text("a"), text("b"))]);
  });
});

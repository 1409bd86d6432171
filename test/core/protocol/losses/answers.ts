/** Answers of engines, row by row of docs/protocols.md, and the content that each client must see. */
import { type Seen, text } from "./probe.ts";

/** An engine's reply, and the content of it that clients must see. */
export type Answer = [reply: object, ...Seen];

const chat = (message: object, more: object = {}) => ({
  choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason: "stop", ...more }],
});
const tokens = [{ token: "MARK", logprob: -1, bytes: null, top_logprobs: [] }];

export const chatAnswers: Record<string, Answer> = {
  text: [chat({ content: "MARK" }), /MARK/],
  "`reasoning_content`, `reasoning`": [
    chat({ reasoning: "MARK" }),
    /"reasoning_content":"MARK"/,
    { messages: /"thinking":"MARK"/, responses: /"type":"reasoning_text","text":"MARK"/ },
  ],
  "`refusal`": [chat({ refusal: "MARK" }), /"refusal":"MARK"/, { messages: /"text":"MARK".*"stop_reason":"refusal"/ }],
  "`tool_calls`": [
    chat({ tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"MARK":1}' } }] }),
    /c1.*MARK/,
  ],
  "a call of a `custom` tool": [
    chat({
      tool_calls: [
        { id: "c1", function: { name: "patch", arguments: '{"input":"MARK"}' } },
        { id: "c2", type: "custom", custom: { name: "patch", input: "MARK" } },
      ],
    }),
    /("type":"custom","custom":\{"name":"patch","input":"MARK"\}.*){2}/,
    { messages: null, responses: /("custom_tool_call".*"name":"patch","input":"MARK".*){2}/ },
  ],
  "a call of a tool in a namespace": [
    chat({ tool_calls: [{ id: "c2", function: { name: "space__f", arguments: "{}" } }] }),
    /"name":"f","arguments":"{}","namespace":"space"/,
    { chat: null, messages: null },
  ],
  "`logprobs`": [chat({ content: "a" }, { logprobs: { content: tokens } }), /MARK/],
  "the stop sequence that matched": [chat({ content: "a" }, { stop_reason: "END" }), /END/],
  "cached and reasoning tokens": [
    {
      ...chat({ content: "a" }),
      usage: {
        prompt_tokens: 90,
        completion_tokens: 8,
        prompt_tokens_details: { cached_tokens: 77 },
        completion_tokens_details: { reasoning_tokens: 6 },
      },
    },
    /"(prompt|input)_tokens":90.*"cached_tokens":77.*"reasoning_tokens":6/,
    { messages: /"input_tokens":13.*"cache_read_input_tokens":77.*"thinking_tokens":6/ },
  ],
};

const message = (...content: unknown[]) => ({
  type: "message",
  content,
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
});

/** The types of citations in Messages. */
export const citations = [
  "char_location",
  "content_block_location",
  "page_location",
  "search_result_location",
  "web_search_result_location",
];

export const messagesAnswers: Record<string, Answer> = {
  text: [message(text("MARK")), /MARK/],
  "`thinking`": [
    message({ type: "thinking", thinking: "MARK", signature: "s" }),
    /"reasoning_content":"MARK"/,
    { messages: /"thinking":"MARK"/, responses: /"type":"reasoning_text","text":"MARK"/ },
  ],
  "`signature` of thinking": [
    message({ type: "thinking", thinking: "a", signature: "MARK" }),
    /"signature":"MARK"/,
    { responses: /"encrypted_content":".*\\"MARK\\"/ },
  ],
  "`redacted_thinking`": [
    message({ type: "redacted_thinking", data: "MARK" }),
    /:"MARK"/,
    { responses: /"encrypted_content":".*\\"MARK\\"/ },
  ],
  "`tool_use`": [message({ type: "tool_use", id: "c1", name: "f", input: { MARK: 1 } }), /c1.*MARK/],
  "`citations`": [
    message(text("a", { citations: citations.map((type) => ({ type, cited_text: "MARK" })) })),
    /(MARK.*){5}/,
  ],
  "`stop_sequence`": [{ ...message(text("a")), stop_reason: "stop_sequence", stop_sequence: "END" }, /END/],
  "tokens read from and written to a cache": [
    {
      ...message(text("a")),
      usage: { input_tokens: 2, cache_read_input_tokens: 77, cache_creation_input_tokens: 11, output_tokens: 1 },
    },
    /"(prompt|input)_tokens":90.*"cached_tokens":77,"cache_write_tokens":11/,
    { messages: /"input_tokens":2,"cache_creation_input_tokens":11,"cache_read_input_tokens":77/ },
  ],
  "blocks of hosted tools, `stop_details`, `container`": [
    {
      ...message(text("a"), { type: "server_tool_use", id: "MARK", name: "web_search", input: {} }),
      stop_details: { explanation: "MARK" },
      container: { id: "MARK" },
    },
    /MARK/,
  ],
};

const response = (...output: unknown[]) => ({ object: "response", status: "completed", output });
const said = (part: object) => ({ type: "message", role: "assistant", content: [part] });
const thought = (more: object) => ({ type: "reasoning", summary: [], ...more });

export const responsesAnswers: Record<string, Answer> = {
  text: [response(said({ type: "output_text", text: "MARK" })), /MARK/],
  "`reasoning`: its text, else its summary": [
    response(thought({ summary: [{ type: "summary_text", text: "MARK" }] })),
    /"reasoning_content":"MARK"/,
    { messages: /"thinking":"MARK"/, responses: /"type":"reasoning_text","text":"MARK"/ },
  ],
  "`reasoning`: a summary beside its text": [
    response(
      thought({
        summary: [{ type: "summary_text", text: "MARK" }],
        content: [{ type: "reasoning_text", text: "whole" }],
      }),
    ),
    /MARK/,
  ],
  "`encrypted_content` beside a text": [
    response(thought({ summary: [{ type: "summary_text", text: "a" }], encrypted_content: "MARK" })),
    /"signature":"MARK"/,
    { responses: /"encrypted_content":".*\\"MARK\\"/ },
  ],
  "`encrypted_content` alone": [
    response(thought({ encrypted_content: "MARK" })),
    /"type":"redacted_thinking","data":"MARK"/,
    { responses: /"encrypted_content":".*\\"MARK\\"/ },
  ],
  "`refusal`": [
    response(said({ type: "refusal", refusal: "MARK" })),
    /"refusal":"MARK"/,
    { messages: /"text":"MARK".*"stop_reason":"refusal"/ },
  ],
  "`function_call`": [
    response({ type: "function_call", call_id: "c1", name: "f", arguments: '{"MARK":1}' }),
    /c1.*MARK/,
  ],
  "`custom_tool_call`": [
    response({ type: "custom_tool_call", call_id: "c1", name: "patch", input: "MARK" }),
    /"custom_tool_call".*"name":"patch","input":"MARK"/,
    { chat: null, messages: null },
  ],
  "`logprobs`": [response(said({ type: "output_text", text: "a", logprobs: tokens })), /MARK/],
  "`annotations`": [response(said({ type: "output_text", text: "a", annotations: [{ title: "MARK" }] })), /MARK/],
  "cached, written and reasoning tokens": [
    {
      ...response(said({ type: "output_text", text: "a" })),
      usage: {
        input_tokens: 90,
        input_tokens_details: { cached_tokens: 77, cache_write_tokens: 11 },
        output_tokens: 8,
        output_tokens_details: { reasoning_tokens: 6 },
      },
    },
    /"(prompt|input)_tokens":90.*"cached_tokens":77,"cache_write_tokens":11.*"reasoning_tokens":6/,
    { messages: /"input_tokens":2,"cache_creation_input_tokens":11,"cache_read_input_tokens":77.*"thinking_tokens":6/ },
  ],
  "items of hosted tools, `metadata`": [
    {
      ...response(said({ type: "output_text", text: "a" }), { type: "web_search_call", id: "MARK" }),
      metadata: { a: "MARK" },
    },
    /MARK/,
  ],
};

// Writes an engine's response in the format of each protocol, unstreamed or streamed. Its content is given as JSON
// texts.

import type { UpstreamProtocol } from "../../src/core/upstream/codecs.ts";
import type { EngineAnswer } from "./engine.ts";

/** The content of a response. All strings are JSON texts. */
export interface Content {
  /** Replaces the whole response, or one event of it. */
  document?: string;
  /** Additional fields with names that no protocol has: `"x":1`. */
  fields?: string;
  /** The text of the response: a JSON string. */
  text?: string;
  /** The arguments of one tool call: a JSON object. */
  arguments?: string;
  /** All tool calls of the response. */
  calls?: readonly Call[];
  /** The log probabilities of the text, in the format of Chat Completions: a JSON list. */
  logprobs?: string;
  /** The number of parts of the response, which are text and reasoning in turn. */
  turns?: number;
}

/** A tool call. An ID or a name that is absent here is absent from the response, too. */
export interface Call {
  id?: string;
  name?: string;
  written: string;
}

export function answerOf(protocol: UpstreamProtocol, content: Content, isStream: boolean): EngineAnswer {
  const words = { "openai-chat": chat, "anthropic-messages": messages, "openai-responses": responses }[protocol];
  const { whole, events } = words(content);
  const text = isStream ? events().map(framed).join("") : (content.document ?? whole());
  return { isStream, bytes: new TextEncoder().encode(text) };
}

interface Words {
  whole(): string;
  events(): string[];
}

/** The frame of an event, whose text must contain no line breaks. */
function framed(event: string): string {
  return event === "[DONE]" ? "data: [DONE]\n\n" : `data: ${event}\n\n`;
}

const more = (fields: string | undefined) => (fields === undefined ? "" : `${fields},`);
const optional = (name: string, value: string | undefined) =>
  value === undefined ? "" : `"${name}":${JSON.stringify(value)},`;
const one = ({ arguments: written, calls = [] }: Content): readonly Call[] =>
  written === undefined ? calls : [{ id: "call_1", name: "run", written }];

function chat(content: Content): Words {
  const { document, fields, text = '"hi"', logprobs, turns = 0 } = content;
  const calls = one(content).map(
    ({ id, name, written }) =>
      `{${optional("id", id)}"type":"function","function":{${optional("name", name)}"arguments":${JSON.stringify(written)}}}`,
  );
  const toldCalls = calls.length > 0 ? `,"tool_calls":[${calls.join(",")}]` : "";
  const toldLogprobs = logprobs ? `,"logprobs":{"content":${logprobs}}` : "";
  const usage = `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`;
  const parts = Array.from({ length: turns }, (_, at) =>
    at % 2 ? '{"type":"text","text":"a"}' : '{"type":"thinking","thinking":"b"}',
  );
  const said = turns > 0 ? `[${parts.join(",")}]` : text;
  const chunk = (delta: string, beside = "") =>
    `{${more(fields)}"choices":[{"index":0,"delta":${delta}${beside},"finish_reason":null}]}`;
  return {
    whole: () =>
      `{${more(fields)}"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":${said}${toldCalls}}${toldLogprobs},"finish_reason":"stop"}],${usage}}`,
    events: () => [
      ...(document === undefined ? [] : [document]),
      chunk(`{"content":${said}}`, toldLogprobs),
      ...calls.map((call, index) => chunk(`{"tool_calls":[{"index":${index},${call.slice(1)}]}`)),
      `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],${usage}}`,
      "[DONE]",
    ],
  };
}

function messages(content: Content): Words {
  const { document, fields, text = '"hi"', turns = 0 } = content;
  const usage = `"usage":{"input_tokens":3,"output_tokens":2}`;
  const calls = one(content);
  const thought = (at: number) =>
    at % 2 ? '{"type":"text","text":"a"}' : '{"type":"thinking","thinking":"b","signature":"s"}';
  const blocks = [
    `{"type":"text","text":${text}}`,
    ...Array.from({ length: turns }, (_, at) => thought(at)),
    ...calls.map(
      ({ id, name, written }) => `{"type":"tool_use",${optional("id", id)}${optional("name", name)}"input":${written}}`,
    ),
  ];
  const end = `"stop_reason":"end_turn"`;
  const block = (at: number, start: string, delta: string) => [
    `{"type":"content_block_start","index":${at},"content_block":${start}}`,
    `{${more(fields)}"type":"content_block_delta","index":${at},"delta":${delta}}`,
    `{"type":"content_block_stop","index":${at}}`,
  ];
  return {
    whole: () => `{${more(fields)}"type":"message","role":"assistant","content":[${blocks.join(",")}],${end},${usage}}`,
    events: () => [
      `{"type":"message_start","message":{${usage}}}`,
      ...(document === undefined ? [] : [document]),
      ...block(0, '{"type":"text","text":""}', `{"type":"text_delta","text":${text}}`),
      ...Array.from({ length: turns }, (_, at) => [
        `{"type":"content_block_start","index":${at + 1},"content_block":${thought(at)}}`,
      ]).flat(),
      ...calls.flatMap(({ id, name, written }, at) =>
        block(
          at + 1,
          `{"type":"tool_use",${optional("id", id)}${optional("name", name)}"input":{}}`,
          `{"type":"input_json_delta","partial_json":${JSON.stringify(written)}}`,
        ),
      ),
      `{"type":"message_delta","delta":{${end}},${usage}}`,
      '{"type":"message_stop"}',
    ],
  };
}

function responses(content: Content): Words {
  const { document, fields, text = '"hi"', logprobs, turns = 0 } = content;
  const usage = `"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}`;
  const calls = one(content).map(
    ({ id, name, written }) =>
      `{"type":"function_call",${optional("call_id", id)}${optional("name", name)}"arguments":${JSON.stringify(written)}}`,
  );
  const told = logprobs ? `,"logprobs":${logprobs}` : "";
  const message = `{"type":"message","id":"m","content":[{"type":"output_text","text":${text}${told}}]}`;
  const items = Array.from({ length: turns }, (_, at) =>
    at % 2
      ? '{"type":"message","content":[{"type":"output_text","text":"a"}]}'
      : '{"type":"reasoning","content":[{"type":"reasoning_text","text":"b"}]}',
  );
  const output = `"output":[${[message, ...items, ...calls].join(",")}]`;
  return {
    whole: () => `{${more(fields)}"object":"response","status":"completed",${output},${usage}}`,
    events: () => [
      '{"type":"response.created","response":{}}',
      ...(document === undefined ? [] : [document]),
      '{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}',
      `{${more(fields)}"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":${text}${told}}`,
      ...[...items, ...calls].map(
        (item, at) => `{"type":"response.output_item.done","output_index":${at + 1},"item":${item}}`,
      ),
      `{"type":"response.completed","response":{"status":"completed",${usage}}}`,
    ],
  };
}

// The requests that each engine is sent directly, in each of its protocols, and the responses that the tiny model of
// model.py was trained to give. The raw responses are recorded (record.ts); test/engines/recorded.test.ts checks
// without an engine that the codecs read them.

import type { StopReason } from "../../../src/core/inference/event.ts";
import type { FaultCode } from "../../../src/core/inference/fault.ts";
import type { UpstreamProtocol } from "../../../src/core/upstream/codecs.ts";

/**
 * The values that the codec must read from the engine's response. A member that is absent or undefined is not checked.
 */
export interface Want {
  end?: StopReason | undefined;
  /** Leading and trailing white space is not compared: engines differ in what they trim around the reasoning. */
  text?: string | undefined;
  thought?: string | undefined;
  /** The name and the arguments of each tool call. */
  calls?: readonly (readonly [string, unknown])[];
  fault?: FaultCode;
}

export interface Question {
  name: string;
  body: Record<string, unknown>;
  want: Want;
}

const hello = { text: "Grüße 🌍! Hello there.", thought: "They want a greeting." };
const both = [
  ["weather", { city: "Oslo" }],
  ["time", { city: "Oslo" }],
] as const;
const thoughtOfCalls = "I need two tools.";
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const known = [
  { name: "weather", description: "The weather." },
  { name: "time", description: "The time." },
];
const greeting = { type: "object", properties: { greeting: { type: "string", maxLength: 8 } }, required: ["greeting"] };
/** A text that exceeds the context window of every engine here. */
const long = "word ".repeat(70_000);

/** The parts of the requests to an engine, in the format of one protocol. */
interface Words {
  says(text: string): Record<string, unknown>;
  tools: Record<string, unknown>;
  /** A conversation with a tool turn in progress: the question, the reasoning, both calls and their results. */
  results(thought: string | null): Record<string, unknown>;
  named: Record<string, unknown>;
  cap(tokens: number): Record<string, unknown>;
  /** This member, and those below, are null if the protocol has no such parameter. */
  schema: Record<string, unknown> | null;
  logprobs: Record<string, unknown> | null;
  stop: Record<string, unknown> | null;
}

const callIds = ["call_1", "call_2"];
const spoken = ["rain", "noon"];
const asked = "Weather and time in Oslo?";
const args = JSON.stringify({ city: "Oslo" });

export const words: Record<UpstreamProtocol, Words> = {
  "openai-chat": {
    says: (content) => ({ messages: [{ role: "user", content }], temperature: 0 }),
    tools: { tools: known.map((tool) => ({ type: "function", function: { ...tool, parameters: city } })) },
    results: (thought) => ({
      temperature: 0,
      messages: [
        { role: "user", content: asked },
        {
          role: "assistant",
          content: "",
          ...(thought === null ? {} : { reasoning_content: thought }),
          tool_calls: known.map(({ name }, index) => ({
            id: callIds[index],
            type: "function",
            function: { name, arguments: args },
          })),
        },
        ...spoken.map((content, index) => ({ role: "tool", tool_call_id: callIds[index], content })),
      ],
    }),
    named: { tool_choice: { type: "function", function: { name: "time" } } },
    cap: (max_tokens) => ({ max_tokens }),
    schema: {
      response_format: { type: "json_schema", json_schema: { name: "greeting", schema: greeting, strict: true } },
    },
    logprobs: { logprobs: true, top_logprobs: 2 },
    stop: { stop: ["three"] },
  },
  "anthropic-messages": {
    says: (content) => ({ messages: [{ role: "user", content }], temperature: 0 }),
    tools: { tools: known.map((tool) => ({ ...tool, input_schema: city })) },
    results: (thought) => ({
      temperature: 0,
      messages: [
        { role: "user", content: asked },
        {
          role: "assistant",
          content: [
            ...(thought === null ? [] : [{ type: "thinking", thinking: thought, signature: "" }]),
            ...known.map(({ name }, index) => ({
              type: "tool_use",
              id: callIds[index],
              name,
              input: { city: "Oslo" },
            })),
          ],
        },
        {
          role: "user",
          content: spoken.map((content, index) => ({ type: "tool_result", tool_use_id: callIds[index], content })),
        },
      ],
    }),
    named: { tool_choice: { type: "tool", name: "time" } },
    cap: (max_tokens) => ({ max_tokens }),
    schema: null,
    logprobs: null,
    stop: { stop_sequences: ["three"] },
  },
  "openai-responses": {
    says: (content) => ({ input: [{ role: "user", content }], temperature: 0 }),
    tools: { tools: known.map((tool) => ({ type: "function", ...tool, parameters: city })) },
    results: (thought) => ({
      temperature: 0,
      input: [
        { role: "user", content: asked },
        ...(thought === null
          ? []
          : [{ type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: thought }] }]),
        ...known.map(({ name }, index) => ({ type: "function_call", call_id: callIds[index], name, arguments: args })),
        ...spoken.map((output, index) => ({ type: "function_call_output", call_id: callIds[index], output })),
      ],
    }),
    named: { tool_choice: { type: "function", name: "time" } },
    cap: (max_output_tokens) => ({ max_output_tokens }),
    schema: { text: { format: { type: "json_schema", name: "greeting", schema: greeting, strict: true } } },
    logprobs: null,
    stop: null,
  },
};

export function questionsOf(protocol: UpstreamProtocol): Question[] {
  const { says, tools, results, named, cap, schema, logprobs, stop } = words[protocol];
  const capped = cap(200);
  const whole: Question[] = [
    { name: "hello", body: { ...says("Say hello."), ...capped }, want: { end: "stop", ...hello } },
    {
      name: "calls",
      body: { ...says(asked), ...tools, ...capped },
      want: { end: "tool_calls", thought: thoughtOfCalls, calls: both },
    },
    {
      name: "named call",
      body: { ...says("Time in Oslo?"), ...tools, ...named, ...capped },
      // vLLM forces the call to match its schema token by token. That disturbs so small a model: the call may not end.
      want: {},
    },
    {
      name: "results",
      body: { ...results(thoughtOfCalls), ...tools, ...capped },
      want: { end: "stop", thought: "Now I know.", text: "It rains in Oslo, and it is noon." },
    },
    { name: "results without the thought", body: { ...results(null), ...tools, ...cap(1) }, want: {} },
    { name: "cap", body: { ...says("Count."), ...cap(16) }, want: { end: "length", thought: "I count." } },
    { name: "too long", body: { ...says(long), ...cap(4) }, want: { fault: "context_length_exceeded" } },
  ];
  if (stop)
    whole.push({
      name: "stop sequence",
      body: { ...says("Count."), ...stop, ...capped },
      want: { thought: "I count.", text: "one two" },
    });
  if (schema) whole.push({ name: "schema", body: { ...says("Say hello."), ...schema, ...cap(64) }, want: {} });
  if (logprobs)
    whole.push({
      name: "log probabilities",
      body: { ...says("Say hello."), ...logprobs, ...capped },
      want: { end: "stop", ...hello },
    });
  const streamed = whole
    .filter(({ name }) => name !== "too long" && name !== "results without the thought")
    .map(({ name, body, want }) => ({ name: `${name}, streamed`, body: { ...body, ...streaming[protocol] }, want }));
  return [...whole, ...streamed];
}

const streaming: Record<UpstreamProtocol, Record<string, unknown>> = {
  "openai-chat": { stream: true, stream_options: { include_usage: true } },
  "anthropic-messages": { stream: true },
  "openai-responses": { stream: true },
};

// Request bodies like those of real clients, in each protocol: a small one, and an agent's of 66 KB. The agent's body
// is generated after recorded ones: a long instruction, two dozen tools with schemas, and turns with tool calls whose
// arguments and results are JSON and source code.

import type { Protocol } from "./speed/asks.ts";

const sentence = "Read the file before you change it, and say in one line what you are about to do and why.\n";
const source = `export function sum(values: number[]): number {\n  return values.reduce((one, other) => one + other, 0);\n}\n// "quoted"\n`;

interface Tool {
  name: string;
  description: string;
  schema: object;
}

function tool(at: number): Tool {
  const property = (name: string) => ({
    type: "string",
    description: `The ${name} of what is asked for, as it stands.`,
  });
  return {
    name: `tool_${at}`,
    description: sentence.repeat(4),
    schema: {
      type: "object",
      properties: {
        path: property("path"),
        pattern: property("pattern"),
        limit: { type: "integer", minimum: 1, maximum: 1000, default: 100 },
        mode: { type: "string", enum: ["read", "write", "list"] },
        tags: { type: "array", items: { type: "string" } },
      },
      required: ["path"],
      additionalProperties: false,
    },
  };
}

interface Turn {
  id: string;
  name: string;
  input: object;
  result: string;
}

const turn = (at: number): Turn => ({
  ...{ id: `call_${at}`, name: `tool_${at % 24}`, input: { path: `src/file-${at}.ts`, limit: 100 } },
  result: source.repeat(9),
});

/** The format of a protocol's request: its field names and the objects of its parts. */
interface Words {
  cap: string;
  question(text: string, instruction: string | null): object;
  turns(turns: readonly Turn[]): { into: string; list: object[] };
  tool(tool: Tool): object;
  choice: unknown;
}

const words: Record<Protocol, Words> = {
  chat: {
    cap: "max_tokens",
    question: (content, instruction) => ({
      messages: [...(instruction ? [{ role: "system", content: instruction }] : []), { role: "user", content }],
    }),
    turns: (turns) => ({
      into: "messages",
      list: turns.flatMap(({ id, name, input, result }) => {
        const call = { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
        return [
          { role: "assistant", content: sentence, tool_calls: [call] },
          { role: "tool", tool_call_id: id, content: result },
        ];
      }),
    }),
    tool: ({ name, description, schema }) => ({
      type: "function",
      function: { name, description, parameters: schema },
    }),
    choice: "auto",
  },
  messages: {
    cap: "max_tokens",
    question: (content, instruction) => ({
      ...(instruction ? { system: instruction } : {}),
      messages: [{ role: "user", content }],
    }),
    turns: (turns) => ({
      into: "messages",
      list: turns.flatMap(({ id, name, input, result }) => [
        {
          role: "assistant",
          content: [
            { type: "text", text: sentence },
            { type: "tool_use", id, name, input },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: result }] },
      ]),
    }),
    tool: ({ name, description, schema }) => ({ name, description, input_schema: schema }),
    choice: { type: "auto" },
  },
  responses: {
    cap: "max_output_tokens",
    question: (content, instruction) => ({
      ...(instruction ? { instructions: instruction } : {}),
      store: false,
      input: [{ role: "user", content }],
    }),
    turns: (turns) => ({
      into: "input",
      list: turns.flatMap(({ id, name, input, result }) => [
        { role: "assistant", content: sentence },
        { type: "function_call", call_id: id, name, arguments: JSON.stringify(input) },
        { type: "function_call_output", call_id: id, output: result },
      ]),
    }),
    tool: ({ name, description, schema }) => ({
      type: "function",
      name,
      description,
      parameters: schema,
      strict: false,
    }),
    choice: "auto",
  },
};

export interface BodyOptions {
  protocol: Protocol;
  model: string;
  isStreamed: boolean;
  /** The limit on output tokens that the client sends. Null: it sends none, if its protocol allows that. */
  cap: number | null;
}

/** The body of an agent's conversation whose first question is `text`. With 21 turns it is 66 KB long. */
export function agentBody(text: string, options: BodyOptions, turns_count = 21): string {
  const { question, turns, tool: written, choice } = words[options.protocol];
  const { into, list } = turns(Array.from({ length: turns_count }, (_, at) => turn(at)));
  const asked = question(text, sentence.repeat(130)) as Record<string, object[]>;
  return JSON.stringify({
    ...head(options),
    ...asked,
    [into]: [...asked[into]!, ...list],
    tools: Array.from({ length: 24 }, (_, at) => written(tool(at))),
    tool_choice: choice,
    temperature: 0.2,
  });
}

export function smallBody(text: string, options: BodyOptions): string {
  return JSON.stringify({ ...head(options), ...words[options.protocol].question(text, null) });
}

function head({ protocol, model, isStreamed, cap }: BodyOptions): object {
  return {
    model,
    ...(cap === null ? {} : { [words[protocol].cap]: cap }),
    ...(isStreamed ? { stream: true } : {}),
    ...(isStreamed && protocol === "chat" ? { stream_options: { include_usage: true } } : {}),
  };
}

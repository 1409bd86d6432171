// A client of each protocol: its requests, and how it reads a response.

import { compact } from "../../src/core/protocol/json.ts";
import { type Json, wires } from "../core/protocol/pairs/wires.ts";
import { parsed } from "../harness/frames.ts";
import type { Client, End, EngineCase, Tool } from "./case.ts";

/** The data that a client has received when the response has ended. */
export interface Seen {
  status: number;
  end: End | "none";
  text: string;
  calls: [name: string, input: unknown][];
  usage: { input?: number; cached?: number; output?: number };
  /** The error that the client got, as JSON; empty if there was none. */
  error: string;
  /** Whether a text contains a part of a character (a lone surrogate). */
  hasHalves: boolean;
}

interface Asking {
  /** `cap` is the limit on the output, in tokens. */
  body(cap: number): { max_tokens?: number; [field: string]: unknown };
  tool(tool: Tool): object;
}

const question = "What is the weather in Oslo?";
const user = [{ role: "user", content: question }];

const asking: Record<Client, Asking> = {
  chat: {
    body: (cap) => ({ messages: user, max_tokens: cap }),
    tool: (tool) => ({ type: "function", function: tool }),
  },
  messages: {
    body: (cap) => ({ messages: user, max_tokens: cap }),
    tool: ({ name, description, parameters }) => ({ name, description, input_schema: parameters }),
  },
  responses: {
    body: (cap) => ({ input: question, max_output_tokens: cap }),
    tool: (tool) => ({ type: "function", ...tool }),
  },
};

export function requestOf(one: EngineCase, client: Client, cap: number): object {
  const { ask = {} } = one;
  const { body, tool } = asking[client];
  const tools = ask.tools ? { tools: ask.tools.map(tool) } : {};
  const more = { ...ask[client], ...ask.extra?.[client] };
  // Clients may use the newer name `max_completion_tokens` for the same limit.
  const { max_tokens, ...uncapped } = body(cap);
  const own = "max_completion_tokens" in more ? uncapped : { ...uncapped, ...compact({ max_tokens }) };
  return { ...own, ...tools, ...more };
}

export function seenBy(client: Client, status: number, text: string, isStreamed: boolean): Seen {
  const frames = isStreamed && status === 200 ? framesIn(text) : [];
  const values = frames.length > 0 ? frames.map(({ data }) => parsed(data)) : [parsed(text)];
  const hasHalves = !values.every(isWhole);
  const failure = values.find(isError);
  if (status !== 200 || failure) {
    return { status, end: "fail", text: "", calls: [], usage: {}, error: JSON.stringify(failure ?? text), hasHalves };
  }
  // Clients treat empty arguments as `{}`.
  const whole = () => JSON.parse(text.replaceAll('"arguments":""', '"arguments":"{}"')) as Json;
  const answer = frames.length > 0 ? wires[client].readFrames(frames) : wires[client].readReply(whole());
  return {
    status,
    end: ends[answer.end],
    text: answer.text,
    calls: answer.calls.map(({ name, input }) => [name, input]),
    usage: usageIn(values),
    error: "",
    hasHalves,
  };
}

const ends = {
  stop: "stop",
  length: "length",
  tool_calls: "tool",
  content_filter: "filter",
  failed: "fail",
  none: "none",
} as const;

function framesIn(body: string): { event?: string; data: string }[] {
  return body.split("\n\n").flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    const event = /^event: (.*)$/m.exec(frame)?.[1];
    return data === undefined ? [] : [{ data, ...(event === undefined ? {} : { event }) }];
  });
}

function isError(value: unknown): boolean {
  const { error, response } = (value ?? {}) as { error?: unknown; response?: { error?: unknown } };
  return Boolean(error ?? response?.error);
}

/** The usage in the final values, under the field names of any protocol. */
function usageIn(values: unknown[]): Seen["usage"] {
  const usages = values.flatMap((value) => {
    const { usage, response } = (value ?? {}) as { usage?: Json; response?: { usage?: Json } };
    return usage ?? response?.usage ?? [];
  });
  const last = usages.at(-1);
  const count = (...names: (Json | undefined)[]) => {
    const found: unknown = names.find((name) => typeof name === "number");
    return typeof found === "number" ? found : undefined;
  };
  const cached = count(last?.prompt_tokens_details?.cached_tokens);
  const input = count(last?.prompt_tokens, last?.input_tokens);
  const output = count(last?.completion_tokens, last?.output_tokens);
  return compact({ input, output, cached });
}

/** Whether all texts of a value consist of complete characters. */
function isWhole(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  return typeof value !== "object" || value === null || Object.values(value).every(isWhole);
}

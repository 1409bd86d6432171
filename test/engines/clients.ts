// A client of each protocol: how it asks, and what it makes of an answer.

import { parsed } from "../harness/frames.ts";
import type { Client, End, EngineCase, Tool } from "./case.ts";

/** What a client has in its hands at the end. */
export interface Seen {
  status: number;
  end: End | "none";
  text: string;
  calls: [name: string, input: unknown][];
  usage: { input?: number; cached?: number; output?: number };
  /** The error that it got, as JSON, or "". */
  error: string;
  /** Whether some text of it is no whole characters. */
  hasHalves: boolean;
}

type Json = Record<string, unknown>;

interface Protocol {
  path: string;
  /** `cap` is the limit of the output. */
  body(cap: number): Json;
  tool(tool: Tool): object;
  /** Reads a whole answer. */
  read(reply: any): Omit<Seen, "status" | "error" | "hasHalves">;
  /** The whole answer that a stream's events amount to, or the error at its end. */
  joined(events: any[]): Json;
}

const question = "What is the weather in Oslo?";
const user = [{ role: "user", content: question }];

export const protocols: Record<Client, Protocol> = {
  chat: {
    path: "/v1/chat/completions",
    body: (cap) => ({ messages: user, max_tokens: cap, stream_options: undefined }),
    tool: (tool) => ({ type: "function", function: tool }),
    read({ choices, usage }) {
      const { message, finish_reason } = choices[0];
      const calls = (message.tool_calls ?? []).map((call: any) => [
        call.function.name,
        inputOf(call.function.arguments),
      ]);
      const ends: Record<string, End> = { content_filter: "filter", tool_calls: "tool" };
      const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: details } = usage ?? {};
      return {
        end: ends[finish_reason] ?? finish_reason ?? "none",
        text: message.content ?? "",
        calls,
        usage: { input, output, cached: details?.cached_tokens },
      };
    },
    joined(events) {
      const message: any = { content: "", reasoning_content: "", tool_calls: [] };
      let finish_reason = null;
      let usage: unknown;
      for (const event of events) {
        if (event.error) return event;
        usage = event.usage ?? usage;
        for (const { delta, finish_reason: reason } of event.choices) {
          finish_reason = reason ?? finish_reason;
          message.content += delta.content ?? "";
          message.reasoning_content += delta.reasoning_content ?? "";
          for (const { index, function: piece } of delta.tool_calls ?? []) {
            const call = message.tool_calls[index] ?? { function: { name: "", arguments: "" } };
            message.tool_calls[index] = call;
            call.function.name += piece.name ?? "";
            call.function.arguments += piece.arguments ?? "";
          }
        }
      }
      return { choices: [{ message, finish_reason }], usage };
    },
  },
  messages: {
    path: "/v1/messages",
    body: (cap) => ({ messages: user, max_tokens: cap }),
    tool: ({ name, description, parameters }) => ({ name, description, input_schema: parameters }),
    read({ content, stop_reason, usage }) {
      const ends: Record<string, End> = {
        end_turn: "stop",
        stop_sequence: "stop",
        max_tokens: "length",
        refusal: "filter",
        tool_use: "tool",
      };
      return {
        end: ends[stop_reason] ?? "none",
        text: content.map((block: any) => (block.type === "text" ? block.text : "")).join(""),
        calls: content.flatMap((block: any) => (block.type === "tool_use" ? [[block.name, block.input]] : [])),
        usage: { input: usage?.input_tokens, output: usage?.output_tokens, cached: usage?.cache_read_input_tokens },
      };
    },
    joined(events) {
      const content: any[] = [];
      let end: Json = {};
      for (const event of events) {
        if (event.error) return event;
        if (event.type === "content_block_start") content.push({ ...event.content_block, json: "" });
        if (event.type === "message_delta") end = { ...event.delta, usage: event.usage };
        const block = content.at(-1);
        if (event.type === "content_block_stop" && block.json) block.input = inputOf(block.json);
        if (event.type !== "content_block_delta") continue;
        block.text += event.delta.text ?? "";
        block.thinking += event.delta.thinking ?? "";
        block.json += event.delta.partial_json ?? "";
      }
      return { content, ...end };
    },
  },
  responses: {
    path: "/v1/responses",
    body: (cap) => ({ input: question, max_output_tokens: cap }),
    tool: (tool) => ({ type: "function", ...tool }),
    read({ status, incomplete_details: details, output, usage }) {
      const calls = output.flatMap((item: any) =>
        item.type === "function_call" ? [[item.name, inputOf(item.arguments)]] : [],
      );
      const parts = output.flatMap((item: any) => (item.type === "message" ? item.content : []));
      const cut = details?.reason === "content_filter" ? "filter" : "length";
      const whole = calls.length > 0 ? "tool" : "stop";
      return {
        end: status === "completed" ? whole : status === "incomplete" ? cut : "fail",
        text: parts.map((part: any) => part.text ?? "").join(""),
        calls,
        usage: {
          input: usage?.input_tokens,
          output: usage?.output_tokens,
          cached: usage?.input_tokens_details?.cached_tokens,
        },
      };
    },
    joined(events) {
      const last = events.at(-1);
      return last?.response?.error ? { error: last.response.error } : (last?.response ?? last);
    },
  },
};

export function requestOf(one: EngineCase, client: Client, cap: number): Json {
  const { ask = {} } = one;
  const { body, tool } = protocols[client];
  const tools = ask.tools ? { tools: ask.tools.map(tool) } : {};
  return { ...body(cap), ...tools, ...ask[client], ...ask.extra?.[client] };
}

export function seenBy(client: Client, status: number, text: string, isStreamed: boolean): Seen {
  const { joined, read } = protocols[client];
  const deltas = isStreamed && status === 200 ? eventsOf(text) : [parsed(text)];
  const reply: any = isStreamed && status === 200 ? joined(deltas) : deltas[0];
  const hasHalves = !deltas.every(isWhole);
  const failed = { end: "fail" as const, text: "", calls: [], usage: {} };
  const error = reply?.error ? JSON.stringify(reply.error) : "";
  return { status, error, hasHalves, ...(status !== 200 || error ? failed : read(reply)) };
}

function eventsOf(body: string): unknown[] {
  return body
    .split("\n\n")
    .flatMap((frame) => /^data: (.*)$/m.exec(frame)?.slice(1) ?? [])
    .filter((data) => data !== "[DONE]")
    .map(parsed);
}

/** Reports whether all texts of a value are whole characters. */
function isWhole(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  return typeof value !== "object" || value === null || Object.values(value).every(isWhole);
}

function inputOf(text: string): unknown {
  return parsed(text || "{}");
}

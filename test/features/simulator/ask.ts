/** Helpers with which the simulator's tests send it requests over a socket and parse the responses. */

import { SseDecoder } from "../../../src/core/sse/decode.ts";
import type { Simulator } from "../../harness/simulator.ts";

// biome-ignore lint/suspicious/noExplicitAny: the tests check single fields of the parsed JSON.
export type Wire = any;

export const said = (text: string) => ({ messages: [{ role: "user", content: text }] });

export function post(simulator: Simulator, body: object | string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${simulator.url}/chat/completions`, {
    method: "POST",
    ...init,
    headers: { "content-type": "application/json", ...init.headers },
    body: typeof body === "string" ? body : JSON.stringify({ model: "acme/writer-1", ...body }),
  });
}

export async function jsonOf(response: Response | Promise<Response>): Promise<Wire> {
  return (await response).json();
}

/** Sends an unstreamed request, and returns the parsed JSON. */
export function whole(simulator: Simulator, body: object): Promise<Wire> {
  return jsonOf(post(simulator, body));
}

export interface Streamed {
  /** The parsed data of the events that are JSON. */
  chunks: Wire[];
  /** The data of all events, unparsed. */
  data: string[];
  text: string;
  bytes: Uint8Array;
  /** The bytes of each read from the connection. */
  reads: Uint8Array[];
  broken: boolean;
}

/** Requests a stream, and returns all of it, or the part that came before it broke. */
export async function streamed(simulator: Simulator, body: object): Promise<Streamed> {
  const response = await post(simulator, { stream: true, ...body });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const reads: Uint8Array[] = [];
  let broken = false;
  try {
    for await (const read of response.body!) reads.push(read);
  } catch {
    broken = true;
  }
  const bytes = Buffer.concat(reads);
  const data = new SseDecoder().push(bytes).map((message) => message.data);
  return { chunks: data.flatMap(json), data, text: bytes.toString(), bytes, reads, broken };
}

function json(data: string): Wire[] {
  try {
    return [JSON.parse(data)];
  } catch {
    return [];
  }
}

/** Combines the chunks of one choice, as a client would. */
export function gathered(chunks: Wire[], index = 0) {
  const message: Wire = { content: null, reasoning: null, refusal: null, calls: [] as Wire[] };
  let finish: string | null = null;
  const logprobs: Wire[] = [];
  for (const choice of chunks.flatMap((chunk) => chunk.choices).filter((each) => each.index === index)) {
    const { delta } = choice;
    if (delta.content != null) message.content = (message.content ?? "") + delta.content;
    if (delta.refusal != null) message.refusal = (message.refusal ?? "") + delta.refusal;
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (reasoning != null) message.reasoning = (message.reasoning ?? "") + reasoning;
    for (const call of delta.tool_calls ?? []) {
      message.calls[call.index] ??= { id: call.id, name: call.function.name, arguments: "" };
      message.calls[call.index].arguments += call.function.arguments;
    }
    logprobs.push(...(choice.logprobs?.content ?? []));
    finish = choice.finish_reason ?? finish;
  }
  const usage = chunks.map((chunk) => chunk.usage).findLast((each) => each);
  return { ...message, finish, logprobs, usage };
}

export const tools = [
  {
    type: "function",
    function: {
      name: "get_weather",
      parameters: {
        type: "object",
        properties: { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 7 } },
        required: ["city", "days"],
        additionalProperties: false,
      },
    },
  },
  {
    type: "function",
    function: { name: "get_time", parameters: { type: "object", properties: { zone: { enum: ["utc", "cet"] } } } },
  },
];

/** One request to the server under test, and its answer, kept whole so that a report can show both. */
import { SseDecoder } from "../../sse/decode.ts";
import type { SseMessage } from "../../sse/message.ts";

export interface Asked {
  method: "GET" | "POST";
  /** Below the base URL, with its `/v1`. */
  path: string;
  headers?: Record<string, string>;
  /** A value is sent as JSON, a text as it is. */
  body?: unknown;
  /** Sends no key. */
  anonymous?: boolean;
}

export interface Exchange {
  asked: Asked;
  /** Null: there was no answer, and `problem` says why. */
  status: number | null;
  headers: Record<string, string>;
  text: string;
  /** Undefined: the answer is no JSON. */
  json: unknown;
  /** The messages of an event stream. Empty for every other answer. */
  messages: SseMessage[];
  problem: string | null;
}

export type Ask = (asked: Asked) => Promise<Exchange>;

/** A larger answer ends here: no check asks for much. */
const answer_bytes_max = 4 * 1024 * 1024;

export function asking(base: URL, key: string | null, deadline_ms: number): Ask {
  return async (asked) => {
    const exchange: Exchange = {
      asked,
      status: null,
      headers: {},
      text: "",
      json: undefined,
      messages: [],
      problem: null,
    };
    try {
      const { method, path } = asked;
      const response = await fetch(new URL(path.replace(/^\//, ""), base), {
        method,
        headers: headersOf(asked, key),
        body: bodyOf(asked.body),
        redirect: "manual",
        signal: AbortSignal.timeout(deadline_ms),
      });
      exchange.status = response.status;
      exchange.headers = Object.fromEntries(response.headers);
      await read(response, exchange);
    } catch (thrown) {
      exchange.problem = thrown instanceof Error ? thrown.message : String(thrown);
    }
    return exchange;
  };
}

/** Both names of the key: servers of Anthropic's protocol read the one, all others the other. */
function headersOf({ headers = {}, body, anonymous = false }: Asked, key: string | null): Record<string, string> {
  const credentials = key === null || anonymous ? {} : { authorization: `Bearer ${key}`, "x-api-key": key };
  const type = body === undefined ? {} : { "content-type": "application/json" };
  return { ...type, ...credentials, ...headers };
}

function bodyOf(body: unknown): string | undefined {
  if (body === undefined || typeof body === "string") return body;
  return JSON.stringify(body);
}

async function read(response: Response, exchange: Exchange): Promise<void> {
  const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
  const decoder = new SseDecoder();
  const text = new TextDecoder();
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > answer_bytes_max) throw new Error(`the answer is larger than ${answer_bytes_max} bytes`);
    exchange.text += text.decode(chunk, { stream: true });
    if (isStream) exchange.messages.push(...decoder.push(chunk));
  }
  exchange.json = parsed(exchange.text);
}

/** Undefined for a text that is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

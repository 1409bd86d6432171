/** Sends one request to the server under test, and stores its complete response, so that a report can show both. */
import { messagesOf, type SseMessage } from "./events.ts";

export interface TestRequest {
  method: "GET" | "POST";
  /** The path after the base URL, which ends with `/v1`. */
  path: string;
  headers?: Record<string, string>;
  /** The body: a text is sent unchanged, any other value as JSON. */
  body?: unknown;
  /** Whether the request is sent without a key. */
  anonymous?: boolean;
}

export interface Exchange {
  request: TestRequest;
  /** The status of the response. Null: there was no response, and `problem` says why. */
  status: number | null;
  headers: Record<string, string>;
  text: string;
  /** The parsed JSON of the response. Undefined: the response is not JSON. */
  json: unknown;
  /** The messages of an event stream. Empty for any other response. */
  messages: SseMessage[];
  problem: string | null;
}

export type Ask = (request: TestRequest) => Promise<Exchange>;

/** The size at which a response is cut off. No check needs a longer one. */
const answer_bytes_max = 4 * 1024 * 1024;

export function asking(base: URL, key: string | null, deadline_ms: number): Ask {
  return async (request) => {
    const exchange: Exchange = {
      request,
      status: null,
      headers: {},
      text: "",
      json: undefined,
      messages: [],
      problem: null,
    };
    try {
      const { method, path } = request;
      const response = await fetch(new URL(path.replace(/^\//, ""), base), {
        method,
        headers: headersOf(request, key),
        body: bodyOf(request.body),
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

/** Sends the key in two headers: servers of Anthropic's protocol read `x-api-key`, all others `authorization`. */
function headersOf({ headers = {}, body, anonymous = false }: TestRequest, key: string | null): Record<string, string> {
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
  const text = new TextDecoder();
  let bytes = 0;
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > answer_bytes_max) throw new Error(`the answer is larger than ${answer_bytes_max} bytes`);
      exchange.text += text.decode(chunk, { stream: true });
    }
  } finally {
    if (isStream) exchange.messages = messagesOf(exchange.text);
  }
  exchange.json = parsed(exchange.text);
}

/** The parsed JSON of a text; undefined if it is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

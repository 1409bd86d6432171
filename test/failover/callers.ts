// Sends a request in each protocol, and reads the response as a client does: its text, whether it was reported as
// complete, and the error.

import type { Sluice } from "../harness/sluice.ts";

export const protocols = ["chat", "messages", "responses"] as const;
export type Caller = (typeof protocols)[number];

export interface Seen {
  status: number;
  text: string;
  isComplete: boolean;
  /** The code in an error body, or in a stream's error event. */
  code: string | null;
  model: string | null;
  outputTokens: number | null;
  requestId: string;
  retryAfter: string | null;
}

const paths = { chat: "/v1/chat/completions", messages: "/v1/messages", responses: "/v1/responses" };

const caps = { chat: "max_completion_tokens", messages: "max_tokens", responses: "max_output_tokens" };

export function bodyOf(caller: Caller, model: string, stream: boolean, more: object = {}): object {
  const messages = [{ role: "user", content: "hello" }];
  // The output limit is so small that the service asks the engine without streaming, unless the client asks for a
  // stream.
  if (caller === "chat") {
    const options = stream ? { stream, stream_options: { include_usage: true } } : {};
    return { model, messages, max_completion_tokens: 200, ...options, ...more };
  }
  if (caller === "messages") return { model, messages, max_tokens: 200, stream, ...more };
  return { model, input: "hello", max_output_tokens: 200, stream, store: false, ...more };
}

export async function asks(
  sluice: Sluice,
  caller: Caller,
  model: string,
  stream: boolean,
  { cap }: { cap?: number } = {},
): Promise<Seen> {
  const more = cap === undefined ? {} : { [caps[caller]]: cap };
  return seen(await sluice.post(paths[caller], bodyOf(caller, model, stream, more)));
}

// biome-ignore lint/suspicious/noExplicitAny: responses of three protocols, read without types
type Json = any;

export async function seen(response: Response): Promise<Seen> {
  const base = {
    ...{ status: response.status, text: "", isComplete: false, code: null, model: null, outputTokens: null },
    requestId: response.headers.get("x-service-request-id") ?? "",
    retryAfter: response.headers.get("retry-after"),
  };
  const isStream = response.headers.get("content-type")?.includes("event-stream");
  const events: Json[] = isStream ? eventsOf(await response.text()) : [await response.json()];
  return events.reduce((sum: Seen, event) => folded(sum, event), base);
}

function eventsOf(text: string): Json[] {
  const data = text.split("\n\n").flatMap((frame) => frame.split("\n").filter((line) => line.startsWith("data: ")));
  return data.map((line) => line.slice(6)).map((line) => (line === "[DONE]" ? {} : JSON.parse(line)));
}

function folded(seen: Seen, event: Json): Seen {
  const error = event.error ?? event.response?.error;
  if (error) return { ...seen, isComplete: false, code: error.code ?? error.details?.error_code ?? error.type };
  const response = event.response ?? event;
  const model = response.model ?? event.message?.model ?? seen.model;
  const said =
    event.choices?.[0]?.delta?.content ??
    (event.type === "response.output_text.delta" ? event.delta : event.delta?.text) ??
    "";
  const whole = event.choices?.[0]?.message?.content ?? wholeText(event) ?? "";
  const counted = response.usage?.completion_tokens ?? response.usage?.output_tokens;
  const ends =
    typeof event.choices?.[0]?.finish_reason === "string" ||
    event.type === "message_stop" ||
    event.type === "response.completed" ||
    (event.type === "message" && typeof event.stop_reason === "string") ||
    (event.object === "response" && event.status === "completed");
  return {
    ...seen,
    text: seen.text + said + whole,
    isComplete: seen.isComplete || ends,
    model,
    outputTokens: counted ?? seen.outputTokens,
  };
}

function wholeText(event: Json): string | undefined {
  if (event.type === "message") return event.content.map((block: Json) => block.text ?? "").join("");
  if (event.object !== "response") return undefined;
  return event.output
    .flatMap((item: Json) => item.content ?? [])
    .map((part: Json) => part.text ?? "")
    .join("");
}

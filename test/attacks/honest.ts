// Requests of honest clients, of each kind in turn. Each response is read to its end and checked.

import type { Target } from "./attack.ts";

export interface Honest {
  name: string;
  /** Sends a request. Returns null, or the problem of the response. */
  ask(): Promise<string | null>;
}

export function honestRequests({ url, key, model }: Pick<Target, "url" | "key" | "model">): Honest[] {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const turns = Array.from({ length: 21 }, (_, at) => ({
    role: at % 2 === 0 ? "user" : "assistant",
    content: `What was said in turn ${at}. `.repeat(20),
  }));
  const request = (name: string, path: string, body: object | null, end: string): Honest => ({
    name,
    async ask() {
      const sent = body === null ? {} : { method: "POST", body: JSON.stringify({ model, ...body }) };
      const response = await fetch(url + path, { headers, signal: AbortSignal.timeout(60_000), ...sent });
      const text = await response.text();
      if (response.status !== 200) return `${response.status} ${text.slice(0, 200)}`;
      return text.includes(end) ? null : `no end: ${text.slice(-200)}`;
    },
  });
  const chat = { messages: turns, max_tokens: 600 };
  const responses = { input: turns, max_output_tokens: 600 };
  return [
    request("chat", "/v1/chat/completions", chat, '"finish_reason":"stop"'),
    request("chat, streamed", "/v1/chat/completions", { ...chat, stream: true }, "data: [DONE]"),
    request("messages", "/v1/messages", chat, '"stop_reason":"end_turn"'),
    request("messages, streamed", "/v1/messages", { ...chat, stream: true }, "message_stop"),
    request("responses", "/v1/responses", responses, '"status":"completed"'),
    request("responses, streamed", "/v1/responses", { ...responses, stream: true }, "response.completed"),
    request("count_tokens", "/v1/messages/count_tokens", { messages: turns }, "input_tokens"),
    request("models", "/v1/models", null, '"object":"list"'),
  ];
}

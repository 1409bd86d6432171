// The engine behind the attacked node. It accepts any body, and responds with a few words, as a stream if the request
// asks for one.

import type { UpstreamProtocol } from "../../src/core/upstream/codecs.ts";

export const honestEngineModel = "writer";
/** The model that reports a usage of a billion tokens for any response, in the same write as the response's end. */
export const lyingEngineModel = "liar";
/** The model whose response is endless, and is sent as fast as it is read. */
export const endlessEngineModel = "endless";
/** The model that sends the response that an attack has set, in the protocol of the request. */
export const hostileEngineModel = "hostile";

/** A response of the hostile model. */
export interface EngineAnswer {
  isStream: boolean;
  bytes: Uint8Array;
}

export type Says = (protocol: UpstreamProtocol) => EngineAnswer;

const protocolAt: Record<string, UpstreamProtocol> = {
  "/v1/chat/completions": "openai-chat",
  "/v1/messages": "anthropic-messages",
  "/v1/responses": "openai-responses",
};

const words = 20;
const lie = { prompt_tokens: 12, completion_tokens: 1e9, total_tokens: 1e9 + 12 };
const truth = { prompt_tokens: 12, completion_tokens: words, total_tokens: 12 + words };
/** The pause between two parts of a normal stream. */
const pause_ms = 20;

export function startEngine() {
  let says: Says | null = null;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 256 * 1024 * 1024,
    idleTimeout: 120,
    async fetch(request) {
      // Bodies may be as large as the service accepts, so only their first and last characters are searched.
      const text = await request.text();
      const isAsked = (name: string) => text.slice(0, 200).includes(`"model":"${name}"`);
      if (isAsked(endlessEngineModel)) return endless();
      const protocol = protocolAt[new URL(request.url).pathname];
      if (says && protocol && isAsked(hostileEngineModel)) return hostile(says(protocol));
      const isLying = isAsked(lyingEngineModel);
      if (/"stream":true/.test(text.slice(0, 500) + text.slice(-500))) return streamed(isLying);
      const choices = [{ index: 0, message: { role: "assistant", content: said(words) }, finish_reason: "stop" }];
      return Response.json({ id: "1", object: "chat.completion", choices, usage: isLying ? lie : truth });
    },
  });
  return {
    port: Number(server.url.port),
    /** Sets the hostile model's response to all later requests. */
    says(what: Says | null) {
      says = what;
    },
    stop: () => server.stop(true),
  };
}

function hostile({ isStream, bytes }: EngineAnswer): Response {
  const headers = { "content-type": isStream ? "text/event-stream" : "application/json" };
  return new Response(bytes as Uint8Array<ArrayBuffer>, { headers });
}

function streamed(isLying: boolean): Response {
  const delta = event({ choices: [{ index: 0, delta: { content: said(1) } }] });
  const end = (usage: object) =>
    `${event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage })}data: [DONE]\n\n`;
  const headers = { "content-type": "text/event-stream" };
  if (isLying) return new Response(delta.repeat(words) + end(lie), { headers });
  const pieces = async function* () {
    for (let count = 0; count < words; count++) {
      yield delta;
      await Bun.sleep(pause_ms);
    }
    yield end(truth);
  };
  return new Response(pieces() as unknown as ReadableStream, { headers });
}

function endless(): Response {
  const piece = new TextEncoder().encode(event({ choices: [{ index: 0, delta: { content: said(1) } }] }).repeat(300));
  const body = new ReadableStream({
    async pull(controller) {
      // Lets the event loop do other work.
      await Bun.sleep(0);
      controller.enqueue(piece);
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const said = (count: number) => "word ".repeat(count);
const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

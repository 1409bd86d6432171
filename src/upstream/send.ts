/** One request to one engine, once: whether it may be sent again is decided by whoever knows what was shown. */
import type { InferenceRequest } from "../inference/request.ts";
import type { UpstreamAsk, UpstreamCodec } from "../protocol/codec.ts";
import type { JsonObject } from "../protocol/json.ts";
import { jsonPieces } from "../protocol/json-pieces.ts";
import { joined, type OwnBytes } from "../protocol/own-bytes.ts";
import { breather } from "../time/breather.ts";
import type { Client, Post } from "./http1/client.ts";
import type { RequestBody } from "./http1/connection.ts";
import type { Reply } from "./http1/exchange.ts";
import type { Upstream } from "./target.ts";

export interface Sending extends UpstreamAsk {
  client: Client;
  upstream: Upstream;
  codec: UpstreamCodec;
  request: InferenceRequest;
  /** Size of what the caller asked. */
  inputBytes: number;
  /** The bytes in which the caller did, where they are still there. */
  own?: OwnBytes | null;
  /** For whom it is. */
  identified?: { organization: string; plan: string };
  /** What divides the engine's prefix cache, as vLLM names it; null where nothing does. */
  cacheSalt?: string | null;
  /** What tells the engine whose trace it is part of. */
  traceHeaders?: Record<string, string>;
  /** On a connection of its own, because one that had served before has failed. */
  isFresh?: boolean;
}

export async function send(sending: Sending, line: Pick<Post, "connect_ms" | "connected" | "signal">): Promise<Reply> {
  const { client, upstream, codec, request, model, stream, outputTokens_max, instructionsInside } = sending;
  const asked = codec.request.encode(request, { model, stream, outputTokens_max, instructionsInside });
  const body = await bodyOf(sending.cacheSalt ? { ...asked, cache_salt: sending.cacheSalt } : asked, sending);
  return client.post({
    url: upstream.url + codec.path,
    address: upstream.address,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream, application/json",
      "user-agent": "sluice",
      ...sending.traceHeaders,
      ...credentials(upstream),
      ...upstream.headers,
      ...identityHeaders(sending),
    },
    body,
    tls: upstream.tls ?? null,
    isFresh: sending.isFresh ?? false,
    ...line,
  });
}

/** Smaller ones are written at once, which is quicker. */
const pieced_bytes = 1024 * 1024;

async function bodyOf(asked: Readonly<JsonObject>, { inputBytes, own, codec }: Sending): Promise<RequestBody> {
  const { rest, handed } = own?.handOn(asked, codec.request.forms) ?? { rest: asked, handed: [] };
  if (inputBytes < pieced_bytes) {
    const text = JSON.stringify(rest);
    return handed.length === 0 ? text : joined([new TextEncoder().encode(text)], handed);
  }
  const pieces: Uint8Array[] = [];
  for (const piece of jsonPieces(rest)) {
    pieces.push(piece);
    await breather(inputBytes);
  }
  return joined(pieces, handed);
}

function identityHeaders({ upstream: { identityHeaders = {} }, identified }: Sending): Record<string, string> {
  if (!identified) return {};
  const { organization, plan } = identityHeaders;
  return {
    ...(organization ? { [organization]: identified.organization } : {}),
    ...(plan ? { [plan]: identified.plan } : {}),
  };
}

export function credentials(upstream: Upstream): Record<string, string> {
  if (upstream.apiKey === null) return {};
  return upstream.protocol === "anthropic-messages"
    ? { "x-api-key": upstream.apiKey, "anthropic-version": "2023-06-01" }
    : { authorization: `Bearer ${upstream.apiKey}` };
}

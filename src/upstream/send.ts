/**
 * Sends one request to one engine, once. Whether it may be sent again is decided elsewhere, by the code that knows what
 * the caller was shown.
 */

import { jsonPieces } from "../body/json-pieces.ts";
import { joined, type OwnBytes } from "../body/own-bytes.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { UpstreamAsk, UpstreamCodec } from "../protocol/codec.ts";
import type { JsonObject } from "../protocol/json.ts";
import { breather } from "../time/breather.ts";
import type { Client, Post, Where } from "./http1/client.ts";
import type { Reply } from "./http1/exchange.ts";
import type { Upstream } from "./target.ts";

export interface Sending extends UpstreamAsk {
  client: Client;
  upstream: Upstream;
  codec: UpstreamCodec;
  request: InferenceRequest;
  /** The size of the caller's request. */
  inputBytes: number;
  /** The caller's own bytes, if they are still in memory. */
  own?: OwnBytes | null;
  /** The organization and plan of the request. */
  identified?: { organization: string; plan: string };
  /** The salt that divides the engine's prefix cache, as vLLM names it; null for none. */
  cacheSalt?: string | null;
  /** The headers that continue its trace at the engine. */
  traceHeaders?: Record<string, string> | null;
  /** Whether to use a new connection, because one that had served before has failed. */
  isFresh?: boolean;
}

export async function send(sending: Sending, line: Pick<Post, "connect_ms" | "connected" | "signal">): Promise<Reply> {
  const { client, upstream, codec, request, model, stream, outputTokens_max, instructionsInside } = sending;
  const asked = codec.request.encode(request, { model, stream, outputTokens_max, instructionsInside });
  const salted = sending.cacheSalt ? { ...asked, cache_salt: sending.cacheSalt } : asked;
  const { rest, handed } = sending.own?.handOn(salted, codec.request.forms) ?? { rest: salted, handed: [] };
  const isSmall = handed.length === 0 && sending.inputBytes < pieced_bytes;
  const body = isSmall ? JSON.stringify(rest) : joined(await piecesOf(rest, sending.inputBytes), handed);
  const { connect_ms, connected, signal } = line;
  const endpoint = client.at(upstream, () => whereOf(upstream, codec));
  const isFresh = sending.isFresh ?? false;
  return await endpoint.post({ headers: headersOf(sending), body, isFresh, connect_ms, connected, signal });
}

/** Smaller bodies are written at once, which is faster. */
const pieced_bytes = 1024 * 1024;

async function piecesOf(asked: Readonly<JsonObject>, inputBytes: number): Promise<Uint8Array[]> {
  if (inputBytes < pieced_bytes) return [new TextEncoder().encode(JSON.stringify(asked))];
  const pieces: Uint8Array[] = [];
  for (const piece of jsonPieces(asked)) {
    pieces.push(piece);
    await breather(inputBytes);
  }
  return pieces;
}

/** The destination. Headers set by the operator override ours. */
function whereOf(upstream: Upstream, codec: UpstreamCodec): Where {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "text/event-stream, application/json",
    "user-agent": "sluice",
    ...credentials(upstream),
    ...upstream.headers,
  };
  for (const name of Object.values(upstream.identityHeaders ?? {})) delete headers[name];
  return { url: upstream.url + codec.path, address: upstream.address, headers, tls: upstream.tls ?? null };
}

const none = {};

/** The headers that differ from request to request. */
function headersOf({ upstream, traceHeaders, identified }: Sending): Record<string, string> {
  if (!traceHeaders && !upstream.identityHeaders) return none;
  const headers: Record<string, string> = { ...traceHeaders };
  for (const name in upstream.headers) delete headers[name];
  const { organization, plan } = upstream.identityHeaders ?? {};
  if (identified && organization) headers[organization] = identified.organization;
  if (identified && plan) headers[plan] = identified.plan;
  return headers;
}

export function credentials(upstream: Upstream): Record<string, string> {
  if (upstream.apiKey === null) return {};
  return upstream.protocol === "anthropic-messages"
    ? { "x-api-key": upstream.apiKey, "anthropic-version": "2023-06-01" }
    : { authorization: `Bearer ${upstream.apiKey}` };
}

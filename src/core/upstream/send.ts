/**
 * Sends a request to one engine, and again only without what that engine refuses. The code that knows what the caller
 * has received decides whether to send the request again for another reason.
 */

import { jsonPieces, jsonText } from "../body/json-pieces.ts";
import { joinedBody, type OwnBytes } from "../body/own-bytes.ts";
import { Fault } from "../inference/fault.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { UpstreamAsk, UpstreamCodec } from "../protocol/codec.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { dialects } from "../protocol/dialects.ts";
import { compact, isObject, type JsonObject } from "../protocol/json.ts";
import { withoutRefused } from "../protocol/refused-field.ts";
import { yieldFor } from "../time/turns.ts";
import { type AttemptEnd, kindOfRefusal, retryAfterOf } from "./attempt.ts";
import { readAtMost } from "./body.ts";
import { parseLarge } from "./engine-json.ts";
import type { Client, Post, Where } from "./http1/client.ts";
import type { Reply } from "./http1/exchange.ts";
import { bytesOf } from "./http1/head.ts";
import type { Upstream } from "./target.ts";

export interface Sending extends UpstreamAsk {
  client: Client;
  upstream: Upstream;
  codec: UpstreamCodec;
  request: InferenceRequest;
  inputBytes: number;
  sent?(bytes: number): void;
  /** The caller's own bytes of the request body, if they are still in memory. */
  own?: OwnBytes | null;
  /** The names by which the engine may learn whose request it is. `session`: null if the conversation is not known. */
  identified?: { organization: string; plan: string; session: string | null };
  /** The salt that separates the engine's prefix cache by organization, for vLLM's field `cache_salt`; null: none. */
  cacheSalt?: string | null;
  /** The betas of the engine's protocol that the caller names. */
  betas?: string | null;
  /** Headers that continue the request's trace at the engine. */
  traceHeaders?: Record<string, string> | null;
  /** Whether to use a new connection, because a reused one has failed. */
  isFresh?: boolean;
}

export type Line = Pick<Post, "connect_ms" | "connected" | "signal">;

const refusal_bytes_max = 64 * 1024;

interface EngineRefusal {
  fault: Fault;
  end: AttemptEnd;
  /** The dialect or the request that the engine may accept, if it refused only a part that is not essential; else null. */
  lesser: { dialect?: Dialect; request?: InferenceRequest } | null;
}

/**
 * Sends the request, and again without each part that the engine refuses and that is not essential. `replied` is called
 * with each reply. `refuses` is called only with a dialect with which the engine then answered: a refusal alone proves
 * nothing, because it may quote a caller's own words. Nor is it called with a changed request, whose signatures of
 * reasoning are wrong in this conversation alone.
 */
export async function sendWithLess(
  question: Sending & { refuses?(lesser: Dialect): void },
  line: Line,
  replied: (reply: Reply) => void,
): Promise<{ reply: Reply; refusal: EngineRefusal | null }> {
  let lesser: Dialect | undefined;
  for (let asked: Sending = question; ; ) {
    const reply = await send(asked, line);
    replied(reply);
    const refusal = reply.status === 200 ? null : await engineRefusal(reply, asked);
    if (!refusal && lesser) question.refuses?.(lesser);
    if (!refusal?.lesser) return { reply, refusal };
    question.lost?.("refused");
    lesser = refusal.lesser.dialect ?? lesser;
    asked = { ...asked, ...refusal.lesser, own: null };
  }
}

async function engineRefusal(
  reply: Reply,
  { codec, request, dialect = dialects.generic }: Pick<Sending, "codec" | "request" | "dialect">,
): Promise<EngineRefusal> {
  const { status } = reply;
  const text = await readAtMost(reply, refusal_bytes_max).catch(() => "");
  // If an engine's proxy answers in HTML, the text stays unparsed: the status says enough.
  const body = await parseLarge(text).catch(() => text);
  const fault = codec.fault.decode(status, body, dialect);
  const lesser = withoutRefused({ request, dialect }, status, body);
  const end: AttemptEnd = {
    kind: kindOfRefusal(status, fault),
    status,
    ...compact({ said: fault.details.engineText }),
  };
  const wait_s = retryAfterOf(reply);
  if (wait_s === null) return { fault, end, lesser };
  // At most a minute is passed on: agents wait as long as the header says.
  const details = { ...fault.details, retryAfterSeconds: Math.min(60, Math.max(1, Math.ceil(wait_s))) };
  return {
    fault: new Fault(fault.code, fault.message, details),
    end: { ...end, retryAfter_ms: wait_s * 1000 },
    lesser,
  };
}

export async function send(sending: Sending, line: Line): Promise<Reply> {
  const { client, upstream, codec, request, model, stream, outputTokens_max, instructionsInside, dialect, lost } =
    sending;
  const asked = codec.request.encode(request, { model, stream, outputTokens_max, instructionsInside, dialect, lost });
  const extended = { ...asked, ...extensionsOf(sending, asked) };
  const { rest, handed } = sending.own?.handOn(extended, codec.request.forms) ?? { rest: extended, handed: [] };
  const isSmall = handed.length === 0 && sending.inputBytes < pieced_bytes;
  const alone = () => lost?.("surrogates");
  const body = isSmall ? jsonText(rest, alone) : joinedBody(await piecesOf(rest, sending.inputBytes, alone), handed);
  sending.sent?.(bytesOf(body));
  const { connect_ms, connected, signal } = line;
  const endpoint = client.at(upstream, () => whereOf(upstream, codec), codec.path);
  const isFresh = sending.isFresh ?? false;
  const organization = sending.identified?.organization ?? null;
  return await endpoint.post({
    headers: headersOf(sending),
    body,
    organization,
    isFresh,
    connect_ms,
    connected,
    signal,
  });
}

/** The fields beyond the protocol that the operator has configured for the engine. */
function extensionsOf({ upstream, cacheSalt, stream }: Sending, asked: Readonly<JsonObject>): JsonObject {
  const fields: JsonObject = {};
  if (cacheSalt) fields.cache_salt = cacheSalt;
  if (stream && upstream.runningUsage === "timings") fields.timings_per_token = true;
  if (stream && upstream.runningUsage === "usage")
    fields.stream_options = {
      ...(isObject(asked.stream_options) && asked.stream_options),
      continuous_usage_stats: true,
    };
  return fields;
}

/** Bodies smaller than this are written in one piece, which is faster. */
const pieced_bytes = 1024 * 1024;

async function piecesOf(asked: Readonly<JsonObject>, inputBytes: number, alone: () => void): Promise<Uint8Array[]> {
  if (inputBytes < pieced_bytes) return [new TextEncoder().encode(jsonText(asked, alone))];
  const pieces: Uint8Array[] = [];
  for (const piece of jsonPieces(asked, undefined, alone)) {
    pieces.push(piece);
    await yieldFor(inputBytes);
  }
  return pieces;
}

/** The headers of every request to an upstream. Those that the operator has configured replace the default ones. */
export function headersTo(upstream: Upstream, codec: Pick<UpstreamCodec, "headers">): Record<string, string> {
  return { "user-agent": "sluice", ...codec.headers(upstream.apiKey), ...upstream.headers };
}

function whereOf(upstream: Upstream, codec: UpstreamCodec): Where {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "text/event-stream, application/json",
    ...headersTo(upstream, codec),
  };
  for (const name of Object.values(upstream.identityHeaders ?? {})) delete headers[name];
  return {
    url: upstream.url + codec.path,
    address: upstream.address,
    headers,
    tls: upstream.tls ?? null,
    reuse: upstream.reuse ?? "any",
    upstream: upstream.name,
  };
}

const none = {};

/** The headers that differ from request to request. */
function headersOf({ upstream, codec, dialect, betas, traceHeaders, identified }: Sending): Record<string, string> {
  const isPassed = betas && codec.betasHeader && dialect?.wholeMessages;
  if (!traceHeaders && !upstream.identityHeaders && !isPassed) return none;
  const headers: Record<string, string> = { ...traceHeaders };
  for (const name in upstream.headers) delete headers[name];
  // This header is a list, which may come in several lines: the line that the operator configured is sent too.
  if (isPassed) headers[codec.betasHeader!] = betas;
  const { organization, plan, session, priority } = upstream.identityHeaders ?? {};
  if (!identified) return headers;
  if (organization) headers[organization] = identified.organization;
  if (plan) headers[plan] = identified.plan;
  if (session && identified.session !== null) headers[session] = identified.session;
  const rank = upstream.priorities?.[identified.plan];
  if (priority && rank !== undefined) headers[priority] = String(rank);
  return headers;
}

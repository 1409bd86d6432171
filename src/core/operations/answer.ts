/**
 * ANSWER: turns a run (the work of engines on one admitted request) into the response that its caller reads: encoded in
 * the protocol, stored if it is to be stored, and sent. A failure before the first part of the answer is thrown, so
 * that its status can still be sent.
 */

import { limitHeaders, windowHeaders } from "../admission/limit-words.ts";
import type { Principal } from "../auth/verdict.ts";
import { giveBackBody } from "../http/bounds.ts";
import type { Call } from "../http/call.ts";
import type { HttpAnswer } from "../http/frame.ts";
import { json } from "../http/json.ts";
import { endsAfter, type Primed, primed, type SseOptions, sseAnswer } from "../http/stream.ts";
import { isEmptied } from "../inference/request.ts";
import { collect, type Result } from "../inference/result.ts";
import type { Operation } from "../store/ledger.ts";
import { yieldFor } from "../time/turns.ts";
import type { Fetched, RunRequest } from "../usage/record.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import type { keyHeader } from "./idempotency.ts";

export async function answer<Wire extends InferenceWire, Reply>(
  limits: StreamLimits,
  call: Call,
  adapter: Adapter<Wire, Reply>,
  prepared: Prepared<Wire>,
  { run, sink }: { run: Run; sink: AnswerSink | null },
): Promise<HttpAnswer> {
  const { operation } = adapter;
  const headers = { ...admittedHeaders(operation, run), ...adapter.headers?.(call.request, run.grant) };
  const answering = { call, adapter, prepared, events: run.events, headers, limits };
  if (sink) return sink.answer(answering);
  return prepared.request.stream ? streamed(answering) : whole(answering);
}

async function whole<Wire extends InferenceWire, Reply>(answering: Answering<Wire, Reply>): Promise<HttpAnswer> {
  const result = await collect(answering.events);
  const size = sizeOf(result);
  const before = yieldFor(size);
  if (before) await before;
  const reply = await replies(answering, saverOf(answering))(result);
  const behind = yieldFor(size);
  if (behind) await behind;
  return json(200, reply, answering.headers);
}

export async function streamed<Wire extends InferenceWire, Reply>(
  answering: Answering<Wire, Reply>,
): Promise<HttpAnswer> {
  const save = saverOf(answering);
  const { rest, options } = encoding(answering, save);
  return sseAnswer(await untilFirstPart(answering, rest, save !== null), options);
}

export function admittedHeaders(operation: Operation, run: Run): Record<string, string> {
  return {
    "x-service-usage-source": run.grant.source,
    ...windowHeaders(run.grant.windows),
    ...limitHeaders(operation, run.rates, Date.now()),
  };
}

function sizeOf({ parts }: Result): number {
  return parts.reduce((sum, { text, logprobs }) => sum + text.length + 1024 * (logprobs?.length ?? 0), 0);
}

export interface Prepared<Wire> extends RunRequest {
  /** The body, or the part of it that the answer needs, with stored items in place of references to them. */
  wire: Wire;
}

export interface Answering<Wire extends InferenceWire, Reply> {
  call: Call;
  adapter: Adapter<Wire, Reply>;
  prepared: Prepared<Wire>;
  events: Run["events"];
  headers: Record<string, string>;
  limits: StreamLimits;
}

export interface StreamLimits {
  /** How long the 200 of a stream is held back for the first part of the answer. */
  first_event_hold_ms: number;
  /** The longest silence on a stream before a heartbeat. */
  heartbeat_ms: number;
}

/** Stores an answer. Never throws. */
export type Save<Reply> = (reply: Reply) => Promise<void>;

export function saverOf<Wire extends InferenceWire, Reply>({
  adapter: { saver },
  prepared: { wire, principal },
}: Pick<Answering<Wire, Reply>, "adapter" | "prepared">): Save<Reply> | null {
  return saver?.(wire, { organizationId: principal.organization.id, keyId: principal.key.id }) ?? null;
}

/** Returns a function that encodes the whole answer, and stores it before it is sent. */
export function replies<Wire extends InferenceWire, Reply>(
  { adapter: { codec }, prepared: { wire } }: Answering<Wire, Reply>,
  save: Save<Reply> | null,
): (result: Result) => Promise<Reply> {
  const endedAtSeconds = clockedOnce();
  return async (result) => {
    const reply = codec.response.encode(result, wire, endedAtSeconds());
    await save?.(reply);
    return reply;
  };
}

/** A streamed answer: its events, of which the last waits until the answer is stored, and their encoder. */
export function encoding<Wire extends InferenceWire, Reply>(
  { call, adapter: { codec }, prepared, events, headers, limits }: Answering<Wire, Reply>,
  save: Save<Reply> | null,
): { rest: Run["events"]; options: SseOptions } {
  const { wire, identity, inputTokensExpected } = prepared;
  const endedAtSeconds = clockedOnce();
  const encoded = (result: Result) => codec.response.encode(result, wire, endedAtSeconds());
  const rest = save ? endsAfter(events, (result) => save(encoded(result))) : events;
  const context = {
    requestId: call.requestId,
    identity,
    inputTokensEstimate: Math.max(1, inputTokensExpected),
    endedAtSeconds,
  };
  const encoder = codec.stream.encoder(wire, context);
  return { rest, options: { encoder, heartbeat_ms: limits.heartbeat_ms, headers } };
}

/** Waits for the first part of the answer, so that a failure before it is thrown and its status can still be sent. */
export async function untilFirstPart<Wire extends InferenceWire, Reply>(
  { call, prepared, limits }: Answering<Wire, Reply>,
  rest: Run["events"],
  isSaved: boolean,
): Promise<Primed> {
  const stream = await primed(rest, limits.first_event_hold_ms);
  // An answer that is to be stored needs its request until the end.
  if (!isSaved && isEmptied(prepared.request)) giveBackBody(call);
  return stream;
}

/** Returns a function whose every call returns the time of its first call, in Unix seconds. */
function clockedOnce(): () => number {
  let at: number | undefined;
  return () => {
    at ??= Math.floor(Date.now() / 1000);
    return at;
  };
}

/**
 * THE SEAM OF KEPT ANSWERS: the interface to a feature that keeps answers beyond their connection, runs requests in the
 * background, and answers a repeated request with the answer of the first one.
 */
export interface AnswerSinks {
  /**
   * The sink that keeps the answer of this request; null if it is not kept, as for most requests. The sink ends with
   * the call. Throws a Fault if the answer would be kept but the organization keeps no content.
   */
  sinkOf(call: Call, asked: SinkAsked): AnswerSink | null;
}

interface SinkAsked {
  principal: Principal;
  operation: Operation;
  headers: { [keyHeader]?: string } | undefined;
  /** The hash of the request's body; null if the hash was not computed. */
  digest: string | null;
  isBackground: boolean;
  isStream: boolean;
}

export interface AnswerSink {
  /** Whether a request with the same idempotency key gets this answer. */
  readonly isRepeatable: boolean;
  /** How the answer is fetched, if it is a background response; else null. */
  readonly fetched: Fetched | null;
  /**
   * Claims the request's idempotency key, or returns the answer of the earlier request that this one repeats. Throws
   * Faults.
   */
  begin(): Promise<EarlierAnswer | null>;
  follows(run: Run): void;
  /** Keeps the events of the run, and makes the HTTP answer from them. */
  answer<Wire extends InferenceWire, Reply>(answering: Answering<Wire, Reply>): Promise<HttpAnswer>;
}

export interface EarlierAnswer {
  /**
   * Answers a repeated request from the kept answer, without an engine and without a charge. `wire`: the part of the
   * repeat's body that is needed to encode the answer.
   */
  answer<Wire extends InferenceWire, Reply>(
    repeat: { principal: Principal; wire: Wire },
    adapter: Adapter<Wire, Reply>,
  ): Promise<HttpAnswer>;
}

/** Keeps nothing: each answer goes to its connection alone. */
export const noSinks: AnswerSinks = { sinkOf: () => null };

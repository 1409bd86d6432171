/** Makes the events of a run into an answer in the caller's protocol: whole, or as a stream. */
import type { Call } from "../http/call.ts";
import { giveBackBody } from "../http/shed.ts";
import { endsAfter, type Primed, primed, type SseOptions } from "../http/stream.ts";
import { isEmptied } from "../inference/empty-request.ts";
import type { Result } from "../inference/result.ts";
import type { Run, RunRequest } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";

/** A checked request that may run. */
export interface Prepared<Wire> extends RunRequest {
  /** The body, or the part of it that the answer needs, with stored items in place of references to them. */
  wire: Wire;
}

/** A run with the request that it answers, and the headers of the answer. */
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

/** Returns the function that stores the answer; null if it is not to be stored. */
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
  // To store an answer, its request is needed until the end.
  if (!isSaved && isEmptied(prepared.request)) giveBackBody(call);
  return stream;
}

/** Returns a function that gives the time of its first call each time, in Unix seconds. */
function clockedOnce(): () => number {
  let at: number | undefined;
  return () => {
    at ??= Math.floor(Date.now() / 1000);
    return at;
  };
}

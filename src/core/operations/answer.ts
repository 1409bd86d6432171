/**
 * ANSWER: turns a run into the response that its caller reads: encoded in the protocol, stored if it is to be stored,
 * and sent. A failure before the first part is thrown, so that it has its true status.
 */

import { endsWithFailure, inBackground } from "../../features/responses/background.ts";
import { keptStream, logged } from "../../features/responses/first-client.ts";
import type { Keeping } from "../../features/responses/keeping.ts";
import { keptWhole } from "../../features/responses/whole.ts";
import { windowHeaders } from "../admission/refusal.ts";
import type { Call } from "../http/call.ts";
import type { Answer } from "../http/frame.ts";
import { json } from "../http/json.ts";
import { giveBackBody } from "../http/shed.ts";
import { endsAfter, primed, type SseOptions, sseAnswer } from "../http/stream.ts";
import { isLetGo } from "../inference/let-go.ts";
import type { Result } from "../inference/result.ts";
import { collect } from "../inference/result.ts";
import type { ResponseObject } from "../protocol/openai-responses/contract.ts";
import { yieldFor } from "../time/yielding.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { isSignedIn, standingHeaders } from "./claude-code.ts";
import type { Dependencies } from "./dependencies.ts";
import { limitHeaders } from "./limit-headers.ts";
import type { Prepared } from "./prepare.ts";

export async function answer<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  adapter: Adapter<Wire, Reply>,
  prepared: Prepared<Wire>,
  { run, keeping = null }: { run: Run; keeping?: Keeping | null },
): Promise<Answer> {
  const { operation, codec } = adapter;
  const { wire, request } = prepared;
  const headers = {
    "x-service-usage-source": run.grant.source,
    ...windowHeaders(run.grant.windows),
    ...limitHeaders(operation, run.rates, Date.now()),
    ...(operation === "messages" && isSignedIn(call.request.headers) ? standingHeaders(run.grant) : {}),
  };
  const begun = (keeping?.isBackground && adapter.background?.begun(wire, prepared.identity)) || null;
  if (begun) await keeping?.respond(begun);
  const isFetchedAsProduced = begun !== null && keeping?.asProduced === true;
  if (!begun || isFetchedAsProduced)
    await keeping?.open({ stream: request.stream, identity: prepared.identity, headers });
  if (request.stream) return streamed(dependencies, call, adapter, prepared, { events: run.events, headers, keeping });
  if (isFetchedAsProduced && keeping) {
    const { rest, options } = encoding(dependencies, call, adapter, prepared, { events: run.events, headers, keeping });
    const stream = { head: [], pending: null, rest };
    return inBackground(call, begun, headers, () => logged(stream, options, keeping));
  }
  const save = savingOf(adapter, prepared, keeping);
  const replyOf = async (result: Result) => {
    const reply = codec.response.encode(result, wire, clockedOnce()());
    await save?.(reply);
    return reply;
  };
  if (begun && keeping) {
    const work = () =>
      collect(endsAfter(endsWithFailure(run.events, keeping), async (all) => void (await replyOf(all))));
    return inBackground(call, begun, headers, () => work().then(nothing, nothing));
  }
  if (keeping) return keptWhole(run.events, headers, keeping, replyOf);
  const result = await collect(run.events);
  const size = sizeOf(result);
  await yieldFor(size);
  const reply = await replyOf(result);
  await yieldFor(size);
  return json(200, reply, headers);
}

/** The events of an answer, and the headers before them. */
interface Streaming {
  events: Run["events"];
  headers: Record<string, string>;
  keeping?: Keeping | null;
}

export async function streamed<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  adapter: Adapter<Wire, Reply>,
  prepared: Prepared<Wire>,
  streaming: Streaming,
): Promise<Answer> {
  const { keeping = null } = streaming;
  const { rest, options, isSaved } = encoding(dependencies, call, adapter, prepared, streaming);
  const stream = await primed(rest, dependencies.limits.first_event_hold_ms);
  // A stored answer has to be complete.
  if (!isSaved && isLetGo(prepared.request)) giveBackBody(call);
  return keeping ? keptStream(call, stream, options, keeping) : sseAnswer(stream, options);
}

/** The events of a streamed answer, and how they are written. */
function encoding<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  adapter: Adapter<Wire, Reply>,
  prepared: Prepared<Wire>,
  { events, headers, keeping = null }: Streaming,
) {
  const { codec } = adapter;
  const { wire, identity, inputTokensExpected } = prepared;
  const endedAtSeconds = clockedOnce();
  const encoded = (result: Result) => codec.response.encode(result, wire, endedAtSeconds());
  const save = savingOf(adapter, prepared, keeping);
  const watched = keeping?.isBackground ? endsWithFailure(events, keeping) : events;
  const rest = save ? endsAfter(watched, (result) => save(encoded(result))) : watched;
  const context = {
    requestId: call.requestId,
    identity,
    inputTokensEstimate: Math.max(1, inputTokensExpected),
    endedAtSeconds,
  };
  const encoder = codec.stream.encoder(wire, context);
  const options: SseOptions = { encoder, heartbeat_ms: dependencies.limits.heartbeat_ms, headers };
  return { rest, options, isSaved: save !== null };
}

/** Stores the answer. One that was cancelled before its end is not stored. */
function savingOf<Wire extends InferenceWire, Reply>(
  { saver }: Adapter<Wire, Reply>,
  { wire, principal }: Prepared<Wire>,
  keeping: Keeping | null,
): ((reply: Reply) => Promise<void>) | null {
  const save = saver?.(wire, { organizationId: principal.organization.id, keyId: principal.key.id }) ?? null;
  if (!keeping?.isBackground) return save;
  return async (reply) => {
    if (await keeping.finish(reply as unknown as ResponseObject)) await save?.(reply);
    else await keeping.endedBefore();
  };
}

const nothing = () => {};

/** The approximate size of the answer, in bytes. */
function sizeOf({ parts }: Result): number {
  return parts.reduce((sum, { text, logprobs }) => sum + text.length + 1024 * (logprobs?.length ?? 0), 0);
}

/** Returns the Unix seconds of its first call, each time. */
function clockedOnce(): () => number {
  let at: number | undefined;
  return () => {
    at ??= Math.floor(Date.now() / 1000);
    return at;
  };
}

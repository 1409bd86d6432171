/**
 * ANSWER: turns a run into the response that its caller reads: encoded in the protocol, stored if it is to be stored,
 * and sent. A failure before the first part is thrown, so that it has its true status.
 */
import { windowHeaders } from "../admission/refusal.ts";
import type { Call } from "../http/call.ts";
import type { Answer } from "../http/frame.ts";
import { json } from "../http/json.ts";
import { giveBackBody } from "../http/shed.ts";
import { endsAfter, primed, sseAnswer } from "../http/stream.ts";
import { isLetGo } from "../inference/let-go.ts";
import type { Result } from "../inference/result.ts";
import { collect } from "../inference/result.ts";
import type { ResponseObject } from "../protocol/openai-responses/contract.ts";
import { yieldFor } from "../time/yielding.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { isSignedIn, standingHeaders } from "./claude-code/unified.ts";
import type { Dependencies } from "./dependencies.ts";
import { endsWithFailure, inBackground } from "./kept/background.ts";
import { keptStream } from "./kept/first-client.ts";
import type { Keeping } from "./kept/keeping.ts";
import { keptWhole } from "./kept/whole.ts";
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
  if (!begun || request.stream) await keeping?.open({ stream: request.stream, headers });
  if (request.stream) return streamed(dependencies, call, adapter, prepared, { events: run.events, headers, keeping });
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
  { events, headers, keeping = null }: Streaming,
): Promise<Answer> {
  const { codec } = adapter;
  const { wire, request, identity, inputTokensExpected } = prepared;
  const endedAtSeconds = clockedOnce();
  const encoded = (result: Result) => codec.response.encode(result, wire, endedAtSeconds());
  const save = savingOf(adapter, prepared, keeping);
  const watched = keeping?.isBackground ? endsWithFailure(events, keeping) : events;
  const saved = save ? endsAfter(watched, (result) => save(encoded(result))) : watched;
  const stream = await primed(saved, dependencies.limits.first_event_hold_ms);
  // A stored answer has to be complete.
  if (!save && isLetGo(request)) giveBackBody(call);
  const context = {
    requestId: call.requestId,
    identity,
    inputTokensEstimate: Math.max(1, inputTokensExpected),
    endedAtSeconds,
  };
  const encoder = codec.stream.encoder(wire, context);
  const options = { encoder, heartbeat_ms: dependencies.limits.heartbeat_ms, headers };
  return keeping ? keptStream(call, stream, options, keeping) : sseAnswer(stream, options);
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

/**
 * ANSWER: turns a run into the response that its caller reads: encoded in the protocol, stored if it is to be stored,
 * and sent. A failure before the first part is thrown, so that it has its true status.
 */

import type { Call } from "../http/call.ts";
import type { Answer } from "../http/frame.ts";
import { json } from "../http/json.ts";
import { giveBackBody } from "../http/shed.ts";
import { endsAfter, primed, sseAnswer } from "../http/stream.ts";
import { isLetGo } from "../inference/let-go.ts";
import type { Result } from "../inference/result.ts";
import { collect } from "../inference/result.ts";
import { breather } from "../time/breather.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import type { Dependencies } from "./dependencies.ts";
import { keptStream } from "./kept/first-client.ts";
import type { Keeping } from "./kept/keeping.ts";
import { keptWhole } from "./kept/whole.ts";
import { limitHeaders } from "./limit-headers.ts";
import type { Prepared } from "./prepare.ts";
import { usageHeaders } from "./usage-headers.ts";

export async function answer<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  adapter: Adapter<Wire, Reply>,
  prepared: Prepared<Wire>,
  { run, keeping = null }: { run: Run; keeping?: Keeping | null },
): Promise<Answer> {
  const { operation, codec, saver } = adapter;
  const { wire, request, principal } = prepared;
  const headers = {
    ...usageHeaders(run.grant.windows, run.grant.source),
    ...limitHeaders(operation, run.rates, Date.now()),
  };
  await keeping?.open({ stream: request.stream, headers });
  if (request.stream) return streamed(dependencies, call, adapter, prepared, { events: run.events, headers, keeping });
  const save = saver?.(wire, principal.organization.id);
  const replyOf = async (result: Result) => {
    const reply = codec.response.encode(result, wire, clockedOnce()());
    await save?.(reply);
    return reply;
  };
  if (keeping) return keptWhole(run.events, headers, keeping, replyOf);
  const result = await collect(run.events);
  const size = sizeOf(result);
  await breather(size);
  const reply = await replyOf(result);
  await breather(size);
  return json(200, reply, headers);
}

/** The events of an answer, and the headers before them. */
export interface Streaming {
  events: Run["events"];
  headers: Record<string, string>;
  keeping?: Keeping | null;
}

export async function streamed<Wire extends InferenceWire, Reply>(
  dependencies: Dependencies,
  call: Call,
  { codec, saver }: Adapter<Wire, Reply>,
  { wire, request, principal, identity, inputTokensExpected }: Prepared<Wire>,
  { events, headers, keeping = null }: Streaming,
): Promise<Answer> {
  const endedAtSeconds = clockedOnce();
  const encoded = (result: Result) => codec.response.encode(result, wire, endedAtSeconds());
  const save = saver?.(wire, principal.organization.id);
  const saved = save ? endsAfter(events, (result) => save(encoded(result))) : events;
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

/** Roughly, in bytes. */
function sizeOf({ parts }: Result): number {
  return parts.reduce((sum, { text, logprobs }) => sum + text.length + 1024 * (logprobs?.length ?? 0), 0);
}

/** Unix seconds of the first time that it is asked, by whoever tells it. */
function clockedOnce(): () => number {
  let at: number | undefined;
  return () => {
    at ??= Math.floor(Date.now() / 1000);
    return at;
  };
}

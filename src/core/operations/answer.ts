/**
 * ANSWER: turns a run into the response that its caller reads: encoded in the protocol, stored if it is to be stored,
 * and sent. A failure before the first part of the answer is thrown, so that its status can still be sent.
 */
import type { Call } from "../http/call.ts";
import type { HttpAnswer } from "../http/frame.ts";
import { json } from "../http/json.ts";
import { sseAnswer } from "../http/stream.ts";
import { collect, type Result } from "../inference/result.ts";
import { yieldFor } from "../time/turns.ts";
import type { Run } from "../usage/run.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { admittedHeaders } from "./admitted.ts";
import { type Answering, encoding, type Prepared, replies, saverOf, untilFirstPart } from "./answering.ts";
import { isSignedIn, standingHeaders } from "./claude-code.ts";
import type { Dependencies } from "./dependencies.ts";
import type { AnswerSink } from "./sink.ts";

export async function answer<Wire extends InferenceWire, Reply>(
  { limits }: Dependencies,
  call: Call,
  adapter: Adapter<Wire, Reply>,
  prepared: Prepared<Wire>,
  { run, sink }: { run: Run; sink: AnswerSink | null },
): Promise<HttpAnswer> {
  const { operation } = adapter;
  const headers = {
    ...admittedHeaders(operation, run),
    ...(operation === "messages" && isSignedIn(call.request.headers) ? standingHeaders(run.grant) : {}),
  };
  const answering = { call, adapter, prepared, events: run.events, headers, limits };
  if (sink) return sink.answer(answering);
  return prepared.request.stream ? streamed(answering) : whole(answering);
}

async function whole<Wire extends InferenceWire, Reply>(answering: Answering<Wire, Reply>): Promise<HttpAnswer> {
  const result = await collect(answering.events);
  const size = sizeOf(result);
  await yieldFor(size);
  const reply = await replies(answering, saverOf(answering))(result);
  await yieldFor(size);
  return json(200, reply, answering.headers);
}

export async function streamed<Wire extends InferenceWire, Reply>(
  answering: Answering<Wire, Reply>,
): Promise<HttpAnswer> {
  const save = saverOf(answering);
  const { rest, options } = encoding(answering, save);
  return sseAnswer(await untilFirstPart(answering, rest, save !== null), options);
}

/** The approximate size of the answer, in bytes. */
function sizeOf({ parts }: Result): number {
  return parts.reduce((sum, { text, logprobs }) => sum + text.length + 1024 * (logprobs?.length ?? 0), 0);
}

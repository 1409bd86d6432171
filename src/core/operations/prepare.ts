/**
 * PREPARE: decides whether a request may run, and under which conditions. It makes the checks in the decided order, up
 * to the point where nanos would be held, and throws the Fault of a refusal. For a request that repeats an earlier one,
 * it returns the earlier answer.
 */

import { activePlan, outputTokensAllowed, requireContext } from "../admission/allowance.ts";
import type { Principal } from "../auth/verdict.ts";
import type { JsonBody } from "../body/read.ts";
import type { Call } from "../http/call.ts";
import { reserve } from "../http/shed.ts";
import { bytesOf, leaveOut, summaryTokens } from "../inference/compaction.ts";
import { withoutLostHints } from "../inference/hints.ts";
import { refuseImages } from "../inference/image-url.ts";
import { mediaOf } from "../inference/media.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { beyondAll } from "../protocol/engine-bounds.ts";
import { assertCapable, type CatalogModel } from "../routing/catalog.ts";
import { allowedModel } from "../routing/model-names.ts";
import { stepwise } from "../time/turns.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import { commonParts } from "./admitted.ts";
import type { Prepared } from "./answering.ts";
import type { Dependencies } from "./dependencies.ts";
import type { keyHeader } from "./idempotency.ts";
import type { AnswerSink, EarlierAnswer } from "./sink.ts";

/** An authorized inference request with its checked body. */
export interface InferenceInput<Wire> {
  principal: Principal;
  body: JsonBody<Wire>;
  headers?: { [keyHeader]?: string };
}

/** A request that repeats an earlier one. */
export interface Repeated<Wire> {
  earlier: EarlierAnswer;
  /** The part of the request's body that is needed to encode the answer. */
  wire: Wire;
}

/** Only a request whose answer is kept can repeat another. */
type RepeatedIf<Sink, Wire> = Sink extends AnswerSink ? Repeated<Wire> : never;

export async function prepare<Wire extends InferenceWire, Reply, Sink extends AnswerSink | null>(
  dependencies: Dependencies,
  call: Call,
  { principal, body }: InferenceInput<Wire>,
  adapter: Adapter<Wire, Reply>,
  sink: Sink,
): Promise<Prepared<Wire> | RepeatedIf<Sink, Wire>> {
  const { operation, codec } = adapter;
  const catalog = dependencies.catalog();
  const model = allowedModel(catalog, body.value.model, principal.key.models, Date.now());
  const resolved = adapter.resolve && (await adapter.resolve(body.value, principal));
  const wire = resolved?.wire ?? body.value;
  const askedBytes = body.bytes + (resolved?.bytes ?? 0);
  reserve(dependencies, call, askedBytes);
  const steps = codec.request.decodingSteps?.(wire);
  const decoded = steps ? await stepwise(steps, askedBytes, call.pause) : codec.request.decode(wire);
  dependencies.bounds.garbage.translated(askedBytes);
  await call.pause(askedBytes);
  const beyond = beyondAll(decoded);
  if (beyond) throw beyond;
  assertCapable(model, decoded);
  refuseImages(decoded, dependencies.images());
  const request = withoutLostHints(decoded, model);
  request.model = model.id;
  call.requested({ model: model.id, stream: request.stream });
  const earlier = sink && (await sink.begin());
  if (earlier) return { earlier, wire: codec.request.remainder(wire) } as RepeatedIf<Sink, Wire>;

  const plan = activePlan(catalog.plans, principal.organization);
  const inputBytes = request.compaction ? await fittedBytes(dependencies, call, model, request) : askedBytes;
  const inputTokens = dependencies.inputEstimate.tokens(model, request, inputBytes);
  const media = mediaOf(request);
  const expected = dependencies.inputEstimate.expected(model, media, inputBytes);
  requireContext(model, request.compaction ? expected : inputTokens);
  return {
    ...commonParts(dependencies, call, { principal, operation, idPrefix: adapter.idPrefix, model: body.value.model }),
    wire: codec.request.remainder(wire),
    request,
    model,
    plan,
    inputTokens,
    media,
    inputBytes,
    own: body.own,
    inputTokensExpected: Math.min(expected, inputTokens),
    outputTokensAllowed: Math.max(
      outputTokensAllowed(model, inputTokens),
      request.compaction ? summaryTokens(model) : 1,
    ),
  };
}

/**
 * The size of a conversation that is to be summarized. Turns that are not expected to fit beside the summary are left
 * out first; the engine may refuse what remains, and more is left out then (usage/compacting.ts).
 */
async function fittedBytes(
  { inputEstimate }: Dependencies,
  { pause }: Call,
  model: CatalogModel,
  request: InferenceRequest,
): Promise<number> {
  const bytes = bytesOf(request.turns);
  const expected = inputEstimate.expected(model, mediaOf(request), bytes);
  const room = model.contextTokens - summaryTokens(model);
  await pause(bytes);
  if (expected <= room) return bytes;
  leaveOut(request, room / expected);
  return bytesOf(request.turns);
}

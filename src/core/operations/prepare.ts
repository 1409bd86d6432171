/**
 * PREPARE: decides whether a request may run, and under which conditions. It makes the checks in the decided order, up
 * to the hold of the estimated cost, and throws the Fault of a refusal. For a request that repeats an earlier one, it
 * returns the earlier answer.
 */

import type { TSchema } from "typebox";
import { activePlan, outputTokensAllowed, requireContext } from "../admission/allowance.ts";
import type { Principal } from "../auth/verdict.ts";
import { BodyItems } from "../body/body-items.ts";
import { type JsonBody, type ReadBody, readJson } from "../body/read.ts";
import { reserve, reserveAnswer, takesTurns } from "../http/bounds.ts";
import type { Call } from "../http/call.ts";
import { mediaOf, refuseImages } from "../inference/media.ts";
import type { Model } from "../inference/model.ts";
import { withoutLostHints } from "../inference/request.ts";
import { betasHeader } from "../protocol/anthropic-messages/codec.ts";
import type { UncheckedItems } from "../protocol/contract.ts";
import { beyondAll } from "../protocol/engine-options.ts";
import {
  allowedModel,
  answeringModelOrNull,
  assertCapable,
  type Catalog,
  type CatalogModel,
  retirementHeadersOf,
  smallestCap,
} from "../routing/catalog.ts";
import type { Operation } from "../store/ledger.ts";
import { after, type Soon, stepwise } from "../time/turns.ts";
import type { RunRequest } from "../usage/record.ts";
import type { Adapter, InferenceWire } from "./adapter.ts";
import type { AnswerSink, EarlierAnswer, Prepared } from "./answer.ts";
import type { Dependencies } from "./dependencies.ts";
import { keyHeader } from "./idempotency.ts";
import type { RequestBody } from "./operation.ts";

export interface InferenceInput<Wire> {
  principal: Principal;
  body: JsonBody<Wire>;
  headers?: { [keyHeader]?: string };
}

interface Repeated<Wire> {
  earlier: EarlierAnswer;
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
  const model = allowedModel(catalog, body.value.model, principal.key, Date.now());
  const resolved = adapter.resolve && (await adapter.resolve(body.value, principal));
  const wire = resolved?.wire ?? body.value;
  const askedBytes = body.bytes + (resolved?.bytes ?? 0);
  reserve(dependencies, call, askedBytes);
  const steps = codec.request.decodingSteps?.(wire);
  const decoded = steps ? await stepwise(steps, askedBytes, call.pause) : codec.request.decode(wire);
  dependencies.bounds.garbage.translated(askedBytes);
  const pause = call.pause(askedBytes);
  if (pause) await pause;
  const beyond = beyondAll(decoded);
  if (beyond) throw beyond;
  assertCapable(model, decoded);
  refuseImages(decoded, dependencies.images());
  const request = withoutLostHints(decoded, model);
  request.model = model.id;
  // Clients probe with a cap of 1. It is held and counted by the largest cap that an engine of the model needs.
  if (request.outputTokens_max) request.outputTokens_max = Math.max(request.outputTokens_max, smallestCap(model));
  // Only engines of these dialects are sent `written`, which would keep the parsed body in memory.
  if (!model.routes.some(({ upstream }) => upstream.dialect?.wholeMessages)) delete request.written;
  call.requested({ model: model.id, stream: request.stream });
  const earlier = sink && (await sink.begin());
  if (earlier) return { earlier, wire: codec.request.remainder(wire) } as RepeatedIf<Sink, Wire>;

  const plan = activePlan(catalog.plans, principal.organization);
  const fitted = request.compaction ? await dependencies.fitted(call, model, request) : null;
  const inputBytes = fitted ?? askedBytes;
  // The hold counts white space too. The estimate that is charged if the engine reports no usage leaves it out, and so
  // does the learning of estimates: blanks cost a caller nothing.
  const blank_bytes = fitted === null ? body.blank_bytes : 0;
  const media = mediaOf(request);
  const inputTokens = dependencies.inputEstimate.tokens(model, request, inputBytes, media);
  const expected = dependencies.inputEstimate.expected(model, media, inputBytes - blank_bytes);
  const refusedBy = request.compaction ? expected : inputTokens;
  requireContext(model, dependencies.inputEstimate.unlearned(refusedBy, inputBytes, media));
  return {
    ...commonParts(dependencies, call, { principal, operation, idPrefix: adapter.idPrefix, model: body.value.model }),
    isRepeatable: sink?.isRepeatable ?? false,
    fetched: sink?.fetched ?? null,
    wire: codec.request.remainder(wire),
    request,
    model,
    plan,
    outputTokensAsked: decoded.outputTokens_max,
    inputTokens,
    media,
    inputBytes,
    blank_bytes,
    own: body.own,
    inputTokensExpected: Math.min(expected, inputTokens),
    outputTokensAllowed: outputTokensAllowed(model, inputTokens),
  };
}

interface Checking<Wire> {
  /**
   * Checks the body. Throws the Fault of the first offence. `extraParams`: fields that the model accepts beyond the
   * contract. `unchecked`: the items of lists that have to be checked, null for all. `bounds`: the model's setting of
   * that name.
   */
  validate(
    body: unknown,
    extraParams: readonly string[],
    unchecked: UncheckedItems | null,
    bounds: Model["bounds"],
  ): Wire;
  /** The members of the body whose items are looked up among those of earlier requests; none by default. */
  repeated?: readonly string[];
  /** Whether a body asks for a stream. By default: if its `stream` is true. */
  isStreamed?(body: { stream?: unknown }): boolean;
}

/** The body of an inference request: read within bounds, parsed once, and checked against its contract. */
export function inferenceBody<Wire>(
  schema: TSchema,
  { validate, repeated = [], isStreamed = ({ stream }) => stream === true }: Checking<Wire>,
): RequestBody<JsonBody<Wire>> {
  return {
    schema,
    read(dependencies, call, organization) {
      const pause = takesTurns(dependencies, call);
      const hold = (held: number) => reserve(dependencies, call, held);
      const isKeyed = call.request.headers.has(keyHeader);
      const { items: cache } = dependencies.bounds;
      const isLookedUp = repeated.length > 0 && organization.keepsContent && cache.bytes_max > 0;
      const itemsOf = isLookedUp ? () => new BodyItems(cache, `${organization.id} ${call.route}`, repeated) : null;
      const checked = (read: ReadBody): Soon<JsonBody<Wire>> => {
        const { value, unseen, keepItems, ...body } = read;
        if (body.own) call.begins(body.own);
        const { extraParams = none, bounds } = noteRequested(call, dependencies.catalog(), value, isStreamed) ?? {};
        return after(pause(body.bytes), () => {
          const wire = validate(value, extraParams, unseen, bounds);
          keepItems();
          return after(pause(body.bytes), () => ({ value: wire, ...body }));
        });
      };
      const read = readJson(call.request, dependencies.limits, hold, { pause, hasDigest: isKeyed, itemsOf });
      return read instanceof Promise ? read.then(checked) : checked(read);
    },
  };
}

/**
 * Records the requested model, if it exists, and whether a stream is asked for, before the body is checked, because the
 * receipt of a refusal has them. Also sets the headers of a model that is to be retired. Returns the model.
 */
function noteRequested(
  call: Call,
  catalog: Catalog,
  body: unknown,
  isStreamed: (body: { stream?: unknown }) => boolean,
): CatalogModel | null {
  if (typeof body !== "object" || body === null) return null;
  const { model } = body as { model?: unknown };
  const stream = isStreamed(body);
  if (typeof model === "string") call.announces(retirementHeadersOf(catalog, model));
  const answering = typeof model === "string" ? answeringModelOrNull(catalog, model, Date.now()) : null;
  call.requested(answering ? { model: answering.id, stream } : { stream });
  return answering;
}

const none: readonly string[] = [];

/** The headers in which clients name their session: Claude Code, Codex, opencode and others. */
const sessionHeaders = ["x-claude-code-session-id", "session-id", "session_id", "x-session-affinity"] as const;

function sessionOf(headers: Headers): string | null {
  for (const name of sessionHeaders) {
    const value = headers.get(name);
    if (value) return value;
  }
  return null;
}

interface Asking {
  principal: Principal;
  operation: Operation;
  idPrefix: string;
  /** The model's id as the request names it. */
  model: string;
}

type CommonParts = Required<
  Pick<RunRequest, "requestId" | "principal" | "operation" | "identity" | "session" | "betas" | "holdAnswer">
>;

/**
 * The part of a request's record that all operations share. A function of its own, because its closure lives as long as
 * the answer: made elsewhere, it would keep all variables around it, and so the body, in memory.
 */
export function commonParts(
  dependencies: Dependencies,
  call: Call,
  { principal, operation, idPrefix, model }: Asking,
): CommonParts {
  return {
    requestId: call.requestId,
    principal,
    operation,
    identity: {
      responseId: idPrefix + dependencies.newId(),
      createdAtSeconds: Math.floor(Date.now() / 1000),
      model,
    },
    session: sessionOf(call.request.headers),
    betas: call.request.headers.get(betasHeader),
    holdAnswer: (bytes) => reserveAnswer(dependencies, call, bytes),
  };
}

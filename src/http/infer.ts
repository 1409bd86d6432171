/**
 * THE SPINE: one function is the whole of an inference request, top to bottom, for every protocol; nothing else calls
 * these in order. What differs between protocols is in the adapter.
 */
import { asFault, Fault } from "../inference/fault.ts";
import { withoutLostHints } from "../inference/hints.ts";
import type { Model } from "../inference/model.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { collect, type Result } from "../inference/result.ts";
import type { CallerCodec } from "../protocol/codec.ts";
import { allowedModel, assertCapable, type Catalog } from "../routing/catalog.ts";
import { ahead, type Opened, open } from "../routing/open.ts";
import type { Organization } from "../store/directory.ts";
import type { Operation } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import type { RateReadings } from "../store/rates.ts";
import { type Ending, metered } from "../usage/meter.ts";
import { priceOf } from "../usage/price.ts";
import { admitted } from "./admitted.ts";
import { readJson } from "./body.ts";
import { breather, breathing } from "./breather.ts";
import type { Call } from "./call.ts";
import type { House } from "./house.ts";
import { json } from "./json.ts";
import { limitHeaders } from "./limit-headers.ts";
import { decided } from "./refused.ts";
import { endsAfter, primed, replayed, sseResponse } from "./stream.ts";
import { usageHeaders } from "./usage-headers.ts";

export interface Adapter<Wire extends { model: string; stream?: boolean | null }, Reply> {
  operation: Operation;
  /** Prefix of the response's id, such as `chatcmpl-`. */
  idPrefix: string;
  codec: CallerCodec<Wire, Reply>;
  /** The body, checked against the contract; throws the Fault of its first offence. */
  validate(body: unknown, extraParams: readonly string[]): Wire;
  /** The request with what is stored in place of what refers to it; `bytes` is the size of that. */
  resolve?(wire: Wire, organizationId: string): Promise<{ wire: Wire; bytes: number }>;
  /** What has the whole answer before its caller has the end of it; null where it is not to be kept. It never throws. */
  keeper?(wire: Wire, organizationId: string): ((answer: Reply) => Promise<void>) | null;
}

export function infer<Wire extends { model: string; stream?: boolean | null }, Reply>(
  house: House,
  call: Call,
  adapter: Adapter<Wire, Reply>,
): Promise<Response> {
  return decided(house, call, adapter.operation, () => spine(house, call, adapter));
}

async function spine<Wire extends { model: string; stream?: boolean | null }, Reply>(
  house: House,
  call: Call,
  adapter: Adapter<Wire, Reply>,
): Promise<Response> {
  const { operation, codec } = adapter;
  call.keepOpen();
  const principal = await admitted(house, call, "inference:create");

  const body = await readJson(call.request, house.limits);
  const catalog = house.catalog();
  noteAsked(call, catalog, body.value);
  await breather(body.bytes);
  const said = adapter.validate(body.value, extraParamsOf(catalog, body.value));
  await breather(body.bytes);
  const model = allowedModel(catalog, said.model, principal.key.allowedModels);
  const organizationId = principal.organization.id;
  const { wire, bytes: looked_up_bytes } = (await adapter.resolve?.(said, organizationId)) ?? { wire: said, bytes: 0 };
  const bytes = body.bytes + looked_up_bytes;
  const steps = codec.request.decodingSteps?.(wire);
  const asked = steps ? await breathing(steps, bytes) : codec.request.decode(wire);
  await breather(bytes);
  assertCapable(model, asked);
  const request = withoutLostHints(asked, model);
  Object.assign(call.notes, { model: model.id, stream: request.stream });
  const plan = planOf(catalog, principal.organization);
  const inputTokens = house.inputEstimate.tokens(model, request, bytes);
  refuseHopelessInput(model, inputTokens);

  const identity = {
    responseId: adapter.idPrefix + house.newId(),
    createdAtSeconds: Math.floor(Date.now() / 1000),
    model: model.id,
  };
  const allowed = roomFor(model, inputTokens);
  const capped = withCap(request, allowed);
  const openWith = (held: number) => open(model, capped, { allowed, held }, identity, call.signal, house.routing());
  const early: { opened?: Opened } = {};

  call.watchClient();
  const entry = {
    ...{ requestId: call.requestId, principal, operation, request, model, plan, inputTokens },
    rateHeaders: (readings: RateReadings) => limitHeaders(operation, readings, Date.now()),
    // Where room is ample the engine thinks while the ledger decides; nothing leaves before the grant.
    ahead: () => {
      early.opened = ahead(openWith(allowed));
    },
  };
  const reservation = await house.admission.enter(entry).catch((refused: unknown) => {
    call.end(asFault(refused));
    void early.opened?.events.return();
    throw refused;
  });
  const { grant } = reservation;
  call.notes.source = grant.source;
  house.metrics.decision("granted", grant.source);
  reservation.signal.addEventListener("abort", () => call.end(reservation.signal.reason), { once: true });

  const { route, events: upstream, windowTokens } = early.opened ?? openWith(grant.outputTokens);
  let firstPartMs: number | null = null;

  const settle = (ending: Ending) => {
    const { usage, outcome, stoppedBy, errorCode } = ending;
    if (usage.source === "reported") house.inputEstimate.observe(model, bytes, request, usage);
    Object.assign(call.notes, { outcome, usage, firstPartMs: firstPartMs ?? undefined });
    house.metrics.inference({ operation, model: model.id, outcome, usage, firstPartMs });
    reservation.settle({
      usage,
      units: priceOf(usage, model.prices),
      outcome,
      stoppedBy,
      errorCode,
      route: { upstream: route.upstream.name, attempts: 1, firstPartMs },
    });
  };
  const metering = metered({
    events: upstream,
    hold: reservation,
    model: model.id,
    // A client that left while the ledger decided: its engine is never asked, and reads nothing.
    inputTokensEstimate: call.signal.aborted && !early.opened ? 0 : inputTokens,
    calibration: house.outputCalibration,
    windowTokens,
    callerLeft: () => call.left,
    settle,
  });

  const endedAtSeconds = clockedOnce();
  const answerOf = (result: Result) => codec.response.encode(result, wire, endedAtSeconds());
  const keep = adapter.keeper?.(wire, organizationId);
  const events = keep && request.stream ? endsAfter(metering, (result) => keep(answerOf(result))) : metering;
  const headers = {
    ...usageHeaders(grant.windows, grant.source),
    ...limitHeaders(operation, reservation.rates, Date.now()),
  };
  const stream = await primed(events, request.stream ? house.limits.first_event_hold_ms : Number.POSITIVE_INFINITY);
  firstPartMs = Math.round(call.elapsedMs());
  if (!request.stream) {
    const answer = answerOf(await collect(replayed(stream)));
    await keep?.(answer);
    return json(200, answer, headers);
  }

  call.streaming = true;
  return sseResponse(stream, {
    encoder: codec.stream.encoder(wire, {
      requestId: call.requestId,
      identity,
      inputTokensEstimate: Math.max(1, inputTokens),
      endedAtSeconds,
    }),
    heartbeat_ms: house.limits.heartbeat_ms,
    headers,
    left: () => call.leave(),
    closed: () => house.closed(call, 200),
  });
}

/** Unix seconds of the first time that it is asked, by whoever tells it. */
function clockedOnce(): () => number {
  let at: number | undefined;
  return () => {
    at ??= Math.floor(Date.now() / 1000);
    return at;
  };
}

/** What a refusal's receipt can say before the body is judged: a model that there is, and whether it was to stream. */
function noteAsked({ notes }: Call, catalog: Catalog, body: unknown): void {
  if (typeof body !== "object" || body === null) return;
  const { model, stream } = body as { model?: unknown; stream?: unknown };
  if (typeof model === "string" && catalog.models.has(model)) notes.model = model;
  notes.stream = stream === true;
}

/** The catalog's `extra_params` of the model that the body names, if it names one. */
function extraParamsOf(catalog: Catalog, body: unknown): readonly string[] {
  const model = (body as { model?: unknown } | null)?.model;
  return (typeof model === "string" && catalog.models.get(model)?.extraParams) || [];
}

function planOf(catalog: Catalog, organization: Pick<Organization, "plan">): Plan {
  const plan = organization.plan === null ? undefined : catalog.plans.get(organization.plan);
  if (plan) return plan;
  throw new Fault("no_active_plan", "The organization has no active plan. Ask your administrator to assign one.");
}

/** An estimate refuses only what is far out; of what is near, the engine has the last word. */
function refuseHopelessInput(model: Model, inputTokens: number): void {
  if (inputTokens < 2 * model.contextTokens) return;
  throw new Fault(
    "context_length_exceeded",
    `The input, about ${inputTokens} tokens, does not fit the model's context window of ${model.contextTokens}. Shorten the messages.`,
    { param: "messages" },
  );
}

/** Output tokens that the model's own cap and what its context leaves allow. */
function roomFor(model: Model, inputTokens: number): number {
  return Math.min(model.outputTokensMax, Math.max(1, model.contextTokens - inputTokens));
}

/** A cap above that is lowered; the answer then ends with `length`. */
function withCap(request: InferenceRequest, room: number): InferenceRequest {
  if (request.outputTokensMax === undefined) return request;
  return { ...request, outputTokensMax: Math.min(request.outputTokensMax, room) };
}

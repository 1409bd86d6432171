/** The catalog in force: every active model and the engines that serve it. Immutable; a reload makes a new one. */
import { Fault } from "../inference/fault.ts";
import type { Model, Retirement } from "../inference/model.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { UpstreamCodec } from "../protocol/codec.ts";
import type { Dialect } from "../protocol/dialect.ts";
import type { Plan } from "../store/plan.ts";
import { upstreamCodecs } from "../upstream/codecs.ts";
import type { Capacity, Upstream, UpstreamTimeouts } from "../upstream/target.ts";

export interface Route {
  upstream: Upstream;
  /** The engine's name for the model. */
  model: string;
  /** Routes with a lower number are tried first. */
  priority: number;
  weight: number;
  /** False if the engine's chat template accepts instructions only at the start of a conversation. */
  instructionsInside?: boolean;
  /** Whether the engine can continue an answer whose beginning it is given. */
  continues?: boolean;
  /** The route's own context, if it is smaller than the model's. */
  contextTokens?: number;
  /** The route's own timeouts, in place of the upstream's. */
  timeouts?: UpstreamTimeouts;
  /** The route's own capacity for this process, in place of the upstream's. */
  capacity?: Capacity;
}

export function contextTokensOf(model: Pick<Model, "contextTokens">, route: Route): number {
  return Math.min(model.contextTokens, route.contextTokens ?? model.contextTokens);
}

export function timeoutsOf(route: Route): UpstreamTimeouts {
  return route.timeouts ?? route.upstream.timeouts;
}

export interface CatalogModel extends Model {
  routes: Route[];
  /** Other names that requests may use. */
  aliases?: readonly string[];
  retirement?: Retirement;
}

export interface Catalog {
  models: ReadonlyMap<string, CatalogModel>;
  /** The model's id by each alias. Absent: there are none. */
  aliases?: ReadonlyMap<string, string>;
  plans: ReadonlyMap<string, Plan>;
}

/**
 * Returns a function that makes the current catalog, and returns the same object while nothing changes, since a request
 * reads it some five times.
 */
export function latestCatalog(): (configured: Catalog, plans: Catalog["plans"]) => Catalog {
  let last: Catalog | null = null;
  return (configured, plans) => {
    if (last === null || last.models !== configured.models || last.plans !== plans) last = { ...configured, plans };
    return last;
  };
}

/** Throws 400 if the model, or every engine of it, lacks a feature that the request asks for. */
export function assertCapable(model: CatalogModel, request: InferenceRequest, codecOf?: CodecOf): void {
  for (const need of request.needs) {
    if (model.capabilities.has(need.capability)) continue;
    throw new Fault(
      "unsupported_feature",
      `The model '${model.id}' does not support ${capabilityNames[need.capability]}, which '${need.param}' asks for. Remove the field, or choose a model that has it (GET /v1/models/{id} lists capabilities).`,
      { param: need.param },
    );
  }
  let first: Fault | null = null;
  for (const route of model.routes) {
    const refusal = refusalAt(route, request, codecOf);
    if (!refusal) return;
    first ??= refusal;
  }
  if (first) throw first;
}

/** The refusal if the engine's protocol cannot express the request; else null. */
export function refusalAt(route: Route, request: InferenceRequest, codecOf?: CodecOf): Fault | null {
  return codecAt(route, codecOf).request.refusal(request, route.upstream.dialect);
}

/** The codec for engines of a dialect, for operations whose engines are not asked in the protocol of their chat. */
export type CodecOf = (dialect: Dialect | undefined) => UpstreamCodec;

export function codecAt({ upstream }: Route, codecOf?: CodecOf): UpstreamCodec {
  return codecOf?.(upstream.dialect) ?? upstreamCodecs[upstream.protocol];
}

const capabilityNames = {
  tools: "tools",
  parallel_tools: "parallel tool calls",
  vision: "image input",
  reasoning: "reasoning effort",
  structured_output: "structured output",
  logprobs: "log probabilities",
  files: "file input",
  audio_input: "audio input",
} as const;

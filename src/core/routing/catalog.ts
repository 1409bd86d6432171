/**
 * Finds the model that a name means: an id or alias of the catalog, or an id that has been retired. A request may use
 * any of them; all code after this file knows only the id.
 *
 * Also defines the catalog in force: every active model and the engines that serve it. It is immutable; a reload makes
 * a new one.
 */
import { Fault } from "../inference/fault.ts";
import type { Model, ModelKind, Retirement } from "../inference/model.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { UpstreamCodec } from "../protocol/codec.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { compact } from "../protocol/json.ts";
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
  /** Whether the engine can continue an answer if the request contains the answer's beginning. */
  continues?: boolean;
  /** The route's own context length in tokens, if it is smaller than the model's. */
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
  retirement?: Retirement;
}

export interface Catalog {
  models: ReadonlyMap<string, CatalogModel>;
  /** The key is an alias, the value is the id of its model. Absent if there are no aliases. */
  aliases?: ReadonlyMap<string, string>;
  plans: ReadonlyMap<string, Plan>;
}

/**
 * Returns a function that makes the current catalog. While nothing changes, the function returns the same object, since
 * a request reads the catalog some five times.
 */
export function latestCatalog(): (configured: Catalog, plans: Catalog["plans"]) => Catalog {
  let last: Catalog | null = null;
  return (configured, plans) => {
    if (last === null || last.models !== configured.models || last.plans !== plans) last = { ...configured, plans };
    return last;
  };
}

/** Throws 400 if the model, or every engine that serves it, lacks a feature that the request asks for. */
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

/** The smallest cap on output tokens that all of the model's engines take. */
export function smallestCap({ routes }: CatalogModel): number {
  return Math.max(...routes.map(smallestCapAt));
}

export function smallestCapAt({ upstream: { dialect, protocol } }: Route): number {
  return dialect?.cap_min[protocol] ?? 1;
}

/** The refusal if the engine's protocol cannot express the request; else null. */
export function refusalAt(route: Route, request: InferenceRequest, codecOf?: CodecOf): Fault | null {
  return codecAt(route, codecOf).request.refusal(request, route.upstream.dialect);
}

/**
 * Returns the codec for engines of a dialect. An operation passes such a function if it does not use the codec of the
 * upstream's chat `protocol`.
 */
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

/** Returns a map: the key is an alias, the value is the id of its model. */
export function aliasesOf(models: Iterable<CatalogModel>): Map<string, string> {
  const ids = new Map<string, string>();
  for (const { id, aliases = [] } of models) for (const alias of aliases) ids.set(alias, id);
  return ids;
}

/** The model with this id or alias, retired or not. */
function modelNamed({ models, aliases }: Catalog, name: string): CatalogModel | undefined {
  return models.get(name) ?? models.get(aliases?.get(name) ?? "");
}

/** The model that answers requests for this name at this time. Throws 404 if there is none. `now_ms` is since the epoch. */
export function answeringModel(catalog: Catalog, name: string, now_ms: number): CatalogModel {
  const named = modelNamed(catalog, name);
  if (!named) throw notFound(name);
  let model = named;
  while (isRetired(model, now_ms)) {
    const next = model.retirement?.redirects ? replacementOf(catalog, model) : undefined;
    if (!next) throw retired(catalog, name, model, now_ms);
    model = next;
  }
  return model;
}

/**
 * Returns the model that answers requests for this name. Throws 404 if there is none, and 403 if the key may not use it.
 * `now_ms` is since the epoch.
 */
export function allowedModel(
  catalog: Catalog,
  name: string,
  key: AllowedModels,
  now_ms: number,
  kind: ModelKind = "chat",
): CatalogModel {
  const model = answeringModel(catalog, name, now_ms);
  if (!isAllowed(model, key)) {
    throw new Fault(
      "model_not_allowed",
      `This API key may not use the model '${model.id}'. Use one of the models it was created for.`,
      {
        param: "model",
      },
    );
  }
  requireKind(model, kind);
  return model;
}

/** The path for requests to each kind of model. */
const served: Record<ModelKind, string> = {
  chat: "/v1/chat/completions",
  completion: "/v1/completions",
  embedding: "/v1/embeddings",
  rerank: "/v1/rerank",
};

function requireKind({ id, kind = "chat" }: CatalogModel, asked: ModelKind): void {
  if (kind === asked) return;
  throw new Fault(
    "unsupported_feature",
    `The model '${id}' is of the kind '${kind}', which '${served[kind]}' serves. Send the request there, or choose a model of the kind '${asked}' (GET /v1/models/{id} says the kind).`,
    { param: "model" },
  );
}

/**
 * The headers that announce the retirement of the model with this name, whether it is still served or not; none if it
 * is not retired.
 */
export function retirementHeadersOf(catalog: Catalog, name: string): Record<string, string> {
  const retirement = modelNamed(catalog, name)?.retirement;
  return retirement ? retirementHeaders(retirement) : noHeaders;
}

/** The same as `answeringModel`, but returns null instead of throwing. */
export function answeringModelOrNull(catalog: Catalog, name: string, now_ms: number): CatalogModel | null {
  try {
    return answeringModel(catalog, name, now_ms);
  } catch (thrown) {
    if (thrown instanceof Fault) return null;
    throw thrown;
  }
}

export interface ServedName {
  name: string;
  model: CatalogModel;
}

/** Every id that is not retired, each followed by its aliases. `now_ms` is since the epoch. */
export function servedNames({ models }: Catalog, now_ms: number): ServedName[] {
  return [...models.values()].flatMap((model) =>
    isRetired(model, now_ms) ? [] : [model.id, ...(model.aliases ?? [])].map((name) => ({ name, model })),
  );
}

/** The models that a key may use: those that are in both lists. A list that is null or absent allows all models. */
export interface AllowedModels {
  readonly models: readonly string[] | null;
  readonly membershipModels?: readonly string[] | null;
}

/**
 * Whether a key may use the model. Its lists may name the model's id or an alias: they may have been made when the alias
 * was the id.
 */
export function isAllowed({ id, aliases = [] }: CatalogModel, key: AllowedModels): boolean {
  const isIn = (list: readonly string[]) => list.includes(id) || aliases.some((alias) => list.includes(alias));
  return [key.models, key.membershipModels ?? null].every((list) => list === null || isIn(list));
}

function isRetired({ retirement }: CatalogModel, now_ms: number): boolean {
  return retirement !== undefined && now_ms >= retirement.at_ms;
}

function replacementOf({ models }: Catalog, { retirement }: CatalogModel): CatalogModel | undefined {
  return models.get(retirement?.replacedBy ?? "");
}

/** The first model in the chain of the model's replacements that is still served. */
function servedReplacementOf(catalog: Catalog, model: CatalogModel, now_ms: number): CatalogModel | undefined {
  let next = replacementOf(catalog, model);
  while (next && isRetired(next, now_ms)) next = replacementOf(catalog, next);
  return next;
}

const noHeaders = {};

/** The retirement headers: `deprecation` (RFC 9745), `sunset` (RFC 8594) and a link to the successor (RFC 5829). */
function retirementHeaders({ at_ms, deprecatedAt_ms, replacedBy }: Retirement): Record<string, string> {
  const successor = replacedBy && `</v1/models/${encodeURIComponent(replacedBy)}>; rel="successor-version"`;
  return compact({
    deprecation: `@${Math.floor(deprecatedAt_ms / 1000)}`,
    sunset: new Date(at_ms).toUTCString(),
    link: successor,
  });
}

function notFound(name: string): Fault {
  return new Fault(
    "model_not_found",
    `The model '${excerpt(name)}' does not exist. GET /v1/models lists the models that do.`,
    { param: "model" },
  );
}

function retired(catalog: Catalog, name: string, model: CatalogModel, now_ms: number): Fault {
  const day = new Date(model.retirement?.at_ms ?? 0).toISOString().slice(0, 10);
  const next = servedReplacementOf(catalog, model, now_ms);
  const advice = next ? `Use '${next.id}' in its place.` : "GET /v1/models lists the models that there are.";
  return new Fault("model_not_found", `The model '${excerpt(name)}' was retired on ${day}. ${advice}`, {
    param: "model",
  });
}

function excerpt(name: string): string {
  return name.length > 256 ? `${name.slice(0, 256)}…` : name;
}

/** Checked settings and a checked file → the Configuration: who is served by which engine, and every default filled in. */
import type { Model } from "../inference/model.ts";
import type { CatalogModel, Route } from "../routing/catalog.ts";
import type { TlsSettings } from "../upstream/http1/dial.ts";
import { type Capacity, defaultTimeouts, type Resolving, type Upstream } from "../upstream/target.ts";
import { checkedKey } from "./api-key.ts";
import type { Configuration, MeteringSettings } from "./configuration.ts";
import type { EnvironmentSettings } from "./environment.ts";
import {
  checkLimits,
  defaultsOf,
  loadLimits,
  meteringLimits,
  metricsLimits,
  queueLimits,
  resolveLimits,
  responsesLimits,
  serverLimits,
  serviceLimits,
  telemetryLimits,
} from "./limits.ts";
import { defaultModels } from "./models.ts";
import { plansWith, sharesOf } from "./plans.ts";
import type { ModelEntry } from "./schema/model.ts";
import type { Metering } from "./schema/service.ts";
import type { UpstreamEntry } from "./schema/upstream.ts";
import type { ConfigurationFile } from "./schema.ts";
import { simulatorUpstream } from "./simulator.ts";
import { checkedUrl } from "./upstream-url.ts";

/** `file` is null where there is none; `simulatorUrl` while the simulator has not been started. */
export function assemble(
  settings: EnvironmentSettings,
  file: ConfigurationFile | null,
  simulatorUrl: string | null,
  tls: ReadonlyMap<string, TlsSettings> = new Map(),
): Configuration {
  const named = Object.entries(file?.upstreams ?? {}).map(([name, entry]) => replicasOf(name, entry, tls.get(name)));
  const { models, upstreams } = settings.upstream
    ? servedByEnvironment(settings.upstream, file?.models)
    : servedByFile(named, file?.models, simulatorUpstream(simulatorUrl));
  const overridden = settings.upstream !== null && (file?.upstreams !== undefined || file?.models !== undefined);
  return {
    catalog: { models: new Map(models.map((model) => [model.id, model])), plans: plansWith(file?.plans ?? {}) },
    shares: sharesOf(file?.plans ?? {}),
    upstreams,
    metering: meteringOf(file?.metering ?? {}),
    limits: { ...defaultsOf(serviceLimits), ...file?.limits },
    messages: { keepBillingLine: file?.messages?.keep_billing_line ?? false },
    responses: { ...defaultsOf(responsesLimits), store: true, ...file?.responses },
    reload: { force: file?.reload?.force ?? false },
    log: { level: file?.log?.level ?? "info", format: file?.log?.format ?? "json" },
    telemetry: telemetryOf(file?.telemetry),
    metrics: { ...defaultsOf(metricsLimits), ...file?.metrics },
    images: {
      denyPrivate: file?.images?.deny_private ?? false,
      deniedHosts: (file?.images?.denied_hosts ?? []).map((host) => host.toLowerCase()),
    },
    reports: pricingOf(file?.reports),
    webhooks: { allowPrivate: file?.webhooks?.allow_private ?? false },
    server: {
      ...settings.server,
      workers: settings.workers ?? file?.server?.workers ?? 1,
      warm_up_ms: settings.warm_up_ms ?? file?.server?.warm_up_ms ?? serverLimits.warm_up_ms.default,
    },
    storage: settings.storage,
    notices: overridden ? [...settings.notices, routesUnused] : settings.notices,
  };
}

function telemetryOf(entry: ConfigurationFile["telemetry"]): Configuration["telemetry"] {
  if (!entry) return null;
  return {
    endpoint: entry.endpoint,
    headers: entry.headers ?? {},
    serviceName: entry.service_name ?? "sluice",
    sampleRatio: entry.sample_ratio ?? 0.01,
    followsCallers: entry.follow_callers ?? true,
    metrics_ms: entry.metrics_ms ?? telemetryLimits.metrics_ms.default,
  };
}

function pricingOf(reports: ConfigurationFile["reports"]): Configuration["reports"] {
  if (!reports) return null;
  const { currency, price_per_million_units: pricePerMillionUnits, provider = "Sluice" } = reports;
  return { currency, pricePerMillionUnits, provider };
}

const routesUnused = "SLUICE_UPSTREAM_URL is set, so every model goes to it; the routes of sluice.yaml are not used";

interface Served {
  models: CatalogModel[];
  upstreams: Upstream[];
}

/** Every model to one engine, under its one name, else under the name that the model's best route has. */
function servedByEnvironment(
  { url, apiKey, model: name }: NonNullable<EnvironmentSettings["upstream"]>,
  entries: ModelEntry[] | undefined,
): Served {
  const engine: Upstream = {
    name: "environment",
    url,
    protocol: "openai-chat",
    apiKey,
    timeouts: { ...defaultTimeouts },
  };
  const models = entries
    ? entries.map((entry) => ({ model: modelOf(entry), known: bestRoute(entry).model }))
    : defaultModels().map((model) => ({ model, known: model.id }));
  return {
    models: models.map(({ model, known }) => ({ ...model, routes: [soleRoute(engine, name ?? known)] })),
    upstreams: [engine],
  };
}

function bestRoute({ routes }: ModelEntry): ModelEntry["routes"][number] {
  const open = routes.filter((route) => route.weight !== 0);
  return open.toSorted((one, other) => (one.priority ?? 0) - (other.priority ?? 0))[0]!;
}

/** The engines of one upstream, which are one but for their URLs. */
type Replicas = Upstream[];

/** Where the file lists no models, its one engine serves the default catalog; where it names none, the simulator does. */
function servedByFile(named: Replicas[], entries: ModelEntry[] | undefined, simulator: Upstream): Served {
  const engines = named[0] ?? [simulator];
  const known = new Map([...named, [simulator]].map((replicas) => [replicas[0]!.name, replicas]));
  const models: CatalogModel[] = entries
    ? entries.map((entry) => ({ ...modelOf(entry), routes: routesOf(entry, known) }))
    : defaultModels().map((model) => ({ ...model, routes: engines.map((engine) => soleRoute(engine, model.id)) }));
  const needed = models.some((model) => model.routes.some((route) => route.upstream === simulator));
  return { models, upstreams: needed ? [...named.flat(), simulator] : named.flat() };
}

function soleRoute(upstream: Upstream, model: string): Route {
  return { upstream, model, priority: 0, weight: 1 };
}

function routesOf(entry: ModelEntry, known: ReadonlyMap<string, Replicas>): Route[] {
  return entry.routes.flatMap((route) => {
    const replicas = known.get(route.upstream);
    if (!replicas) throw new Error(`a route of '${entry.id}' was not checked`);
    return replicas.map((upstream) => ({
      upstream,
      model: route.model,
      priority: route.priority ?? 0,
      weight: (route.weight ?? 1) / replicas.length,
      ...(route.instructions === "head" ? { instructionsInside: false } : {}),
      ...withOwnLimits(route, upstream),
      ...(route.context_window === undefined ? {} : { contextTokens: route.context_window }),
      ...(entry.timeouts === undefined ? {} : { timeouts: { ...upstream.timeouts, ...entry.timeouts } }),
    }));
  });
}

function replicasOf(name: string, entry: UpstreamEntry, tls: TlsSettings | undefined): Replicas {
  const key = entry.api_key === undefined ? null : checkedKey(entry.api_key);
  if (key && "problem" in key) throw new Error(`upstream '${name}' was not checked`);
  return [entry.url, ...(entry.replicas ?? [])].map((text) => {
    const url = checkedUrl(text);
    if ("problem" in url) throw new Error(`upstream '${name}' was not checked`);
    return {
      name,
      url: url.url,
      protocol: entry.protocol ?? "openai-chat",
      apiKey: key?.key ?? null,
      ...(entry.identity_headers === undefined ? {} : { identityHeaders: entry.identity_headers }),
      ...(entry.headers === undefined ? {} : { headers: entry.headers }),
      ...(tls === undefined ? {} : { tls }),
      ...(entry.resolve === undefined ? {} : { resolve: { ...defaultResolve, ...entry.resolve } }),
      ...(entry.cache_salt ? { isCacheSalted: true } : {}),
      ...(entry.check === undefined ? {} : { check: { ...defaultCheck, ...entry.check } }),
      ...(entry.load === undefined ? {} : { load: { ...defaultLoad, ...entry.load } }),
      capacity: capacityOf(entry),
      timeouts: { ...defaultTimeouts, ...entry.timeouts },
    };
  });
}

type Limited = Pick<UpstreamEntry, "concurrent_max" | "tokens_in_flight_max">;

const defaultQueue = defaultsOf(queueLimits);

function capacityOf({ concurrent_max, tokens_in_flight_max, queue }: UpstreamEntry): Capacity {
  const { length_max, wait_ms_max, reserved_percent } = { ...defaultQueue, ...queue };
  return {
    concurrent_max: concurrent_max ?? null,
    tokens_in_flight_max: tokens_in_flight_max ?? null,
    ...{ queue_max: length_max, queue_ms_max: wait_ms_max, reserved_percent },
  };
}

/** A route's own limits stand in place of its upstream's; its queue is as long as that. */
function withOwnLimits({ concurrent_max, tokens_in_flight_max }: Limited, { capacity }: Upstream) {
  if (concurrent_max === undefined && tokens_in_flight_max === undefined) return {};
  const limits = { concurrent_max: concurrent_max ?? null, tokens_in_flight_max: tokens_in_flight_max ?? null };
  return { capacity: { ...capacityOf({ url: "" }), ...capacity, ...limits } };
}

const defaultResolve: Resolving = { family: "all", servers: [], ...defaultsOf(resolveLimits) };
const defaultLoad = { path: "/metrics", ...defaultsOf(loadLimits) };
const defaultCheck = { path: "/health", ...defaultsOf(checkLimits) };

function modelOf(entry: ModelEntry): Model {
  const { prices } = entry;
  return {
    id: entry.id,
    ownedBy: entry.owned_by ?? entry.id.slice(0, entry.id.indexOf("/")),
    created: entry.created,
    contextTokens: entry.context_window,
    outputTokens_max: entry.max_output_tokens ?? entry.context_window,
    capabilities: new Set(entry.capabilities ?? []),
    prices: {
      input: prices.input,
      cachedInput: prices.cached_input ?? prices.input,
      cacheWrite: prices.cache_write ?? prices.input,
      output: prices.output,
    },
    ...(entry.tokenizer === undefined ? {} : { tokenizer: entry.tokenizer }),
    extraParams: entry.extra_params ?? [],
  };
}

function meteringOf(metering: Metering): MeteringSettings {
  const { recovery = "checkpoint", end_revoked = true, ...given } = metering;
  const settings = { ...defaultsOf(meteringLimits), ...given, recovery, end_revoked };
  // A short lease alone must not lapse between two checkpoints of the usual length.
  if (given.checkpoint_s === undefined) settings.checkpoint_s = Math.min(settings.checkpoint_s, settings.lease_s / 3);
  return settings;
}

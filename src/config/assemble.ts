/** Builds the Configuration from a checked environment and a checked file: routes, engines, and all defaults. */
import type { Retirement } from "../core/inference/model.ts";
import { price_decimals } from "../core/inference/money.ts";
import { compact } from "../core/protocol/json.ts";
import { aliasesOf, type CatalogModel, type Route } from "../core/routing/catalog.ts";
import type { TlsSettings } from "../core/upstream/http1/dial.ts";
import { type Capacity, defaultTimeouts, type Upstream } from "../core/upstream/target.ts";
import { checkedAmount } from "./amount.ts";
import { checkedKey } from "./api-key.ts";
import type { Configuration, NamesFrom, SmtpSettings } from "./configuration.ts";
import { dialectOf } from "./dialect.ts";
import type { EnvironmentSettings } from "./environment.ts";
import { identityOf } from "./identity.ts";
import { instantOf } from "./instant.ts";
import { defaultModels } from "./models.ts";
import { plansWith, sharesOf } from "./plans.ts";
import type { ConfigurationFile } from "./settings/file.ts";
import type { ModelEntry } from "./settings/model.ts";
import { filled, type Rows } from "./settings/row.ts";
import { type Sections, sections } from "./settings/sections.ts";
import { check, load, queue, resolve, type UpstreamEntry } from "./settings/upstream.ts";
import { simulatorUpstream } from "./simulator.ts";
import type { TlsRead } from "./tls.ts";
import { checkedUrl } from "./upstream-url.ts";

/** Builds the Configuration. `file`: null if there is none. */
export function assemble(
  environment: EnvironmentSettings,
  file: ConfigurationFile | null,
  tls: TlsRead,
): Configuration {
  const named = Object.entries(file?.upstreams ?? {}).map(([name, entry]) =>
    replicasOf(name, entry, tls.settings.get(name)),
  );
  const { models, upstreams, namesFrom } = environment.upstream
    ? servedByEnvironment(environment.upstream, file?.models)
    : servedByFile(named, file?.models, simulatorUpstream());
  const overridden = environment.upstream !== null && (file?.upstreams !== undefined || file?.models !== undefined);
  const settings = sectionsOf(file ?? {}, environment.overrides);
  return {
    ...settings,
    catalog: {
      models: new Map(models.map((model) => [model.id, model])),
      aliases: aliasesOf(models),
      plans: plansWith(file?.plans ?? {}),
    },
    shares: sharesOf(file?.plans ?? {}),
    upstreams,
    ...compact({ namesFrom }),
    metering: { ...settings.metering, checkpoint_s: checkpointsOf(settings.metering, file?.metering) },
    images: { ...settings.images, denied_hosts: settings.images.denied_hosts.map((host) => host.toLowerCase()) },
    hasFile: file !== null,
    identity: file?.identity ? identityOf(file.identity) : null,
    smtp: settings.smtp && smtpOf(settings.smtp, tls.smtpCa),
    server: { ...environment.server, ...settings.server },
    storage: environment.storage,
    notices: overridden ? [...environment.notices, routesUnused] : environment.notices,
  };
}

/** All sections in force: the environment overrides the file, and the file overrides the defaults. */
function sectionsOf(file: ConfigurationFile, overrides: EnvironmentSettings["overrides"]): Sections {
  const names = Object.keys(sections) as (keyof typeof sections)[];
  const settings = names.map((name) => {
    const { properties, required } = sections[name];
    const isAbsent = required !== undefined && file[name] === undefined;
    return [name, isAbsent ? null : filled<Rows>(properties, { ...file[name], ...overrides[name] })];
  });
  return Object.fromEntries(settings);
}

function smtpOf({ ca_file: _, ...smtp }: NonNullable<Sections["smtp"]>, ca: string | null): SmtpSettings {
  return { ...smtp, ca, recipient_domains: smtp.recipient_domains.map((domain) => domain.toLowerCase()) };
}

/** The interval of checkpoints, shortened for a short lease, which must not lapse between two checkpoints. */
function checkpointsOf(
  { checkpoint_s, lease_s }: Sections["metering"],
  written: ConfigurationFile["metering"],
): number {
  return written?.checkpoint_s === undefined ? Math.min(checkpoint_s, lease_s / 3) : checkpoint_s;
}

const routesUnused = "SLUICE_UPSTREAM_URL is set, so every model goes to it; the routes of sluice.yaml are not used";

interface Served extends Pick<Configuration, "upstreams" | "namesFrom"> {
  models: CatalogModel[];
}

/**
 * The catalog if one engine serves every model. The engine is asked for each model by the name that the environment
 * gives, else by the model's name in its best route.
 */
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
    ? entries.map((entry) => ({ model: modelOf(entry), routed: bestRoute(entry).model }))
    : defaultModels().map((model) => ({ model, routed: model.id }));
  return {
    models: models.map(({ model, routed }) => ({ ...model, routes: [soleRoute(engine, name ?? routed)] })),
    upstreams: [engine],
    ...compact({ namesFrom: entries || name !== null ? undefined : unasked([engine]) }),
  };
}

function bestRoute({ routes }: ModelEntry): ModelEntry["routes"][number] {
  const open = routes.filter((route) => route.weight !== 0);
  return open.toSorted((one, other) => (one.priority ?? 0) - (other.priority ?? 0))[0]!;
}

/** The engines of one upstream, which differ only in their URLs or addresses. */
type Replicas = Upstream[];

/**
 * The catalog of a file. Without models in it, its one engine serves the default catalog; without engines, the
 * simulator does.
 */
function servedByFile(named: Replicas[], entries: ModelEntry[] | undefined, simulator: Upstream): Served {
  const engines = named[0] ?? [simulator];
  const replicasByName = new Map([...named, [simulator]].map((replicas) => [replicas[0]!.name, replicas]));
  const models: CatalogModel[] = entries
    ? entries.map((entry) => ({ ...modelOf(entry), routes: routesOf(entry, replicasByName) }))
    : defaultModels().map((model) => ({ ...model, routes: engines.map((engine) => soleRoute(engine, model.id)) }));
  const needed = models.some((model) => model.routes.some((route) => route.upstream === simulator));
  const upstreams = needed ? [...named.flat(), simulator] : named.flat();
  return { models, upstreams, ...compact({ namesFrom: entries || !named[0] ? undefined : unasked(named[0]) }) };
}

const unasked = (engines: Replicas): NamesFrom => ({ engines, listed: [], isAwaited: true });

function soleRoute(upstream: Upstream, model: string): Route {
  return { upstream, model, priority: 0, weight: 1 };
}

function routesOf(entry: ModelEntry, replicasByName: ReadonlyMap<string, Replicas>): Route[] {
  return entry.routes.flatMap((route) => {
    const replicas = replicasByName.get(route.upstream);
    if (!replicas) throw new Error(`a route of '${entry.id}' was not checked`);
    return replicas.map((upstream) => ({
      upstream,
      model: route.model,
      priority: route.priority ?? 0,
      weight: (route.weight ?? 1) / replicas.length,
      ...compact({
        instructionsInside: route.instructions === "head" ? false : undefined,
        capacity: ownCapacity(route, upstream),
        continues: route.continue || undefined,
        contextTokens: route.context_window,
        timeouts: entry.timeouts && { ...upstream.timeouts, ...entry.timeouts },
      }),
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
      dialect: dialectOf(entry.dialect ?? "generic", entry.dialect_rows),
      apiKey: key?.key ?? null,
      ...compact({
        identityHeaders: entry.identity_headers && namesInLowerCase(entry.identity_headers),
        priorities: entry.priorities,
        runningUsage: entry.running_usage === "off" ? undefined : entry.running_usage,
        headers: entry.headers && inLowerCase(entry.headers),
        tls,
        resolve: entry.resolve && filled(resolve.properties, entry.resolve),
        isCacheSalted: entry.cache_salt ? true : undefined,
        reuse: entry.reuse,
        check: entry.check && filled(check.properties, entry.check),
        load: entry.load && filled(load.properties, entry.load),
      }),
      capacity: capacityOf(entry),
      timeouts: { ...defaultTimeouts, ...entry.timeouts },
    };
  });
}

/** Headers under lower-case names, so that they replace Sluice's own ones however the file writes them. */
function inLowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function namesInLowerCase<Names extends Readonly<Record<string, string>>>(names: Names): Names {
  return Object.fromEntries(Object.entries(names).map(([use, name]) => [use, name.toLowerCase()])) as Names;
}

function capacityOf({ concurrent_max, tokens_in_flight_max, scope, queue: written }: Partial<UpstreamEntry>): Capacity {
  const { length_max, wait_ms_max, reserved_percent } = filled(queue.properties, written);
  return {
    concurrent_max: concurrent_max ?? null,
    tokens_in_flight_max: tokens_in_flight_max ?? null,
    queue_max: length_max,
    queue_ms_max: wait_ms_max,
    reserved_percent,
    ...compact({ isShared: scope === "fleet" || undefined }),
  };
}

/** A route's own capacity, which replaces its upstream's except for the length of the queue. */
function ownCapacity(route: ModelEntry["routes"][number], { capacity }: Upstream): Capacity | undefined {
  const { concurrent_max = null, tokens_in_flight_max = null } = route;
  if (concurrent_max === null && tokens_in_flight_max === null) return undefined;
  return { ...capacityOf({}), ...capacity, concurrent_max, tokens_in_flight_max };
}

function modelOf(entry: ModelEntry): Omit<CatalogModel, "routes"> {
  const { prices } = entry;
  return {
    id: entry.id,
    ownedBy: entry.owned_by ?? entry.id.slice(0, entry.id.indexOf("/")),
    created: entry.created,
    contextTokens: entry.context_window,
    outputTokens_max: entry.max_output_tokens ?? entry.context_window,
    capabilities: new Set(entry.capabilities ?? []),
    prices: {
      input: tokenPrice(prices.input),
      cachedInput: tokenPrice(prices.cached_input ?? prices.input),
      cacheWrite: tokenPrice(prices.cache_write ?? prices.input),
      output: tokenPrice(prices.output ?? "0"),
      ...compact({ search: prices.search === undefined ? undefined : searchPrice(prices.search) }),
    },
    ...compact({ kind: entry.kind, answer_bytes_max: entry.answer_bytes_max }),
    ...compact({ tokenizer: entry.tokenizer }),
    extraParams: entry.extra_params ?? [],
    ...compact({ bounds: entry.bounds === "engine" ? ("engine" as const) : undefined }),
    ...compact({ aliases: entry.aliases, retirement: retirementOf(entry) }),
  };
}

/** The price of a token in picos, from the written price of a million tokens. */
const tokenPrice = (written: string) => checkedAmount(written, price_decimals);
/** The price of a search in picos, from the written price of a thousand searches. */
const searchPrice = (written: string) => 1000 * checkedAmount(written, price_decimals);

function retirementOf({ retires_at, deprecated_at, replaced_by, redirect }: ModelEntry): Retirement | undefined {
  if (retires_at === undefined) return undefined;
  return {
    at_ms: checkedInstant(retires_at),
    deprecatedAt_ms: checkedInstant(deprecated_at ?? retires_at),
    ...compact({ replacedBy: replaced_by, redirects: redirect }),
  };
}

function checkedInstant(written: string): number {
  const at_ms = instantOf(written);
  if (at_ms === null) throw new Error(`the instant '${written}' was not checked`);
  return at_ms;
}

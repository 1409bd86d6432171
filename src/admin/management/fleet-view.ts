/** Combines the reports of processes into nodes, and counts of several processes into one. Pure. */
import {
  type EngineSeen,
  type Figures,
  type FirstParts,
  limitSum,
  type StoredReport,
  silent_ms,
} from "../../core/store/fleet.ts";
import type { Fleet, Node, NodeState, SeenEngine } from "./fleet-shape.ts";

export function nodesOf(reports: readonly StoredReport[]): Node[] {
  const nodes = [...Map.groupBy(reports, ({ node }) => node.id).values()].map(nodeOf);
  const usual = usualConfiguration(nodes);
  return nodes.map((node) => ({ ...node, configurationDiffers: node.configuration !== usual }));
}

export function fleetOf(reports: readonly StoredReport[], nearest: Fleet["nearest"], now_ms: number): Fleet {
  const nodes = nodesOf(reports);
  const live = nodes.filter(isLive);
  const live_reports = liveReports(reports);
  const { engines, enginesLeftOut } = enginesOf(live_reports);
  const inState = (state: NodeState) => nodes.filter((node) => node.state === state).length;
  return {
    nodes: {
      ready: inState("ready"),
      notReady: inState("not_ready"),
      draining: inState("draining"),
      silent: inState("silent"),
    },
    versions: counted(live, ({ version }) => version).map(([version, count]) => ({ version, nodes: count })),
    configurations: counted(live, ({ configuration }) => configuration).map(([configuration, count]) => ({
      configuration,
      nodes: count,
    })),
    warnings: warningsOf(nodes, now_ms),
    ...figuresOf(live_reports),
    engines: engines.slice(0, engines_max),
    enginesLeftOut: enginesLeftOut + Math.max(0, engines.length - engines_max),
    nearest,
  };
}

const engines_max = 512;
const named_max = 5;
const day_ms = 86_400_000;
/** There is a warning during this many days before a certificate expires, as in `sluice doctor`. */
const expiry_days = 14;

/** The warnings about nodes, in sentences that stay the same while nothing changes. */
export function warningsOf(nodes: readonly Node[], now_ms: number): string[] {
  const one = (some: readonly Node[], sentence: (names: string, isOne: boolean) => string) =>
    some.length > 0 ? [sentence(named(some), some.length === 1)] : [];
  return [
    ...one(
      nodes.filter((node) => isLive(node) && node.configurationDiffers),
      (names, isOne) =>
        `Configurations differ: ${names} ${isOne ? "serves" : "serve"} another one than most nodes. Give all nodes the same sluice.yaml, and reload them (SIGHUP).`,
    ),
    ...one(
      nodes.filter((node) => !isLive(node)),
      (names, isOne) => `${names} ${isOne ? "does" : "do"} not report any more. Look whether it still runs.`,
    ),
    ...nodes
      .filter(({ state }) => state === "not_ready")
      .slice(0, named_max)
      .map(({ name, problems }) => `${name} is not ready: ${problems.join("; ")}.`),
    ...certificateWarnings(nodes.filter(isLive), now_ms),
  ];
}

/** One warning for all nodes whose certificates end on the same day, since they mostly have the same certificate. */
function certificateWarnings(nodes: readonly Node[], now_ms: number): string[] {
  const expiring = nodes.flatMap(({ name, certificateExpiresAt: at }) =>
    at !== null && at.getTime() - now_ms < expiry_days * day_ms ? [{ name, at }] : [],
  );
  const days = Map.groupBy(expiring, ({ at }) => at.toISOString().slice(0, 10));
  return [...days]
    .sort()
    .slice(0, named_max)
    .map(([day, some]) => {
      const has = some.some(({ at }) => at.getTime() <= now_ms) ? "expired" : "expires";
      return `The certificate of ${named(some)} ${has} on ${day}. Put a new one in the place of its files.`;
    });
}

function named(nodes: readonly Pick<Node, "name">[]): string {
  const names = nodes.slice(0, named_max).map(({ name }) => name);
  const more = nodes.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Each value that `of` returns, with the number of nodes that have the value, the most frequent first. */
function counted(nodes: readonly Node[], of: (node: Node) => string): [string, number][] {
  const counts = [...Map.groupBy(nodes, of)].map(([value, some]): [string, number] => [value, some.length]);
  return counts.sort(([, one], [, other]) => other - one);
}

export function isLive({ state }: Pick<Node, "state">): boolean {
  return state !== "silent";
}

/**
 * The reports of live processes. The reports of an ended worker stay in the store for a while, beside the reports of
 * its node's other workers.
 */
function liveReports(reports: readonly StoredReport[]): StoredReport[] {
  return reports.filter(({ age_ms }) => age_ms < silent_ms);
}

function nodeOf(all: readonly StoredReport[]): Omit<Node, "configurationDiffers"> {
  const live = liveReports(all);
  const reports = live.length > 0 ? live : all;
  const [{ node, name, workersWanted }] = reports as [StoredReport, ...StoredReport[]];
  const newest = reports.toSorted((one, other) => one.age_ms - other.age_ms)[0]!;
  const problems = [...new Set(reports.flatMap((report) => report.problems))];
  return {
    name,
    id: node.id,
    state: live.length === 0 ? "silent" : stateOf(reports, problems),
    problems,
    version: newest.version,
    configuration: newest.configuration,
    startedAt: node.startedAt,
    certificateExpiresAt: earliest(reports.map(({ certificateExpiresAt: at }) => at ?? null)),
    silent_ms: newest.age_ms,
    workers: live.length,
    workersWanted,
    ...figuresOf(reports),
    ...enginesOf(reports),
  };
}

function earliest(instants: readonly (string | null)[]): Date | null {
  const [first] = instants.filter((one) => one !== null).sort();
  return first === undefined ? null : new Date(first);
}

function stateOf(reports: readonly StoredReport[], problems: readonly string[]): NodeState {
  if (reports.some(({ isDraining }) => isDraining)) return "draining";
  return problems.length > 0 ? "not_ready" : "ready";
}

/**
 * The configuration that most live nodes have. If two are equally frequent, the configuration of the node that has run
 * longest.
 */
function usualConfiguration(nodes: readonly Pick<Node, "state" | "configuration">[]): string | null {
  const live = nodes.filter(isLive);
  const frequent = [...Map.groupBy(live.length > 0 ? live : nodes, ({ configuration }) => configuration)];
  return frequent.sort(([, one], [, other]) => other.length - one.length)[0]?.[0] ?? null;
}

type ShownFigures = Pick<Node, Exclude<keyof Figures, "firstParts"> | "firstPartP50_ms" | "firstPartP95_ms">;

function figuresOf(reports: readonly StoredReport[]): ShownFigures {
  const sum = (name: Exclude<keyof Figures, "firstParts">) =>
    Math.round(reports.reduce((total, { figures }) => total + figures[name], 0) * 10) / 10;
  const waits = reports.flatMap(({ figures }) => figures.firstParts);
  return {
    inputTokensPerSecond: sum("inputTokensPerSecond"),
    outputTokensPerSecond: sum("outputTokensPerSecond"),
    requestsPerSecond: sum("requestsPerSecond"),
    failuresPerSecond: sum("failuresPerSecond"),
    running: sum("running"),
    waiting: sum("waiting"),
    firstPartP50_ms: quantile_ms(waits, 0.5),
    firstPartP95_ms: quantile_ms(waits, 0.95),
  };
}

/**
 * The quantile of the time to the first part of an answer, from histogram buckets: this share of the requests waited no
 * longer. The requests of a bucket count as spread evenly.
 */
export function quantile_ms(waits: readonly FirstParts[], share: number): number | null {
  const bounds = [...Map.groupBy(waits, ({ within_s }) => within_s ?? Number.POSITIVE_INFINITY)]
    .map(([bound, some]) => ({ bound, requests: some.reduce((sum, { requests }) => sum + requests, 0) }))
    .sort((one, other) => one.bound - other.bound);
  const total = bounds.reduce((sum, { requests }) => sum + requests, 0);
  let below = 0;
  let from_s = 0;
  for (const { bound, requests } of bounds) {
    if (below + requests >= share * total && requests > 0) {
      const to_s = Number.isFinite(bound) ? bound : from_s;
      return Math.round((from_s + ((to_s - from_s) * (share * total - below)) / requests) * 1000);
    }
    below += requests;
    from_s = bound;
  }
  return null;
}

function enginesOf(reports: readonly StoredReport[]): Pick<Node, "engines" | "enginesLeftOut"> {
  const named = Map.groupBy(
    reports.flatMap(({ engines }) => engines),
    ({ upstream, replica }) => JSON.stringify([upstream, replica]),
  );
  return {
    engines: [...named.values()].map(engineOf).sort(byName),
    enginesLeftOut: Math.max(0, ...reports.map(({ enginesLeftOut }) => enginesLeftOut)),
  };
}

function engineOf(seen: readonly EngineSeen[]): SeenEngine {
  const states = new Map<string, number>();
  for (const one of seen)
    for (const [state, routes] of Object.entries(one.states)) states.set(state, (states.get(state) ?? 0) + routes);
  const sum = (name: "requests" | "tokens" | "waiting") => seen.reduce((total, one) => total + one[name], 0);
  const { upstream, replica } = seen[0]!;
  return {
    upstream,
    replica,
    states: [...states].sort().map(([state, routes]) => ({ state, routes })),
    requests: sum("requests"),
    tokens: sum("tokens"),
    waiting: sum("waiting"),
    requests_max: seen.map((one) => one.requests_max ?? null).reduce(limitSum),
  };
}

function byName(one: SeenEngine, other: SeenEngine): number {
  const [a, b] = [one, other].map(({ upstream, replica }) => `${upstream}\n${replica ?? ""}`) as [string, string];
  return a < b ? -1 : Number(a > b);
}

// Measures how many streamed events per second one core can serve, and the cost of each: a constant number of streams,
// whose starts are spread, from an engine over plain sockets that can send far more. Every response is checked.

import { startPostgres, startRedis } from "../../test/harness/services.ts";
import { smallBody } from "../agent-body.ts";
import type { Behaviour } from "./asks.ts";
import { pool } from "./client.ts";
import { startEnvoy } from "./envoy.ts";
import { startLitellm, startPortkey } from "./others.ts";
import { percentile } from "./percentile.ts";
import { cpu_us } from "./process.ts";
import type { Cell, Line } from "./report.ts";
import { names } from "./scenarios.ts";
import { type Asker, askerOf } from "./slice.ts";
import { databaseBeside } from "./stores.ts";
import {
  type NodeOptions,
  startEngineProcess,
  startFloor,
  startNginx,
  startNode,
  startPasser,
  type Target,
} from "./targets.ts";

const longestPause_ms = 50;
const addedFirst_ms_max = 100;
const addedGap_ms_max = 150;
/** The time before the measurement in which the load becomes steady and code is warmed up. */
const settling_ms = 4500;
const measured_ms = 3500;
/** The approximate duration of a response. */
const answer_ms = 2500;
const streams_first = 200;
const streams_min = 8;
/**
 * The ratio at which the search ends: that of the smallest number of streams that was too many to the largest number
 * that was served well.
 */
const closeness = 1.12;
/**
 * The share of the target's core that the next step of the search aims to use, according to the measured cost of an
 * event.
 */
const aimed_share = 0.95;

export const paces_ms = [25, 8];

export const behaviourAt = (every_ms: number): Behaviour => ({
  ...{ wait_ms: 20, tokens: Math.ceil(answer_ms / every_ms), every_ms, inputTokens: 20 },
});

export interface Flow {
  streams: number;
  events_per_s: number;
  cpu_us: number;
  first_ms: { p50: number; p99: number };
  gap_ms: { p50: number; p99: number };
}

/** A target, and a function that creates a sender of streams with a given behaviour. */
export interface Flowing {
  target: Target;
  at(behaviour: Behaviour): Asker;
}

/** Streams that start in the same millisecond, once a second, in addition to the constant ones. */
export interface Burst {
  ask: Asker;
  streams: number;
  tokens: number;
}

const burst_every_ms = 1000;
/** The behaviour of a burst's streams: their responses end before the next burst starts. */
export const burstBehaviour: Behaviour = { wait_ms: 20, tokens: 8, every_ms: 100, inputTokens: 20 };

/**
 * Keeps this number of streams running, and measures them. The times of a burst's streams are not counted, but their
 * CPU cost is.
 */
export async function flow(
  target: Target,
  ask: Asker,
  behaviour: Behaviour,
  streams: number,
  burst: Burst | null = null,
): Promise<Flow> {
  const firsts_ms: number[] = [];
  const gaps_ms: number[] = [];
  let tokens = 0;
  let isMeasured = false;
  let isOver = false;
  const one = async (delay_ms: number) => {
    await Bun.sleep(delay_ms);
    while (!isOver) {
      const reply = await ask();
      if (reply === null) throw new Error(`${target.name} refused`);
      if (!isMeasured || isOver) continue;
      tokens += behaviour.tokens;
      if (reply.marked_ms !== null) firsts_ms.push(reply.marked_ms);
      for (const gap_ms of reply.gaps_ms) gaps_ms.push(gap_ms);
    }
  };
  const together = async ({ ask, streams, tokens: each }: Burst) => {
    while (!isOver) {
      const replies = Array.from({ length: streams }, ask);
      const [answers] = await Promise.all([Promise.all(replies), Bun.sleep(burst_every_ms)]);
      if (answers.includes(null)) throw new Error(`${target.name} refused`);
      if (isMeasured && !isOver) tokens += each * streams;
    }
  };
  const flowing = Array.from({ length: streams }, (_, at) => one((answer_ms * at) / streams));
  const all = Promise.all(burst ? [...flowing, together(burst)] : flowing);
  const ended = all.then(() => {});
  await Promise.race([Bun.sleep(settling_ms), ended]);
  isMeasured = true;
  const [cpu_before, began_ms] = [cpu_us(target.pid), performance.now()];
  await Promise.race([Bun.sleep(measured_ms), ended]);
  const [spent_us, took_ms] = [cpu_us(target.pid) - cpu_before, performance.now() - began_ms];
  isOver = true;
  await ended;
  return {
    streams,
    events_per_s: (tokens / took_ms) * 1000,
    cpu_us: spent_us / tokens,
    first_ms: { p50: percentile(firsts_ms, 0.5), p99: percentile(firsts_ms, 0.99) },
    gap_ms: { p50: percentile(gaps_ms, 0.5), p99: percentile(gaps_ms, 0.99) },
  };
}

export function isBorne({ first_ms, gap_ms }: Flow, { wait_ms, every_ms }: Behaviour): boolean {
  return first_ms.p99 <= wait_ms + addedFirst_ms_max && gap_ms.p99 < every_ms + longestPause_ms + addedGap_ms_max;
}

export function told({ streams, events_per_s, cpu_us: event_us, first_ms, gap_ms }: Flow): string {
  const times = ({ p50, p99 }: { p50: number; p99: number }) => `${p50.toFixed(0)} and ${p99.toFixed(0)} ms`;
  return `${streams} streams, ${Math.round(events_per_s)} events/s, ${event_us.toFixed(1)} µs an event, first token ${times(first_ms)}, gap ${times(gap_ms)}`;
}

/**
 * Searches for the largest number of streams that the target serves within the bounds, by narrowing the range between a
 * number that it serves well and one that it does not. Returns the figures of the best run. Null if even few streams
 * are too many.
 */
export async function mostBorne(
  seenAt: (streams: number) => Promise<Flow>,
  behaviour: Behaviour,
): Promise<Flow | null> {
  let best: Flow | null = null;
  let broke = Number.POSITIVE_INFINITY;
  let streams = streams_first;
  while (streams >= streams_min && broke / (best?.streams ?? 1) > closeness) {
    let seen = await seenAt(streams);
    // A number of streams that fails is measured twice, because other load on the machine may have been the cause.
    if (!isBorne(seen, behaviour)) seen = await seenAt(streams);
    if (isBorne(seen, behaviour)) best = seen;
    else broke = streams;
    streams = nextCount(seen, best, broke);
    // The search ends when there is no other number between the two.
    if (streams === best?.streams || streams === broke) break;
  }
  return best;
}

function nextCount(seen: Flow, best: Flow | null, broke: number): number {
  if (Number.isFinite(broke)) return best ? Math.round(Math.sqrt(best.streams * broke)) : Math.floor(broke / 2);
  const share = (seen.cpu_us * seen.events_per_s) / 1e6;
  return Math.ceil(seen.streams * Math.min(3, Math.max(1.25, aimed_share / share)));
}

export interface Wanted {
  program: string;
  /** Whether Portkey and LiteLLM are measured, too. */
  isWithOthers: boolean;
  /** The names of the targets to measure. Null for all of them. */
  targets: readonly string[] | null;
  /** An older executable, which is measured, too. */
  before?: string | null;
  /**
   * Lengths of pauses in milliseconds, in which a node does not read an engine's socket. For each, a node that always
   * pauses for that long is measured, in place of the usual targets.
   */
  pauses_ms?: readonly number[];
  behaviours?: readonly Behaviour[];
}

const pausedPrefix = "pauses of ";
const pausedName = (pause_ms: number) => `${pausedPrefix}${pause_ms} ms`;

/** Starts the targets of the capacity rows; `ending` stops them. Nodes with and without pauses are separate targets. */
export async function flowing(
  { program, isWithOthers, targets, before = null, behaviours = paces_ms.map(behaviourAt), pauses_ms = [] }: Wanted,
  ending: AsyncDisposableStack,
): Promise<Flowing[]> {
  const engine = await startEngineProcess("flow-engine.ts");
  ending.defer(() => engine.stop());
  const postgres = await startPostgres();
  ending.defer(() => postgres.stop());
  const redis = await startRedis();
  ending.defer(() => redis.stop());
  const node = { program: [program], engineUrl: engine.url, behaviours };
  const stores = { databaseUrl: postgres.url, redisUrl: redis.url };
  const beside = async (name: string) => ({ ...stores, databaseUrl: await databaseBeside(postgres.url, name) });
  const starts: [string, () => Promise<Target | null>][] = [
    [names.passed, () => startPasser(engine.url)],
    [names.floor, () => startFloor(engine.url)],
    [names.nginx, () => startNginx(engine.url)],
    [names.envoy, () => startEnvoy(engine.url)],
    [names.postgres, () => startOne(names.postgres, { ...node, stores })],
    [
      names.unpaused,
      async () =>
        startOne(names.unpaused, { ...node, stores: await beside("unpaused"), server: { read_pause_ms_max: 0 } }),
    ],
    [
      names.before,
      async () =>
        before === null ? null : startOne(names.before, { ...node, program: [before], stores: await beside("before") }),
    ],
    ...pauses_ms.flatMap((pause_ms) => {
      const server = { read_pause_ms_min: pause_ms, read_pause_ms_max: pause_ms };
      const programs = { "": program, [`, ${names.before}`]: before };
      return Object.entries(programs).map(([suffix, path], at): [string, () => Promise<Target | null>] => [
        pausedName(pause_ms) + suffix,
        async () => {
          if (path === null) return null;
          const paused = { ...node, program: [path], stores: await beside(`paused_${pause_ms}_${at}`), server };
          return startOne(pausedName(pause_ms) + suffix, paused);
        },
      ]);
    }),
    [names.portkey, () => (isWithOthers ? startPortkey(engine.url) : Promise.resolve(null))],
    [names.litellm, () => (isWithOthers ? startLitellm(engine.url) : Promise.resolve(null))],
  ];
  const flows: Flowing[] = [];
  for (const [name, start] of starts) {
    const isAsked = pauses_ms.length > 0 ? name.startsWith(pausedPrefix) : (targets?.includes(name) ?? true);
    if (!isAsked) continue;
    const target = await start();
    if (!target) continue;
    ending.defer(() => target.stop());
    flows.push(flowingTo(target, ending));
  }
  return flows;
}

async function startOne(name: string, node: Omit<NodeOptions, "plans">): Promise<Target | null> {
  return (await startNode({ ...node, plans: [{ name, plan: "on" }] }))[0] ?? null;
}

function flowingTo(target: Target, ending: AsyncDisposableStack): Flowing {
  const connections = pool(target.url);
  ending.defer(() => connections.close());
  const count = { asked: 0, answered: 0 };
  const of = { caller: "chat", engine: "chat", isStreamed: true, body: smallBody, cap: 256 } as const;
  const more = { rounds: 1, targets: [], probe: null, isQuick: false, id: "capacity" };
  return {
    target,
    at: (behaviour) => askerOf(target, connections, { ...of, ...more, behaviour }, count),
  };
}

/** Measures the capacity rows, one for each time between tokens. */
export async function capacityLines(wanted: Wanted, say: (text: string) => void): Promise<Line[]> {
  await using ending = new AsyncDisposableStack();
  const targets = await flowing(wanted, ending);
  const lines: Line[] = [];
  for (const every_ms of paces_ms) {
    const behaviour = behaviourAt(every_ms);
    const cells: Record<string, Cell> = {};
    for (const { target, at } of targets) {
      const seenAt = async (streams: number) => {
        const seen = await flow(target, at(behaviour), behaviour, streams);
        say(`capacity at ${every_ms} ms, ${target.name}: ${told(seen)}`);
        return seen;
      };
      // The target is warmed up first, because new code is slow.
      await seenAt(streams_first).catch(() => {});
      cells[target.name] = cellOf(await mostBorne(seenAt, behaviour).catch((failure: unknown) => String(failure)));
    }
    const name = `streamed events a second that a core bears, ${every_ms} ms a token`;
    lines.push({ id: `capacity-${every_ms}`, name, unit: "/s", as: null, budget: null, cells });
  }
  return lines;
}

function cellOf(most: Flow | string | null): Cell {
  if (most === null || typeof most === "string")
    return { value: null, compared: null, note: most ?? "not even a few streams" };
  const { events_per_s, cpu_us: event_us, first_ms, gap_ms } = most;
  const note = `${event_us.toFixed(1)} µs an event, first token p99 ${first_ms.p99.toFixed(0)} ms, gap p99 ${gap_ms.p99.toFixed(0)} ms`;
  return { value: events_per_s, compared: null, note };
}

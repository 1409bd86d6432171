// `npm run bench`: measures the cost of a request, of a streamed event and of a stream, in comparison with a process
// that only passes requests on. Measures the executable on Postgres and Redis with every limit on, and on the embedded
// database; nginx and Envoy; with an engine, and a driver that checks every response. The targets take turns, round by
// round; the best round counts. CPU time is the process's own. Prints a Markdown table, and writes it to bench/results.
// docs/performance.md says how to read it. Exits with 1 if a response was wrong.
//
//   --quick    only the most important rows, in two minutes; written only with --write. Also exits with 1 if a ratio is
//              more than 1.5 times that of the newest file in bench/results
//   --others   also Portkey and LiteLLM, from their packages
//   --only W   scenarios whose ID contains this word, or one of several words separated by commas. Two more words select
//              other rows: `cold` that of the first requests, `capacity` those of the highest rate of streamed events.
//              Written only with --write, as a part
//   --fsync    Postgres waits for its disk
//   --note T   a note about other load on the machine, for the result
//   --profile  the node on Postgres runs from source, and prints the distribution of its CPU time; with --only. Not
//              written
//
// TEST_SLUICE names an executable; otherwise one is built from this checkout. TEST_SLUICE_BEFORE names an older one,
// which takes turns with it, on a database of its own. TEST_BUSBAR names a Busbar, whose limits are on, too.
// bench/governed compares gateways with keys, budgets and limits.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startPostgres, startRedis } from "../test/harness/services.ts";
import { until } from "../test/harness/until.ts";
import { capacityLines } from "./speed/capacity.ts";
import { pool } from "./speed/client.ts";
import { startEnvoy } from "./speed/envoy.ts";
import { hostSpeed, hostText } from "./speed/host.ts";
import { beforeHere, executable, machineOf, versionsOf } from "./speed/machine.ts";
import { versions as othersVersions, startBusbar, startLitellm, startPortkey } from "./speed/others.ts";
import { busyCores, pinOthers } from "./speed/process.ts";
import { profileTable } from "./speed/profile.ts";
import { grown, type Line, linesOf, markdown } from "./speed/report.ts";
import { newest, type Result, write } from "./speed/results.ts";
import { behaviours, names, type Scenario, type Slice, scenarios, shortened } from "./speed/scenarios.ts";
import { askerOf, sliceOf } from "./speed/slice.ts";
import { startLines } from "./speed/start.ts";
import { databaseBeside, onDisk, recordsOf, type Stores, storesOf } from "./speed/stores.ts";
import {
  askedWhole,
  type NodeOptions,
  startEngineProcess,
  startNginx,
  startNode,
  startPasser,
  type Target,
} from "./speed/targets.ts";
import { coldLine, type Driven, warmed } from "./speed/warming.ts";

const ours: readonly string[] = [names.postgres, names.embedded, names.workers];

interface Options {
  quick: boolean;
  write: boolean;
  others: boolean;
  only: string;
  note: string;
  profile: boolean;
  fsync: boolean;
}

/** The options, results and progress output of a run. */
interface Run {
  options: Options;
  program: string;
  lines: Line[];
  failures: string[];
  versions: Record<string, string>;
  say(text: string): void;
}

async function main(): Promise<number> {
  const { values: options } = parseArgs({
    options: {
      ...{ quick: { type: "boolean", default: false }, write: { type: "boolean", default: false } },
      ...{ others: { type: "boolean", default: false }, only: { type: "string", default: "" } },
      ...{ note: { type: "string", default: "" }, profile: { type: "boolean", default: false } },
      fsync: { type: "boolean", default: false },
    },
  });
  const began = performance.now();
  const busy_before = await busyCores();
  const program = await executable();
  pinOthers();
  const host_before = await hostSpeed();
  const say = (text: string) => console.error(`${Math.round((performance.now() - began) / 1000)} s: ${text}`);
  const run: Run = { options, program, lines: [], failures: [], versions: {}, say };
  const { lines, failures } = run;
  const isWhole = options.only === "";
  if (isWhole || isAsked(options, "cold") || scenariosOf(options).length > 0) await measureScenarios(run);
  if (isWhole ? !options.quick : isAsked(options, "capacity")) {
    const wanted = { program, before: beforeHere(), isWithOthers: options.others, targets: null };
    const more = await capacityLines(wanted, say).catch(failing(run, "capacity"));
    lines.push(...(more ?? []));
  }
  if (isWhole) lines.push(...(await startLines(program)));
  const host = { before: host_before, after: await hostSpeed() };
  lines.push({ id: "host", name: hostText(host.before, host.after), unit: "µs", as: null, budget: null, cells: {} });

  const result: Result = {
    ...{ date: new Date().toISOString(), isQuick: options.quick, note: options.note },
    ...(isWhole ? {} : { only: options.only }),
    took_s: Math.round((performance.now() - began) / 1000),
    versions: await versionsOf(program, run.versions),
    ...{ machine: machineOf(busy_before), host, failures, lines },
  };
  const recorded = newest();
  if (options.write || (isWhole && !options.quick)) say(`written to ${write(result)}`);
  console.log(markdown(lines, Object.values(names), ours));
  console.log(`\n${JSON.stringify({ ...result, lines: undefined })}`);
  const worse = options.quick && recorded ? grown(lines, recorded.lines) : [];
  for (const line of worse) console.error(`slower: ${line}`);
  return worse.length + failures.length === 0 ? 0 : 1;
}

const isAsked = ({ only }: Options, id: string) => only.split(",").some((word) => id.includes(word));

function scenariosOf(options: Options): Scenario[] {
  const suited = options.quick ? scenarios.filter(({ isQuick }) => isQuick).map(shortened) : scenarios;
  return suited.filter(({ id }) => isAsked(options, id));
}

const failing =
  ({ failures }: Run, what: string) =>
  (cause: unknown) => {
    failures.push(`${what}: ${String(cause)}`);
    console.error(failures.at(-1));
  };

async function measureScenarios(run: Run): Promise<void> {
  const { options, program, lines, say } = run;
  await using ending = new AsyncDisposableStack();
  const profiles = options.profile ? mkdtempSync(join(tmpdir(), "sluice-bench-profile-")) : null;
  const starting = { isWithOthers: options.others, isOnDisk: options.fsync, profiles, isNeeded: needed(options) };
  const { driven, stores, databaseUrl } = await started(program, starting, ending);
  run.versions = { ...stores.versions, ...(options.others ? othersVersions : {}) };
  const cold = await coldLine(driven, say);
  await warmed(driven, options.quick ? 3 : 10, say);
  for (const scenario of scenariosOf(options)) {
    say(scenario.id);
    const measuring = { stores, warming_s: options.quick ? 0.5 : warming_s };
    const slices = await rounds(scenario, driven, measuring).catch(failing(run, scenario.id));
    if (slices) lines.push(...linesOf(scenario, slices));
  }
  if (profiles) {
    // The node is stopped, because it writes its profile when it ends.
    await driven.find(({ target }) => target.name === names.postgres)?.target.stop();
    console.log(`${profileTable(profiles)}\n`);
    rmSync(profiles, { recursive: true });
  }
  say("books");
  await checkBooks(driven, databaseUrl).catch(failing(run, "the books"));
  if (isAsked(options, cold.id)) lines.push(cold);
}

/**
 * Returns a function that tells by its name whether a target takes part. Others are not started, because even a node
 * without requests uses CPU time of the core and the stores, and so adds to the measured cost when requests are few.
 */
function needed(options: Options): (name: string) => boolean {
  const asked = new Set(scenariosOf(options).flatMap(({ targets }) => targets));
  return (name) => isAsked(options, "cold") || asked.has(name);
}

interface Starting {
  isWithOthers: boolean;
  isOnDisk: boolean;
  isNeeded(name: string): boolean;
  /** The folder for CPU profiles. Null if none are made. */
  profiles: string | null;
}

async function started(
  executable: string,
  { isWithOthers, isOnDisk, isNeeded, profiles }: Starting,
  ending: AsyncDisposableStack,
) {
  const engine = await startEngineProcess();
  ending.defer(() => engine.stop());
  const postgres = await startPostgres(undefined, () => (isOnDisk ? onDisk : []));
  ending.defer(() => postgres.stop());
  const redis = await startRedis();
  ending.defer(() => redis.stop());
  const node = { program: [executable], engineUrl: engine.url, behaviours };
  const source = ["--cpu-prof", `--cpu-prof-dir=${profiles}`, join(import.meta.dir, "../src/main.ts")];
  const profiled = profiles ? { serving: [process.execPath, ...source] } : {};
  const on = { databaseUrl: postgres.url, redisUrl: redis.url };
  const plans = [
    { name: names.postgres, plan: "on" as const },
    { name: names.unlimited, plan: "off" as const },
  ];
  /** Stopping the first target stops all of them, because they belong to one process. */
  const ended = async (starting: Promise<Target[]>) => {
    const targets = await starting;
    ending.defer(async () => targets[0]?.stop());
    return targets;
  };
  const one = async (starting: Promise<Target | null>) => {
    const target = await starting;
    return target ? [target] : [];
  };
  const targets: Target[] = [
    ...(await ended(startBothPassers(engine.url))),
    ...(await ended(one(startNginx(engine.url)))),
    ...(await ended(one(startEnvoy(engine.url)))),
    ...(await ended(startNode({ ...node, ...profiled, stores: on, plans }))),
    ...(await ended(startBefore(node, on))),
    ...(isNeeded(names.workers) ? await ended(startPair(node, on)) : []),
    ...(isNeeded(names.embedded) ? await ended(startEmbedded(node)) : []),
    ...(await ended(one(startBusbar(engine.url)))),
    ...(isWithOthers ? await ended(one(startPortkey(engine.url))) : []),
    ...(isWithOthers ? await ended(one(startLitellm(engine.url))) : []),
  ];
  const driven = targets.map((target): Driven => {
    const connections = pool(target.url);
    ending.defer(() => connections.close());
    return { target, connections, count: { asked: 0, answered: 0 } };
  });
  return { driven, stores: await storesOf(postgres.url, redis.url), databaseUrl: postgres.url };
}

async function startBothPassers(engineUrl: string): Promise<Target[]> {
  const passer = await startPasser(engineUrl);
  return [passer, askedWhole(passer)];
}

const startEmbedded = (node: Omit<NodeOptions, "stores" | "plans">) =>
  startNode({ ...node, stores: null, plans: [{ name: names.embedded, plan: "on" }] });

async function startPair(node: Omit<NodeOptions, "stores" | "plans">, on: NonNullable<NodeOptions["stores"]>) {
  const stores = { ...on, databaseUrl: await databaseBeside(on.databaseUrl, "workers") };
  return startNode({ ...node, stores, plans: [{ name: names.workers, plan: "on" }], workers: 2 });
}

/** Starts a node of the older executable. Returns no targets if there is none. */
async function startBefore(node: Omit<NodeOptions, "stores" | "plans">, on: NonNullable<NodeOptions["stores"]>) {
  const before = beforeHere();
  if (before === null) return [];
  const stores = { ...on, databaseUrl: await databaseBeside(on.databaseUrl, "before") };
  return startNode({ ...node, program: [before], stores, plans: [{ name: names.before, plan: "on" }] });
}

/** How long each target is warmed up with a scenario's requests, because code that has rarely run is slow. */
const warming_s = 5;

interface Measuring {
  stores: Stores;
  warming_s: number;
}

/**
 * Runs the rounds of a scenario, in which the targets take turns. The first round is a warm-up, except for `spread`
 * loads, whose first round counts.
 */
async function rounds(
  scenario: Scenario,
  driven: readonly Driven[],
  { stores, warming_s: length_s }: Measuring,
): Promise<Map<string, Slice[]>> {
  const asked = driven.filter(({ target }) => scenario.targets.includes(target.name));
  const slices = new Map<string, Slice[]>(asked.map(({ target }) => [target.name, []]));
  const isWarmedUp = scenario.load.kind !== "spread";
  for (let round = isWarmedUp ? -1 : 0; round < scenario.rounds; round++) {
    for (const { target, connections, count } of asked) {
      const asker = askerOf(target, connections, scenario, count);
      const load = { ...scenario.load, ...(round < 0 ? { length_s } : {}) };
      const slice = await sliceOf(target, asker, { ...scenario, load }, { connections, stores });
      if (round >= 0) slices.get(target.name)!.push(slice);
    }
  }
  return slices;
}

/** Checks that the node has recorded every request exactly once, because losing records would make it faster. */
async function checkBooks(driven: readonly Driven[], databaseUrl: string): Promise<void> {
  const metered: string[] = [names.postgres, names.unlimited];
  const asked = driven
    .filter(({ target }) => metered.includes(target.name))
    .reduce((sum, { count }) => sum + count.answered, 0);
  let records = 0;
  const told = `a record of each of ${asked} requests`;
  const written = async () => {
    records = await recordsOf(databaseUrl);
    return records >= asked;
  };
  await until(written, 10_000, told).catch(() => {});
  if (records !== asked) throw new Error(`${asked} requests were answered, and ${records} are in the books`);
}

process.exit(await main());

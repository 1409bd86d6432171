// Measures the CPU time and latency of a governed request (one with a key, a budget and limits), by gateway and by
// number of keys. README.md describes the method.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { booked, type Checked, checked, checkRequests, unlimited } from "./checks.ts";
import type { Gateway, Key, Running } from "./gateway.ts";
import { gateways } from "./gateways.ts";
import { Clients, percentile } from "./load.ts";
import { cpu_us, pause, stopAll } from "./processes.ts";
import { printed } from "./report.ts";
import { versionOfStores } from "./stores.ts";

const usage = `usage: run.ts [--gateways NAME,…] [--keys 1,100,10000] [--rounds 3] [--turn-s 5] [--clients 16] [--streamed]
              [--keys-s 180] [--json FILE] [--add]
--add keeps the rows of FILE that this run does not measure again.`;

export interface Options {
  gateways: readonly Gateway[];
  keys: number[];
  rounds: number;
  turn_ms: number;
  clients: number;
  streamed: boolean;
  keys_ms_max: number;
  json: string | null;
  add: boolean;
}

export interface Range {
  least: number;
  most: number;
}

export interface Row {
  gateway: string;
  version: string;
  settings: string;
  keys: number;
  at: string;
  /** The machine's one-minute load averages before and after the measurement. */
  load?: [number, number];
  /** The reason if the row has no figures. */
  reason?: string;
  checks?: Checked;
  requests?: number;
  /** The number of responses with a status other than 200. */
  failed?: number;
  /** The CPU time of the gateway per request during its own turns: the minimum and the maximum of the rounds. */
  gateway_us?: Range;
  stores_us?: Range;
  /**
   * The CPU time of gateway and stores per request, including their work after the turns, but without their CPU time
   * when idle.
   */
  in_all_us?: number;
  /** The latency of a single client's request, minus that of the engine alone. */
  added_p50_ms?: Range;
  p99_ms?: Range;
  /**
   * The output tokens that the gateway's usage records should have at the end, and those that they have. Null: the
   * records cannot be queried.
   */
  booked?: { wanted: number; found: number | null };
}

export interface Report {
  host: string;
  stores: string;
  options: Pick<Options, "rounds" | "turn_ms" | "clients" | "streamed">;
  rows: Row[];
}

async function main(): Promise<void> {
  const options = optionsOf(process.argv.slice(2));
  const { rounds, turn_ms, clients, streamed, json } = options;
  const told = { rounds, turn_ms, clients, streamed };
  const before = options.add && json ? (JSON.parse(readFileSync(json, "utf8")) as Report).rows : [];
  const report: Report = { host: host(), stores: await versionOfStores(), options: told, rows: before };
  const engine = await startEngine();
  try {
    for (const keys of options.keys) {
      const load_before = loadavg()[0]!;
      const rows = await compared(options, keys, engine.url);
      for (const row of rows) row.load = [load_before, loadavg()[0]!];
      report.rows = merged(report.rows, rows);
      if (json) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
    }
  } finally {
    engine.stop();
    await stopAll();
  }
  console.log(printed(report));
}

function merged(old: readonly Row[], fresh: readonly Row[]): Row[] {
  const isAgain = ({ gateway, keys }: Row) => fresh.some((row) => row.gateway === gateway && row.keys === keys);
  return [...old.filter((row) => !isAgain(row)), ...fresh].sort((one, other) => one.keys - other.keys);
}

/** One gateway of this comparison, while it runs. */
interface Entry {
  gateway: Gateway;
  row: Row;
  running: Running;
  clients: Clients;
  keys: Key[];
  folder: string;
  before: { at_ms: number; cpu_us: number; idle_us_a_second: number };
  turns: { gateway_us: number; stores_us: number; added_p50_ms: number; p99_ms: number }[];
}

/** Measures all gateways with this number of keys. All of them are started, and then get requests in turn. */
async function compared(options: Options, count: number, engine_url: string): Promise<Row[]> {
  const rows: Row[] = [];
  const entries: Entry[] = [];
  for (const gateway of options.gateways) {
    const started = await entryOf(gateway, options, count, engine_url);
    rows.push(started.row);
    if ("running" in started) entries.push(started);
    console.error(`${count} keys, ${gateway.name}: ${started.row.reason ?? "runs"}`);
  }
  await Promise.all(entries.map(warm));
  for (const entry of entries) await idled(entry);
  for (let round = 0; round < options.rounds; round++) {
    const engine_ms = await engineAlone(engine_url, options);
    // The order changes from round to round, so that each gateway goes first, in the middle and last.
    for (let at = 0; at < entries.length; at++) await turn(entries[(at + round) % entries.length]!, options, engine_ms);
    console.error(`${count} keys: round ${round + 1} of ${options.rounds}`);
  }
  await Promise.all(entries.map(settled));
  for (const { clients, running, folder } of entries) {
    clients.stop();
    await running.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}

/** The median latency of a single client's requests to the engine, without a gateway. */
async function engineAlone(engine_url: string, { streamed }: Options): Promise<number> {
  const bare = new Clients({ url: `${engine_url}/v1`, model: "governed" });
  const nobody = [{ id: "", secret: "none" }];
  const alone = await bare.load(nobody, { clients: 1, isStreamed: streamed, for_ms: 1_000, requests_max: 400 });
  bare.stop();
  return percentile(alone.map(({ took_ms }) => took_ms).sort(ascending), 0.5);
}

async function entryOf(
  gateway: Gateway,
  options: Options,
  count: number,
  engine_url: string,
): Promise<Entry | { row: Row }> {
  const { name, settings } = gateway;
  const row: Row = { gateway: name, version: "", settings, keys: count, at: new Date().toISOString() };
  const program = process.env[gateway.variable];
  if (!program) return { row: { ...row, reason: `${gateway.variable} names no program` } };
  const folder = mkdtempSync(join(tmpdir(), "governed-"));
  const requested = [
    ...checkRequests,
    ...Array.from({ length: count }, (_, at) => ({ name: `key-${at}`, limits: unlimited })),
  ];
  try {
    row.version = await gateway.version(program);
    const running = await gateway.start(program, { engine_url, folder, requested, keys_ms_max: options.keys_ms_max });
    const clients = new Clients(running);
    const keys = running.keys.slice(checkRequests.length);
    row.checks = await checked(gateway, clients, running.keys.slice(0, checkRequests.length));
    const before = { at_ms: 0, cpu_us: 0, idle_us_a_second: 0 };
    return { gateway, row, running, clients, keys, folder, before, turns: [] };
  } catch (failure) {
    return { row: { ...row, reason: (failure as Error).message.slice(-600) } };
  }
}

const load = async (
  entry: Entry,
  what: { clients: number; isStreamed: boolean; for_ms: number; requests_max: number },
) => {
  const answers = await entry.clients.load(entry.keys, what);
  const good = answers.filter(({ status }) => status === 200).length;
  entry.row.requests = (entry.row.requests ?? 0) + answers.length;
  entry.row.failed = (entry.row.failed ?? 0) + answers.length - good;
  return answers;
};

/** Sends a request with every key (or with 2,000 of them), so that the measured code has run before. */
async function warm(entry: Entry): Promise<void> {
  const requests_max = Math.max(200, Math.min(entry.keys.length, 2_000));
  await load(entry, { clients: 8, isStreamed: false, for_ms: 30_000, requests_max });
}

const rootsOf = ({ running: { pids } }: Entry) => [pids.gateway, ...pids.stores];
const idle_ms = 3_000;

async function idled(entry: Entry): Promise<void> {
  const begun_us = cpu_us(rootsOf(entry));
  await pause(idle_ms);
  const now_us = cpu_us(rootsOf(entry));
  entry.before = {
    ...{ at_ms: Date.now(), cpu_us: now_us, idle_us_a_second: (now_us - begun_us) / (idle_ms / 1000) },
  };
  // The requests so far are no part of the measurement.
  entry.row.requests = 0;
}

async function turn(entry: Entry, { turn_ms, clients, streamed }: Options, engine_ms: number): Promise<void> {
  const { gateway, stores } = entry.running.pids;
  const before = { gateway: cpu_us([gateway]), stores: cpu_us(stores) };
  const many = await load(entry, { clients, isStreamed: streamed, for_ms: turn_ms, requests_max: 1_000_000 });
  const used = { gateway: cpu_us([gateway]) - before.gateway, stores: cpu_us(stores) - before.stores };
  const one = await load(entry, { clients: 1, isStreamed: streamed, for_ms: turn_ms / 2, requests_max: 1_000 });
  const times = one.map(({ took_ms }) => took_ms).sort(ascending);
  entry.turns.push({
    ...{ gateway_us: used.gateway / many.length, stores_us: used.stores / many.length },
    ...{ added_p50_ms: percentile(times, 0.5) - engine_ms, p99_ms: percentile(times, 0.99) },
  });
}

/**
 * Waits until the gateway's usage records are complete, and sums them up. With many keys, only the first hundred are
 * compared with the records.
 */
async function settled(entry: Entry): Promise<void> {
  const { row, keys, clients, running, before, turns } = entry;
  const few = keys.slice(0, 100);
  const answered = clients.answered(few);
  row.booked = await booked(running, few, answered, 120_000).catch(() => ({ wanted: answered, found: null }));
  const passed_s = (Date.now() - before.at_ms) / 1000;
  const used_us = cpu_us(rootsOf(entry)) - before.cpu_us - before.idle_us_a_second * passed_s;
  row.in_all_us = used_us / row.requests!;
  const range = (of: (turn: Entry["turns"][number]) => number): Range => {
    const values = turns.map(of);
    return { least: Math.min(...values), most: Math.max(...values) };
  };
  row.gateway_us = range(({ gateway_us }) => gateway_us);
  row.stores_us = range(({ stores_us }) => stores_us);
  row.added_p50_ms = range(({ added_p50_ms }) => added_p50_ms);
  row.p99_ms = range(({ p99_ms }) => p99_ms);
}

const ascending = (one: number, other: number) => one - other;

async function startEngine(): Promise<{ url: string; stop(): void }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "engine.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of child.stdout)
    return { url: `http://127.0.0.1:${`${line}`.trim()}`, stop: () => child.kill() };
  throw new Error("The engine did not start.");
}

function host(): string {
  const memory_gib = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${memory_gib} GiB, Linux ${release()}`;
}

function optionsOf(words: string[]): Options {
  try {
    const { values } = parseArgs({
      args: words,
      options: {
        gateways: { type: "string" },
        keys: { type: "string", default: "1,100,10000" },
        rounds: { type: "string", default: "3" },
        "turn-s": { type: "string", default: "5" },
        clients: { type: "string", default: "16" },
        streamed: { type: "boolean", default: false },
        "keys-s": { type: "string", default: "180" },
        json: { type: "string" },
        add: { type: "boolean", default: false },
      },
    });
    const names = values.gateways?.split(",") ?? gateways.map(({ name }) => name);
    const chosen = names.map((name) => gateways.find((one) => one.name === name));
    if (chosen.includes(undefined)) throw new Error(`gateways: ${gateways.map(({ name }) => name).join(", ")}`);
    const numbers = [values.rounds, values["turn-s"], values.clients, values["keys-s"]].map(Number);
    const keys = values.keys.split(",").map(Number);
    if (![...numbers, ...keys].every((one) => Number.isInteger(one) && one > 0)) throw new Error("not a number");
    const [rounds, turn_s, clients, keys_s] = numbers as [number, number, number, number];
    return {
      ...{ gateways: chosen as Gateway[], keys, rounds, turn_ms: turn_s * 1000, clients },
      ...{
        streamed: values.streamed,
        keys_ms_max: keys_s * 1000,
        json: values.json ?? null,
        add: values.add,
      },
    };
  } catch (failure) {
    console.error(`${(failure as Error).message}\n${usage}`);
    process.exit(2);
  }
}

if (process.argv[1]?.endsWith("run.ts")) await main();

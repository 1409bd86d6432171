// Measures the memory that streams use, and whether it grows: `bun bench/streams.ts [MINUTES] [STREAMS] [small|agent]
// [--every MS] [--organizations N]`. By default five minutes, 1,000 streams, small requests, 250 ms between tokens, one
// organization. A node on Postgres and Redis, with every limit on, always has the given number of streams, each of
// about ten seconds; clients leave 30 % of them in the middle. Prints the node's memory at rest, then that of each half
// minute with the CPU time per event, and then the memory at rest again. Memory counts as constant if the median of
// each half minute is within ±5 % of the middle of all medians. The first half minutes are ignored, because the runtime
// compiles and collects garbage for the first time then. Exits with 1 if memory is not constant, if a response was
// wrong, if there is not exactly one usage record for each request, if a total of the ledger differs from its records,
// or if the charge to the clients who left differs by 1 % or more from what the engine had sent them. TEST_SLUICE names
// an executable, as for `npm run bench`.

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import postgres from "postgres";
import { startPostgres, startRedis } from "../test/harness/services.ts";
import { until } from "../test/harness/until.ts";
import { agentBody, smallBody } from "./agent-body.ts";
import { type Behaviour, pathOf, tagOf, wrong } from "./speed/asks.ts";
import { connectTo } from "./speed/client.ts";
import type { Sent } from "./speed/flow-engine.ts";
import { executable } from "./speed/machine.ts";
import { organizations } from "./speed/organizations.ts";
import { cpu_us, pinOthers, resident_bytes } from "./speed/process.ts";
import { leftOf, recordsOf } from "./speed/stores.ts";
import { startEngineProcess, startNode, type Target } from "./speed/targets.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { every: { type: "string", default: "250" }, organizations: { type: "string", default: "1" } },
});
const minutes = Number(positionals[0] ?? 5);
const count = Number(positionals[1] ?? 1000);
const bodyOf = positionals[2] === "agent" ? agentBody : smallBody;
const every_ms = Number(values.every);
const organizationCount = Number(values.organizations);
const tolerance = 0.05;
/**
 * The largest allowed relative difference between the tokens that the engine sent to clients who left and the tokens
 * that these clients are charged.
 */
const leftTolerance = 0.01;
const leaving = 0.3;
const round_ms = 30_000;
/** The number of rounds at the start that are ignored. */
const first_rounds = 2;
const stream_ms = 10_000;
const behaviour: Behaviour = { wait_ms: 20, tokens: Math.round(stream_ms / every_ms), every_ms, inputTokens: 20 };

interface Streams {
  asked: number;
  whole: number;
  left: number;
  problems: string[];
}

async function main(): Promise<number> {
  const program = await executable();
  pinOthers();
  await using ending = new AsyncDisposableStack();
  const engine = await startEngineProcess("flow-engine.ts");
  ending.defer(() => engine.stop());
  const database = await startPostgres();
  ending.defer(() => database.stop());
  const redis = await startRedis();
  ending.defer(() => redis.stop());
  const node = { program: [program], engineUrl: engine.url, behaviours: [behaviour] };
  const stores = { databaseUrl: database.url, redisUrl: redis.url };
  const [target] = await startNode({ ...node, stores, plans: [{ name: "node", plan: "on" }] });
  ending.defer(() => target!.stop());
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  ending.defer(() => sql.end({ timeout: 1 }));
  const keys = await organizations(sql, organizationCount);

  const resting = resident_bytes(target!.pid);
  console.log(`at rest: ${mb(resting)} MB`);
  const streams: Streams = { asked: 0, whole: 0, left: 0, problems: [] };
  const until_ms = performance.now() + minutes * 60_000;
  const running = Array.from({ length: count }, (_, at) =>
    keptUp({ target: target!, keys, streams }, (at / count) * stream_ms, until_ms),
  );
  const sent = async () => (await (await fetch(engine.url)).json()) as Sent;
  const look = async () => ({ tokens: (await sent()).tokens, cpu_us: cpu_us(target!.pid), at_ms: performance.now() });
  const medians: number[] = [];
  let before = await look();
  while (performance.now() + round_ms <= until_ms) {
    const median = await oneRound(target!.pid);
    medians.push(median);
    const now = await look();
    const each_kib = (median - resting) / count / 1024;
    const tokens = now.tokens - before.tokens;
    const events = `${Math.round((tokens / (now.at_ms - before.at_ms)) * 1000)} events/s`;
    const cost = `${((now.cpu_us - before.cpu_us) / tokens).toFixed(1)} µs an event`;
    const ended = `${streams.whole} whole, ${streams.left} left, ${streams.problems.length} problems`;
    console.log(
      `${mb(median)} MB, ${each_kib.toFixed(0)} KiB a stream; ${events}, ${cost}; ${ended}, load ${loadavg()[0]!.toFixed(1)}`,
    );
    before = now;
  }
  await Promise.all(running);
  const hasAll = async () => (await recordsOf(database.url)) === streams.asked;
  await until(hasAll, 20_000, `a record of each of ${streams.asked} requests`).catch((late: unknown) => {
    streams.problems.push(String(late));
  });
  streams.problems.push(...(await differences(program, database.url)));
  console.log(`at rest again: ${mb(resident_bytes(target!.pid))} MB`);
  const [left, charged] = [(await sent()).left, await leftOf(database.url)];
  const difference = charged.tokens / Math.max(1, left.tokens) - 1;
  console.log(
    `those who left: ${left.streams} streams were sent ${left.tokens} tokens, ${charged.streams} are charged ${charged.tokens}, ${(difference * 100).toFixed(2)} %`,
  );
  if (Math.abs(difference) > leftTolerance) streams.problems.push("those who left are charged something else");
  for (const problem of new Set(streams.problems)) console.log(`  ${problem}`);
  return verdict(medians.slice(first_rounds)) && streams.problems.length === 0 ? 0 : 1;
}

/** The totals of the ledger that differ from their records, as texts. */
async function differences(program: string, databaseUrl: string): Promise<string[]> {
  const env = { PATH: process.env.PATH ?? "", DATABASE_URL: databaseUrl };
  const check = Bun.spawn([program, "usage", "check", "--full"], { env, stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([check.stdout.text(), check.stderr.text(), check.exited]);
  console.log(`sluice usage check --full: ${out.trim()}`);
  return check.exitCode === 0 ? [] : [`sluice usage check ended with ${check.exitCode}: ${out}${err}`];
}

interface Load {
  target: Target;
  keys: readonly string[];
  streams: Streams;
}

/** Runs one stream after another, the first one after a wait. */
async function keptUp(load: Load, wait_ms: number, until_ms: number): Promise<void> {
  await Bun.sleep(wait_ms);
  const { problems } = load.streams;
  while (performance.now() < until_ms)
    await oneStream(load).catch((cause: unknown) => void problems.push(String(cause).slice(0, 200)));
}

/** Runs one stream, with each key in turn. */
async function oneStream({ target, keys, streams }: Load): Promise<void> {
  const tag = tagOf(++streams.asked);
  const model = target.modelFor("chat", behaviour);
  const body = bodyOf(`Say hello to ${tag}.`, {
    protocol: "chat",
    model,
    isStreamed: true,
    cap: behaviour.tokens + 216,
  });
  const authorization = `Bearer ${keys[streams.asked % keys.length]}`;
  const headers = { ...target.headers, "content-type": "application/json", authorization };
  const connection = await connectTo(target.url);
  const isLeaving = Math.random() < leaving;
  const timer = isLeaving ? setTimeout(() => connection.close(), (0.1 + 0.8 * Math.random()) * stream_ms) : undefined;
  try {
    const reply = await connection.ask({ method: "POST", path: pathOf.chat, headers, body, mark: tag });
    const complaint = wrong(reply.body, { protocol: "chat", isStreamed: true, tag, behaviour });
    if (reply.status !== 200 || complaint !== null) throw new Error(`${reply.status}: ${complaint}`);
    streams.whole += 1;
  } catch (cause) {
    if (!isLeaving) throw cause;
    streams.left += 1;
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}

/** Samples the memory for one round, and returns the median. */
async function oneRound(pid: number): Promise<number> {
  const seen: number[] = [];
  const ends_ms = performance.now() + round_ms;
  while (performance.now() < ends_ms) {
    seen.push(resident_bytes(pid));
    await Bun.sleep(1000);
  }
  return middle(seen);
}

function verdict(medians: readonly number[]): boolean {
  const centre = middle(medians);
  const furthest = Math.max(0, ...medians.map((one) => Math.abs(one / centre - 1)));
  const isFlat = furthest <= tolerance;
  console.log(`memory after the first minute: ±${(furthest * 100).toFixed(1)} %, ${isFlat ? "flat" : "NOT FLAT"}`);
  return isFlat;
}

function middle(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

process.exit(await main());

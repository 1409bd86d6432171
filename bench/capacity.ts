// What streams cost by load, and how many a core bears: `bun bench/capacity.ts [streams] [every_ms] [rounds]`. With streams, so
// many at any time, each target in turn, round by round: CPU of the process for each event, the first token and the gaps.
// Without, the most events a second at which the first token's p99 is at most 100 ms more than the engine takes, and the
// gap's p99 below pace + longest pause + 150 ms, at 25 and 8 ms a token. Targets are a process that passes requests on,
// nginx where it is installed, and a node on Postgres and Redis with every limit on, with pauses and without. Starts are
// spread, and every answer is checked. TEST_SLUICE names an executable, as for `npm run bench`.

import { startPostgres, startRedis } from "../test/harness/services.ts";
import { smallBody } from "./agent-body.ts";
import type { Behaviour } from "./speed/asks.ts";
import { pool } from "./speed/client.ts";
import { executable } from "./speed/machine.ts";
import { percentile } from "./speed/percentile.ts";
import { busyCores, cpu_us, pinOthers } from "./speed/process.ts";
import { type Asker, askerOf } from "./speed/slice.ts";
import { databaseBeside } from "./speed/stores.ts";
import { startEngineProcess, startNginx, startNode, startPasser, type Target } from "./speed/targets.ts";

const longestPause_ms = 100;
const addedFirst_ms_max = 100;
const addedGap_ms_max = 150;
/** In this time the node finds its level, and code gets warm. */
const settling_ms = 5000;
const measured_ms = 4000;
const paces_ms = [25, 8];
/** About how long an answer takes. */
const answer_ms = 2500;
const streams_first = 64;
const growth = 1.3;

const behaviourAt = (every_ms: number): Behaviour => ({
  ...{ wait_ms: 20, tokens: Math.ceil(answer_ms / every_ms), every_ms, inputTokens: 20 },
});

interface Flow {
  events_per_s: number;
  cpu_us: number;
  first_ms: { p50: number; p99: number };
  gap_ms: { p50: number; p99: number };
}

/** So many streams at any time, whose starts are spread over the first answer. */
async function flow(target: Target, ask: Asker, behaviour: Behaviour, streams: number): Promise<Flow> {
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
  const all = Promise.all(Array.from({ length: streams }, (_, at) => one((answer_ms * at) / streams)));
  const ended = all.then(() => {});
  await Promise.race([Bun.sleep(settling_ms), ended]);
  isMeasured = true;
  const [cpu_before, began_ms] = [cpu_us(target.pid), performance.now()];
  await Promise.race([Bun.sleep(measured_ms), ended]);
  const [spent_us, took_ms] = [cpu_us(target.pid) - cpu_before, performance.now() - began_ms];
  isOver = true;
  await ended;
  return {
    events_per_s: (tokens / took_ms) * 1000,
    cpu_us: spent_us / tokens,
    first_ms: { p50: percentile(firsts_ms, 0.5), p99: percentile(firsts_ms, 0.99) },
    gap_ms: { p50: percentile(gaps_ms, 0.5), p99: percentile(gaps_ms, 0.99) },
  };
}

const isBorne = ({ first_ms, gap_ms }: Flow, { wait_ms, every_ms }: Behaviour) =>
  first_ms.p99 <= wait_ms + addedFirst_ms_max && gap_ms.p99 < every_ms + longestPause_ms + addedGap_ms_max;

const told = ({ events_per_s, cpu_us: event_us, first_ms, gap_ms }: Flow) =>
  `${Math.round(events_per_s)} events/s, ${event_us.toFixed(1)} µs an event, first token ${first_ms.p50.toFixed(0)} and ${first_ms.p99.toFixed(0)} ms, gap ${gap_ms.p50.toFixed(0)} and ${gap_ms.p99.toFixed(0)} ms`;

async function main(): Promise<void> {
  const [streams = 0, every_ms = 25, rounds = 3] = process.argv.slice(2).map(Number);
  const paces = streams > 0 ? [every_ms] : paces_ms;
  const program = await executable();
  pinOthers();
  await using ending = new AsyncDisposableStack();
  const engine = await startEngineProcess("flow-engine.ts");
  ending.defer(() => engine.stop());
  const postgres = await startPostgres();
  ending.defer(() => postgres.stop());
  const redis = await startRedis();
  ending.defer(() => redis.stop());
  const behaviours = paces.map(behaviourAt);
  const node = { program: [program], engineUrl: engine.url, behaviours };
  const stores = { databaseUrl: postgres.url, redisUrl: redis.url };
  const beside = { ...stores, databaseUrl: await databaseBeside(postgres.url, "unpaused") };
  const targets = [
    await startPasser(engine.url),
    await startNginx(engine.url),
    ...(await startNode({ ...node, stores, plans: [{ name: "with pauses", plan: "on" }] })),
    ...(await startNode({
      ...{ ...node, stores: beside, plans: [{ name: "without pauses", plan: "on" }] },
      server: { read_pause_ms_max: 0 },
    })),
  ].filter((target) => target !== null);
  for (const target of targets) ending.defer(() => target.stop());
  const asked = targets.map((target) => {
    const connections = pool(target.url);
    ending.defer(() => connections.close());
    const count = { asked: 0, answered: 0 };
    const of = { caller: "chat", engine: "chat", isStreamed: true, body: smallBody, cap: 256 } as const;
    const more = { rounds: 1, targets: [], probe: null, isQuick: false, id: "capacity" };
    return { target, at: (behaviour: Behaviour) => askerOf(target, connections, { ...of, ...more, behaviour }, count) };
  });
  console.log(`${(await busyCores()).toFixed(1)} cores are busy before`);
  for (const behaviour of behaviours) {
    if (streams > 0) {
      for (let round = 1; round <= rounds; round++)
        for (const { target, at } of asked)
          console.log(`${round} ${target.name}: ${told(await flow(target, at(behaviour), behaviour, streams))}`);
      continue;
    }
    for (const { target, at } of asked) {
      let most: Flow | null = null;
      for (let count = streams_first; ; count = Math.ceil(count * growth)) {
        const seen = await flow(target, at(behaviour), behaviour, count);
        console.log(`${target.name}, ${count} streams × ${behaviour.every_ms} ms: ${told(seen)}`);
        if (!isBorne(seen, behaviour)) break;
        most = seen;
      }
      console.log(`${target.name} bears at ${behaviour.every_ms} ms a token: ${most ? told(most) : "none"}`);
    }
  }
}

await main();
process.exit(0);

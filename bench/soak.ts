// Runs attacks and honest load together: `bun bench/soak.ts [minutes] [honest requests a second] [embedded|postgres]`.
// There are one node, all attacks of test/attacks against it from one process, and honest clients in another. Prints
// for each round, in which every hostile body is sent once: the memory of the node, the honest requests with the 50th
// and 99th percentile of their latency, and failures.
//
// While bodies of 30 MiB come and go, memory rises and falls by as much, as it should. A leak is detected in the rest
// at the end of each round, which makes rounds comparable: no large body is in flight, and everything else goes on
// (honest load, made-up keys, idle connections, streams whose clients leave). Memory counts as constant if the median
// of each rest, except the first, is within ±5 % of the middle of these medians. Exits with 1 if it is not constant, or
// if an honest request failed.

import { loadavg } from "node:os";
import { join } from "node:path";
import { type Honest, honestRequests } from "../test/attacks/honest.ts";
import type { AttackersSay } from "../test/attacks/mixed.ts";
import { mibOf, startAttackedNode } from "../test/attacks/node.ts";
import { resident_bytes } from "../test/attacks/process.ts";
import { metricIn, metricsOf } from "../test/attacks/talk.ts";

const minutes = Number(process.argv[2] ?? 30);
const rate = Number(process.argv[3] ?? 20);
const hasDatabase = process.argv[4] === "postgres";
/** The memory limit for the node in a small container: 85 % of 2 GiB. */
const memory_bytes = Math.floor(0.85 * 2 * 1024 ** 3);
const tolerance = 0.05;
const round_ms = 120_000;
/**
 * The number of samples at the start of a rest that are ignored, because memory of large bodies is still being freed.
 */
const settling_looks = 5;

interface Round {
  resident: number[];
  /** The samples of `resident` taken during the rest at the end of the round. */
  resting: number[];
  latencies: number[];
  failures: string[];
  repeated: number;
}

async function main(): Promise<number> {
  const node = await startAttackedNode({ limits: `{ memory_bytes: ${memory_bytes} }`, hasDatabase });
  const { target } = node;
  const honestKey = await node.newKey("honest");
  const attackers = Bun.spawn([process.execPath, join(import.meta.dir, "../test/attacks/mixed.ts")], {
    env: {
      ...process.env,
      ATTACK_TARGET: JSON.stringify({ ...target, database: null }),
      ATTACK_ROUND_MS: `${round_ms}`,
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  let attacked: AttackersSay = { isResting: false, counts: {} };
  void (async () => {
    let text = "";
    for await (const chunk of attackers.stdout) {
      const lines = (text + new TextDecoder().decode(chunk)).split("\n");
      text = lines.pop()!;
      const last = lines.at(-1);
      if (last !== undefined) attacked = JSON.parse(last);
    }
  })();
  const honest = honestRequests({ ...target, key: honestKey });
  const rests: number[] = [];
  let failed = 0;
  const until_ms = performance.now() + minutes * 60_000;
  for (let at = 1; at <= 2 || performance.now() < until_ms; at++) {
    const round = await oneRound(target.pid, honest, () => attacked.isResting);
    rests.push(middle(round.resting));
    failed += round.failures.length;
    const holds = metricIn(await metricsOf(target), "usage_holds");
    console.log(`${told(at, round)}, holds ${holds}, load ${loadavg()[0]!.toFixed(1)}`);
    for (const failure of new Set(round.failures)) console.log(`  failed: ${failure}`);
  }
  console.log(`attackers: ${JSON.stringify(attacked.counts)}`);
  attackers.kill("SIGKILL");
  await attackers.exited;
  await node.stop();
  return verdict(rests, failed);
}

async function oneRound(pid: number, requests: Honest[], isResting: () => boolean): Promise<Round> {
  const round: Round = { resident: [], resting: [], latencies: [], failures: [], repeated: 0 };
  let rested = 0;
  let isOver = false;
  const looking = setInterval(() => {
    const bytes = resident_bytes(pid);
    round.resident.push(bytes);
    isOver ||= rested > 0 && !isResting();
    if (isResting()) rested += 1;
    if (isResting() && rested > settling_looks) round.resting.push(bytes);
  }, 1000);
  const pending: Promise<void>[] = [];
  const began = performance.now();
  for (let count = 0; !isOver; count++) {
    const wait = began + (count * 1000) / rate - performance.now();
    if (wait > 1) await Bun.sleep(wait);
    const { name, ask } = requests[count % requests.length]!;
    const asked = performance.now();
    const answered = again(ask, round).then(
      (problem) =>
        void (problem === null
          ? round.latencies.push(performance.now() - asked)
          : round.failures.push(`${name}: ${problem}`)),
      (failure) => void round.failures.push(`${name}: ${failure}`),
    );
    pending.push(answered);
  }
  await Promise.all(pending);
  clearInterval(looking);
  return round;
}

/**
 * Sends a request, and repeats it once after a connection reset, as SDKs do: the node may close an idle connection just
 * when it is used.
 */
async function again(ask: Honest["ask"], round: Round): Promise<string | null> {
  try {
    return await ask();
  } catch (failure) {
    if ((failure as { code?: string }).code !== "ECONNRESET") throw failure;
    round.repeated += 1;
    return ask();
  }
}

function told(at: number, { resident, resting, latencies, failures, repeated }: Round): string {
  const [low, high] = [Math.min(...resident), Math.max(...resident)];
  const sorted = latencies.toSorted((one, other) => one - other);
  const [p50, p99] = [0.5, 0.99].map((share) => sorted[Math.floor(sorted.length * share)]?.toFixed(0));
  return [
    `round ${at}: ${mibOf(middle(resting))} MiB at rest (${mibOf(low)} to ${mibOf(high)} in all, median ${mibOf(middle(resident))})`,
    `${latencies.length} honest, ${repeated} repeated, ${failures.length} failed, p50 ${p50} ms, p99 ${p99} ms`,
  ].join("; ");
}

function middle(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

function verdict([, ...later]: number[], failed: number): number {
  const centre = middle(later);
  const furthest = Math.max(0, ...later.map((one) => Math.abs(one / centre - 1)));
  const halves = [later.slice(0, later.length / 2), later.slice(later.length / 2)].map((half) => mibOf(middle(half)));
  console.log(`the first half's rounds ${halves[0]} MiB, the second's ${halves[1]} MiB`);
  const isFlat = furthest <= tolerance;
  console.log(`memory after the first round: ±${(furthest * 100).toFixed(1)} %, ${isFlat ? "flat" : "NOT FLAT"}`);
  console.log(`${failed} honest requests failed`);
  return isFlat && failed === 0 ? 0 : 1;
}

process.exit(await main());

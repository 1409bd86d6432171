// `npm run faults -- --rounds N --seed S`: injects N faults into three nodes under load, in runs of fifty, and prints a
// table of the result. `--only engine,limit` restricts the faults to those whose name contains one of the words.
// `--cluster` uses a Redis Cluster. Nodes run from source, or from the binary in TEST_SLUICE. Exits with 1 if a rule
// was broken.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { faultRun, type Run } from "../test/faults/round.ts";

const injuries_a_run = 50;

async function main(): Promise<void> {
  const asked = options();
  if (!asked) {
    console.error(
      "usage: npm run faults -- [--rounds N] [--seed S] [--only WORD,…] [--cluster] (200 rounds, seed 1; whole numbers, N at least 1)",
    );
    process.exit(2);
  }
  const { rounds, seed, ...how } = asked;
  const runs: Run[] = [];
  for (let done = 0; done < rounds; done += injuries_a_run) {
    const injuries = Math.min(injuries_a_run, rounds - done);
    const own = seed + runs.length;
    // Runs with an even seed have a session limit that is exhausted, because refusals must be correct, too.
    const plan = own % 2 === 0 ? { session: 1_000_000, concurrent_requests: 12 } : {};
    const run = await faultRun({ seed: own, injuries, clients: 16, gap_ms: 250, plan, ...how });
    runs.push(run);
    const { verdict } = run;
    console.log(
      `seed ${run.seed}: ${verdict.requests} requests, ${verdict.records} records, ${verdict.recovered} recovered, ${verdict.broken.length} promises broken, ${(run.took_ms / 1000).toFixed(0)} s`,
    );
    for (const sentence of verdict.broken.slice(0, 10)) console.log(`  ${sentence}`);
  }
  report(runs);
  process.exit(runs.some((run) => run.verdict.broken.length > 0) ? 1 : 0);
}

function options(): { rounds: number; seed: number; only: string; redisIsCluster: boolean } | null {
  try {
    const { values } = parseArgs({
      options: {
        rounds: { type: "string", default: "200" },
        seed: { type: "string", default: "1" },
        only: { type: "string", default: "" },
        cluster: { type: "boolean", default: false },
      },
    });
    const [rounds, seed] = [Number(values.rounds), Number(values.seed)];
    return Number.isInteger(rounds) && rounds >= 1 && Number.isInteger(seed)
      ? { rounds, seed, only: values.only, redisIsCluster: values.cluster }
      : null;
  } catch {
    return null;
  }
}

function report(runs: Run[]): void {
  const injuries = new Map<string, number>();
  for (const run of runs)
    for (const [name, count] of run.injuries) injuries.set(name, (injuries.get(name) ?? 0) + count);
  const table = new Table({ head: ["injury", "times"], style: { head: [], border: [] } });
  for (const [name, count] of [...injuries].sort((one, other) => other[1] - one[1])) table.push([name, count]);
  console.log(table.toString());
  const sum = (of: (run: Run) => number) => runs.reduce((total, run) => total + of(run), 0);
  const totals = new Table({ style: { head: [], border: [] } });
  totals.push(
    { requests: sum((run) => run.verdict.requests) },
    { answered: sum((run) => run.verdict.answered) },
    { "refused with 429": sum((run) => run.verdict.refused) },
    { records: sum((run) => run.verdict.records) },
    { recovered: sum((run) => run.verdict.recovered) },
    { "of these, settled late": sum((run) => run.verdict.late) },
    { "unstreamed and not delivered": sum((run) => run.verdict.undelivered) },
    { "unstreamed and left": sum((run) => run.verdict.left) },
    { "longer than a first hold": sum((run) => run.verdict.grown) },
    { "ended where a window did": sum((run) => run.verdict.stopped) },
    { "answered by another engine": sum((run) => run.verdict.rerouted) },
    { "reports not believed": sum((run) => run.verdict.rejected) },
    { embeddings: sum((run) => run.verdict.embeddings) },
    { rankings: sum((run) => run.verdict.rankings) },
    { completions: sum((run) => run.verdict.completions) },
    { "of limited people": sum((run) => run.verdict.ofPeople) },
    { "answers that a failover forgot": sum((run) => run.verdict.forgotten) },
    { "with an idempotency key, asked again": sum((run) => run.kept.repeated) },
    { "with an idempotency key, left for good": sum((run) => run.kept.left) },
    { "background responses": sum((run) => run.kept.background) },
    { "repeats of another answer": sum((run) => run.kept.replays) },
    { "of these, ended by their node's end": sum((run) => run.kept.failures) },
    { "of these, gone for good": sum((run) => run.kept.lost) },
    { "tokens delivered": sum((run) => run.verdict.tokens) },
    { "promises broken": sum((run) => run.verdict.broken.length) },
  );
  console.log(totals.toString());
}

await main();

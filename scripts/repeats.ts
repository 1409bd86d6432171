// `npm run repeats -- --rounds N --seed S --logs redis|database`: clients send requests with idempotency keys, are cut
// off at a random byte of the response, and repeat the request at another node. In one of four rounds the first node is
// killed, and in one of eight it is frozen. Prints how often a rule of idempotency was broken. Exits with 1 if one was.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { type LogPlace, type RepeatRun, repeatRun } from "../test/faults/repeats.ts";

const rounds_a_run = 250;
const clients = 16;
const places: Record<string, LogPlace> = { redis: "Redis", database: "the database" };

async function main(): Promise<number> {
  const asked = options();
  if (!asked) {
    console.error(
      "usage: npm run repeats -- [--rounds N] [--seed S] [--logs redis|database] (250 rounds in each store, seed 1; whole numbers, N at least 1)",
    );
    return 2;
  }
  const runs: RepeatRun[] = [];
  for (const place of asked.places)
    for (let done = 0; done < asked.rounds; done += rounds_a_run) {
      const rounds = Math.min(rounds_a_run, asked.rounds - done);
      const run = await repeatRun({ seed: asked.seed + done, rounds, clients, place });
      runs.push(run);
      const { seed, broken, took_ms } = run;
      console.log(
        `seed ${seed}, logs in ${place}: ${rounds} rounds, ${broken.length} promises broken, ${(took_ms / 1000).toFixed(0)} s`,
      );
      for (const sentence of broken.slice(0, 10)) console.log(`  ${sentence}`);
    }
  report(runs);
  return runs.some(({ broken }) => broken.length > 0) ? 1 : 0;
}

function options(): { rounds: number; seed: number; places: LogPlace[] } | null {
  try {
    const { values } = parseArgs({
      options: {
        rounds: { type: "string", default: "250" },
        seed: { type: "string", default: "1" },
        logs: { type: "string" },
      },
    });
    const [rounds, seed] = [Number(values.rounds), Number(values.seed)];
    const chosen = values.logs === undefined ? Object.values(places) : [places[values.logs]];
    if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) return null;
    return chosen.every((place) => place !== undefined) ? { rounds, seed, places: chosen } : null;
  } catch {
    return null;
  }
}

function report(runs: readonly RepeatRun[]): void {
  const table = new Table({ head: ["", ...Object.values(places)], style: { head: [], border: [] } });
  const row = (name: string, of: (run: RepeatRun) => number) => {
    const sum = (place: LogPlace) => runs.filter((run) => run.place === place).reduce((all, run) => all + of(run), 0);
    table.push([name, ...Object.values(places).map(sum)]);
  };
  row("rounds", (run) => run.rounds);
  row("of these, with their node killed", (run) => run.killed);
  row("kills, some of them for several rounds", (run) => run.kills);
  row("rounds with their node frozen", (run) => run.frozen);
  row("freezes, some of them for several rounds", (run) => run.freezes);
  row("answers, none and cut ones too", (run) => run.answers);
  row("of these, repeats of another", (run) => run.replays);
  row("of these, ended by their node's end", (run) => run.failures);
  row("of these, ended by a lost lease", (run) => run.brokenOff);
  row("records", (run) => run.records);
  row("of these, recovered", (run) => run.recovered);
  row("promises broken", (run) => run.broken.length);
  console.log(table.toString());
}

process.exit(await main());

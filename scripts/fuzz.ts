// `npm run fuzz -- [NAME …] [--seconds N] [--seed S]`: runs the fuzzers of test/fuzz in turn, from seed S on, for N
// seconds. Prints each counterexample, shrunk, with the seed that reproduces it. Exits with 1 if there was one.

import { parseArgs } from "node:util";
import { fuzzers } from "../test/fuzz/all.ts";
import { type Fuzzer, fuzzOnce } from "../test/fuzz/fuzzer.ts";

const usage = `usage: npm run fuzz -- [NAME …] [--seconds N] [--seed S]
  NAME: ${fuzzers.map(({ name }) => name).join(", ")}; all of them if none is named. N: 60. S: a new one each time.`;
const inputs_per_seed = 2_000;
const report_every_ms = 10_000;

function main(): number {
  const asked = options();
  if (!asked) {
    console.error(usage);
    return 2;
  }
  const end = performance.now() + asked.seconds * 1000;
  let seed = asked.seed;
  let reported_ms = performance.now();
  do {
    for (const fuzzer of asked.fuzzers) if (foundSomething(fuzzer, seed)) return 1;
    seed += 1;
    if (performance.now() - reported_ms < report_every_ms) continue;
    reported_ms = performance.now();
    console.log(`seeds ${asked.seed} to ${seed - 1}: nothing found`);
  } while (performance.now() < end);
  console.log(`seeds ${asked.seed} to ${seed - 1}, ${inputs_per_seed} inputs for each property: nothing found`);
  return 0;
}

function foundSomething(fuzzer: Fuzzer, seed: number): boolean {
  const found = fuzzOnce(fuzzer, seed, inputs_per_seed);
  for (const { property, report } of found) console.log(`${fuzzer.name}: not so: ${property}\n${report}`);
  if (found.length > 0) console.log(`again: npm run fuzz -- ${fuzzer.name} --seed ${seed}`);
  return found.length > 0;
}

function options(): { fuzzers: readonly Fuzzer[]; seconds: number; seed: number } | null {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        seconds: { type: "string", default: "60" },
        seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      },
    });
    const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
    const named = positionals.map((name) => fuzzers.find((fuzzer) => fuzzer.name === name));
    if (!(seconds >= 0) || !Number.isInteger(seed) || named.includes(undefined)) return null;
    return { fuzzers: named.length > 0 ? (named as Fuzzer[]) : fuzzers, seconds, seed };
  } catch {
    return null;
  }
}

process.exit(main());

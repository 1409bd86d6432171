// `npm run nightly`: runs the checks that take too long for each change: random tests with a new seed (histories, which
// simulate a node's metering; faults, which are injected into nodes under load; repeats of requests), the long tests,
// real engines at the versions of their recordings, and clients at their newest versions. Writes a Markdown page of
// results (`--out FILE`). The page of the last manual run is in the folder proof.
// - `--only WORD,…`: runs the parts with these names. The others keep their row of the page, each with its commit and
//   day, or are listed as not run.
// - `--seed S`: repeats the run with this seed.
//
// The last line is `N passed, N failed, N skipped`, in which a part without counts of its own counts as one test.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { command, npmRun, type Outcome } from "./command.ts";
import { type Counts, close, closingCounts, countsOfStep, nothing, sum } from "./counts.ts";

const minute_ms = 60_000;
const usage = "usage: npm run nightly -- [--only PART,…] [--seed S] [--out FILE]";

interface Part {
  name: string;
  /** The arguments of `npm run` that run the part. */
  words: string[];
  limit_ms: number;
  /** Extracts the result, as a sentence, from the output of a run without the line `N passed, N failed, N skipped`. */
  result?: (output: string) => string;
}

interface Result {
  part: Part;
  /** The outcome of the part; null if this run was not to run it. */
  outcome: Outcome | null;
}

function partsOf(seed: number): Part[] {
  const seeded = ["--seed", String(seed)];
  return [
    { name: "build", words: ["build"], limit_ms: 10 * minute_ms },
    {
      name: "histories",
      words: ["histories", "--", "--count", "100000", ...seeded],
      limit_ms: 60 * minute_ms,
      result: (output) => `${cell(output, "histories")} histories, ${cell(output, "broken rules")} broken rules`,
    },
    {
      name: "faults",
      words: ["faults", "--", "--rounds", "300", ...seeded],
      limit_ms: 60 * minute_ms,
      result: (output) => `${cell(output, "requests")} requests, ${cell(output, "promises broken")} promises broken`,
    },
    {
      name: "repeats",
      words: ["repeats", "--", "--rounds", "200", ...seeded],
      limit_ms: 60 * minute_ms,
      result: (output) => {
        const broken = [...output.matchAll(/rounds, (\d+) promises broken/g)].map(([, count]) => Number(count));
        return `${broken.length} stores, ${broken.reduce((sum, count) => sum + count, 0)} promises broken`;
      },
    },
    { name: "deep", words: ["test:deep", "--", ...seeded], limit_ms: 90 * minute_ms },
    { name: "engines", words: ["test:clients", "--", "engines"], limit_ms: 90 * minute_ms },
    { name: "operations", words: ["test:clients", "--", "operations"], limit_ms: 60 * minute_ms },
    { name: "clients", words: ["test:clients", "--", "all", "--newest"], limit_ms: 120 * minute_ms },
  ];
}

async function main(): Promise<never> {
  const asked = options();
  if (!asked) {
    console.error(usage);
    process.exit(2);
  }
  const results: Result[] = asked.parts.map((part) => ({ part, outcome: null }));
  for (const result of results.filter(({ part }) => asked.names.has(part.name))) {
    const { part } = result;
    console.log(`\n== ${part.name}: npm run ${part.words.join(" ")}`);
    const environment = { TEST_SLUICE: asked.names.has("build") ? `${process.cwd()}/dist/sluice` : undefined };
    const limits = { limit_ms: part.limit_ms, grace_ms: 5_000 };
    result.outcome = await command([...npmRun, ...part.words], { ...limits, environment });
    // The page is written after each part, so that the results so far remain if the machine stops.
    mkdirSync(dirname(asked.out), { recursive: true });
    // The page is read again each time, because a concurrent run of other parts may have written rows to it.
    writeFileSync(asked.out, pageOf(results, linesOf(asked.out)));
  }
  console.log(`\n${pageOf(results, linesOf(asked.out))}`);
  return close(results.map(countsOf).reduce(sum, nothing));
}

function options(): { parts: Part[]; names: Set<string>; seed: number; out: string } | null {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string" },
        seed: { type: "string" },
        out: { type: "string", default: "dist/nightly.md" },
      },
    });
    const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 30) : Number(values.seed);
    const parts = partsOf(seed);
    const all = parts.map(({ name }) => name);
    const names = values.only?.split(",") ?? all;
    const areKnown = names.every((name) => all.includes(name));
    return Number.isInteger(seed) && seed >= 0 && areKnown
      ? { parts, names: new Set(names), seed, out: values.out }
      : null;
  } catch {
    return null;
  }
}

function countsOf({ part, outcome }: Result): Counts {
  if (!outcome) return { ...nothing, skipped: 1 };
  return countsOfStep(outcome, part.result === undefined && closingCounts(outcome.output) !== null);
}

/** The number beside this word in a table of the output; "?" if there is none. */
function cell(output: string, word: string): string {
  return new RegExp(`│ ${word} +│ +(\\d+)`).exec(output)?.[1] ?? "?";
}

/** The row of each part in the page of an earlier run; empty if there is no page. */
function linesOf(page: string): Map<string, string> {
  if (!existsSync(page)) return new Map();
  const lines = [...readFileSync(page, "utf8").matchAll(/^- (\w+): .*$/gm)];
  return new Map(lines.map(([line, name]) => [name!, line]));
}

/** The text of the page of results. `earlier` has the rows of the existing page, by part. */
function pageOf(results: readonly Result[], earlier: ReadonlyMap<string, string>): string {
  const day = new Date().toISOString().slice(0, 10);
  const lines = results.map((result) => {
    const { part, outcome } = result;
    const named = `- ${part.name}: `;
    if (!outcome) return earlier.get(part.name) ?? `${named}not run`;
    const minutes = (outcome.took_ms / minute_ms).toFixed(1);
    return `${named}${sentenceOf(result)} (${minutes} minutes; \`npm run ${part.words.join(" ")}\`; ${commit()}, ${day})`;
  });
  const head = `The newest run of each part of \`npm run nightly\`, the last one on ${machine()}.`;
  return ["# Nightly results", "", head, "", ...lines, ""].join("\n");
}

function sentenceOf(result: Result): string {
  const { part, outcome } = result;
  const { code, output } = outcome!;
  const counts = countsOf(result);
  const said = part.result?.(output) ?? `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
  if (code === 0) return said;
  return `**failed**: ${code === 124 ? "not done in time" : said}`;
}

function commit(): string {
  return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
}

function machine(): string {
  const memory_gib = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${memory_gib} GiB, Linux ${release()}, Bun ${Bun.version}`;
}

await main();

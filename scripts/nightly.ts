// `npm run nightly`: what takes too long for each change. Histories, faults and repeats of a seed that nobody has used, the
// long tests, real engines, and clients at their newest. Writes one page of results in Markdown (`--out FILE`).
// The last one that was run by hand is kept in the folder proof. `--only WORD,…` runs the parts with these names; the page
// says which were not run. `--seed S` runs one again.
// Closes with the line `N passed, N failed, N skipped`, in which a part that has no counts of its own counts as one.

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { command, npmRun, type Outcome } from "./command.ts";
import { type Counts, close, closingCounts, countsOfStep, nothing, sum } from "./counts.ts";

const minute_ms = 60_000;
const usage = "usage: npm run nightly -- [--only PART,…] [--seed S] [--out FILE]";

interface Part {
  name: string;
  /** The words after `npm run`. */
  words: string[];
  limit_ms: number;
  /** The sentence of a run that has no line `N passed, N failed, N skipped`, from its output. */
  result?: (output: string) => string;
}

interface Result {
  part: Part;
  /** Null: it was not asked for. */
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
    { name: "engines", words: ["test:clients", "--", "engines", "--newest"], limit_ms: 90 * minute_ms },
    { name: "operations", words: ["test:clients", "--", "operations", "--newest"], limit_ms: 60 * minute_ms },
    { name: "clients", words: ["test:clients", "--", "all", "--newest"], limit_ms: 120 * minute_ms },
  ];
}

async function main(): Promise<never> {
  const asked = options();
  if (!asked) {
    console.error(usage);
    process.exit(2);
  }
  const results: Result[] = [];
  for (const part of asked.parts) {
    if (!asked.names.has(part.name)) {
      results.push({ part, outcome: null });
      continue;
    }
    console.log(`\n== ${part.name}: npm run ${part.words.join(" ")}`);
    const environment = { TEST_SLUICE: asked.names.has("build") ? `${process.cwd()}/dist/sluice` : undefined };
    results.push({
      part,
      outcome: await command([...npmRun, ...part.words], { limit_ms: part.limit_ms, grace_ms: 5_000, environment }),
    });
    // After each part, so that a machine that stops leaves what is known.
    mkdirSync(dirname(asked.out), { recursive: true });
    writeFileSync(asked.out, pageOf(results, asked.seed));
  }
  console.log(`\n${pageOf(results, asked.seed)}`);
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

/** The number beside this word in the table that a campaign prints; "?" if it printed none. */
function cell(output: string, word: string): string {
  return new RegExp(`│ ${word} +│ +(\\d+)`).exec(output)?.[1] ?? "?";
}

function pageOf(results: readonly Result[], seed: number): string {
  const rows = results.map((result) => {
    const { part, outcome } = result;
    const cells = [part.name, `\`npm run ${part.words.join(" ")}\``];
    if (!outcome) return [...cells, "not run", ""];
    return [...cells, sentenceOf(result), (outcome.took_ms / minute_ms).toFixed(1)];
  });
  return [
    "# Nightly results",
    "",
    `${new Date().toISOString().slice(0, 16)}Z, commit ${commit()}, seed ${seed}. ${machine()}.`,
    "",
    "| part | command | result | minutes |",
    "|---|---|---|---|",
    ...rows.map((cells) => `| ${cells.join(" | ")} |`),
    "",
  ].join("\n");
}

function sentenceOf({ part, outcome }: Result): string {
  const { code, output } = outcome!;
  const counts = countsOf({ part, outcome });
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

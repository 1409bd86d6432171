// `npm run test:deep`: runs the randomized tests longer and more thoroughly than `npm test`. `-- 2/4` runs the second
// of four parts, `-- --commit` the part that the commit determines (as in CI), and `-- WORD…` the files whose path
// contains the word. `--seed S` repeats a run that failed; otherwise the seed is the commit's or a new one, and is
// printed. The last line has the counts.

import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { command } from "./command.ts";
import { commitNumber } from "./commit-number.ts";

const parts_of_ci = 4;
const limit_ms = 30 * 60_000;
const usage = "usage: npm run test:deep -- [PART/PARTS | --commit | WORD…] [--seed S]";

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { commit: { type: "boolean", default: false }, seed: { type: "string" } },
  });
  const number = values.commit ? commitNumber() : Math.floor(Math.random() * 2 ** 31);
  const seed = values.seed === undefined ? number : Number(values.seed);
  const files = chosen(deepFiles(), values.commit ? [`${(number % parts_of_ci) + 1}/${parts_of_ci}`] : positionals);
  if (files.length === 0 || !Number.isInteger(seed)) {
    console.error(usage);
    return 2;
  }
  console.log(`seed ${seed}, ${files.join(" ")}`);
  const words = [process.execPath, "scripts/test.ts", ...files];
  const environment = { TEST_DEEP: "1", TEST_SEED: String(seed) };
  return (await command(words, { limit_ms, environment, grace_ms: 3000 })).code;
}

/** The test files that use the settings of the deep run. */
function deepFiles(): string[] {
  const files = [...new Bun.Glob("test/**/*.test.ts").scanSync()].sort();
  const listed = execFileSync("grep", ["-lE", "\\b(times|some|isDeep)\\b.*harness/depth.ts|\\./halves.ts", ...files], {
    encoding: "utf8",
  });
  return listed.trim().split("\n");
}

function chosen(files: string[], words: string[]): string[] {
  const [, part, parts] = /^([1-9]\d*)\/([1-9]\d*)$/.exec(words[0] ?? "") ?? [];
  if (part !== undefined) return files.filter((_, index) => index % Number(parts) === Number(part) - 1);
  return words.length === 0 ? files : files.filter((file) => words.some((word) => file.includes(word)));
}

process.exit(await main());

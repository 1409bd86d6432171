// `npm run proof:mutants`: breaks Sluice's accounting in nine ways, and runs the crash test on each until it finds
// something. That shows that the test can fail. The test knows nothing about the mutants.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Mutant {
  name: string;
  file: string;
  find: string;
  replace: string;
}

const admissions = "db/migrations/0001_baseline/ledger_admissions.sql";
const settlements = "db/migrations/0001_baseline/ledger_settlements.sql";

export const mutants: readonly Mutant[] = [
  {
    name: "settled twice",
    file: settlements,
    find: "used[counter] := used[counter] + charge;",
    replace: "used[counter] := used[counter] + charge + charge;",
  },
  {
    name: "a hold never freed",
    file: settlements,
    find: "held[counter] := held[counter] - step.held;",
    replace: "held[counter] := held[counter] - case when is_recovery then 0 else step.held end;",
  },
  {
    name: "charged on refusal",
    file: admissions,
    find: "if got.source is null or is_crowded then\n",
    replace: `if got.source is null or is_crowded then
        foreach subject in array others loop
          for counter in 4 * subject - 3..4 * subject - 1 loop
            book.used[counter] := book.used[counter] + step.nanos_least;
          end loop;
          is_changed[subject] := true;
        end loop;
`,
  },
  {
    name: "a lost checkpoint",
    file: "db/migrations/0001_baseline/ledger_commands.sql",
    find: "produced_tokens = greatest(h.produced_tokens, c.output_tokens),",
    replace: "produced_tokens = h.produced_tokens,",
  },
  {
    name: "a stale limit",
    file: admissions,
    find: `    select least(bounds[4 * subject - 3] - used[4 * subject - 3] - held[4 * subject - 3],
      bounds[4 * subject - 2] - used[4 * subject - 2] - held[4 * subject - 2],
      bounds[4 * subject - 1] - used[4 * subject - 1] - held[4 * subject - 1])
`,
    replace: "    select least(bounds[4 * subject - 3], bounds[4 * subject - 2], bounds[4 * subject - 1])\n",
  },
  {
    name: "a report believed",
    file: "src/core/usage/report.ts",
    find: "if (!input && !output) return null;",
    replace: "if (input || output || !output) return null;",
  },
  {
    name: "a doubled attempt",
    file: "src/core/usage/meter.ts",
    find: "    this.#count = new Tally(this.#metering);\n    this.#metering.hold.restart();",
    replace: "    this.#metering.hold.restart();",
  },
  {
    name: "a leaver uncharged",
    file: "src/core/usage/meter.ts",
    find: 'if (outcome === "completed") return false;',
    replace: 'if (outcome === "completed") return false;\n    if (outcome === "cancelled") return true;',
  },
  {
    name: "a recovered run charged again",
    file: settlements,
    find: "c.cache_write_tokens, c.output_tokens, c.reasoning_tokens, c.usage_source,\n      c.searches",
    replace:
      "c.cache_write_tokens, case when is_recovery then 2 else 1 end * c.output_tokens, c.reasoning_tokens, c.usage_source,\n      c.searches",
  },
];

const root = join(import.meta.dir, "..");
const copied = ["src", "db", "proof", "package.json", "tsconfig.json", "bunfig.toml", "test/harness"];

function found({ file, find, replace }: Mutant, words: readonly string[]): string | null {
  const folder = mkdtempSync(join(tmpdir(), "proof-mutant-"));
  try {
    for (const name of copied) cpSync(join(root, name), join(folder, name), { recursive: true });
    for (const name of ["node_modules", ".cache"]) symlinkSync(join(root, name), join(folder, name));
    const path = join(folder, file);
    const source = readFileSync(path, "utf8");
    if (source.split(find).length !== 2) throw new Error(`${file} does not have the line exactly once: ${find}`);
    writeFileSync(
      path,
      source.replace(find, () => replace),
    );
    const command = ["proof/run.ts", "--until-found", ...words];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: folder, encoding: "utf8" });
    if (status === 0) return null;
    const finding = stdout.split("\n").find((line) => line.startsWith("  ") && line.includes(": "));
    if (status !== 1 || finding === undefined) throw new Error(`The test did not run:\n${stdout}\n${stderr}`);
    return finding.trim().slice(0, 160);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function main(): void {
  const [word = "", ...words] = process.argv.slice(2);
  let missed = 0;
  for (const mutant of mutants.filter(({ name }) => name.includes(word))) {
    const finding = found(mutant, words);
    if (finding === null) missed += 1;
    console.log(`${finding === null ? "MISSED" : "found "} ${mutant.name}${finding === null ? "" : ` (${finding})`}`);
  }
  process.exitCode = missed === 0 ? 0 : 1;
}

if (import.meta.main) main();

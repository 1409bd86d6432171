// Runs the real Codex, from npm, against the service in front of a scripted engine. Its traffic stays on this machine.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import { CannotRun, type Suite } from "../edition.ts";
import { npmPackages } from "../npm-packages.ts";

const wanted = { "@openai/codex": "0.171.0" };

export const codexSuite = suiteOf(["codex.checks.ts", "compaction.checks.ts", "engines.checks.ts"]);
export const codexTurnsSuite = suiteOf(["turns.checks.ts"]);

function suiteOf(names: string[]): Suite {
  return async (edition) => {
    const { folder, versions } = await npmPackages("codex", wanted, edition);
    const checks = names.map((name) => join(import.meta.dir, name));
    const { code, output } = await command([process.execPath, "test", ...checks], {
      limit_ms: 20 * 60_000,
      environment: { CODEX: codexIn(folder) },
    });
    return { counts: countsOf(output, code), versions };
  };
}

/** The path of Codex's own program, which is in a separate package for each kind of machine. */
export function codexIn(folder: string): string {
  const kind = `${process.platform}-${process.arch}`;
  const cwd = join(folder, "node_modules/@openai", `codex-${kind}`);
  const name = process.platform === "win32" ? "codex.exe" : "codex";
  const [found] = existsSync(cwd) ? [...new Bun.Glob(`vendor/*/bin/${name}`).scanSync({ cwd })] : [];
  if (found === undefined) throw new CannotRun(`There is no Codex for this machine (${kind}).`);
  return join(cwd, found);
}

// Runs the real Claude Code, from npm, against the service in front of the simulator. Its traffic stays on this machine.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import type { Edition, Ran } from "../edition.ts";
import { fileIn, npmPackages } from "../npm-packages.ts";

const wanted = { "@anthropic-ai/claude-code": "2.1.329" };

export async function claudeSuite(edition: Edition): Promise<Ran> {
  const checks = ["claude-code.checks.ts", "cost.checks.ts"].map((name) => join(import.meta.dir, name));
  const packages = await npmPackages("claude-code", wanted, edition);
  // The package's launcher is a stub until its install script has run. That is not necessary: the platform's package
  // has the executable.
  const platform = `@anthropic-ai/claude-code-${process.platform}-${process.arch}`;
  const executable = fileIn(packages, [`${platform}/claude`, `${platform}/claude.exe`], "Claude Code");
  const { code, output } = await command([process.execPath, "test", ...checks], {
    limit_ms: 20 * 60_000,
    environment: { CLAUDE_CODE: executable },
  });
  return { counts: countsOf(output, code), versions: packages.versions };
}

// The real Claude Code, from npm, against the service in front of the simulator. Its traffic stays on this machine.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { succeed } from "../virtual-environment.ts";

const version = "2.1.329";

export async function claudeCounts(): Promise<Counts> {
  const checks = ["claude-code.checks.ts", "units.checks.ts"].map((name) => join(import.meta.dir, name));
  const { code, output } = await command([process.execPath, "test", ...checks], {
    limit_ms: 20 * 60_000,
    environment: { CLAUDE_CODE: await installed() },
  });
  return countsOf(output, code);
}

/** Path of its executable: the package's own launcher is a stub until its install script has run, which it need not. */
async function installed(): Promise<string> {
  const folder = join(process.cwd(), ".cache/clients/claude-code", version);
  const platform = `@anthropic-ai/claude-code-${process.platform}-${process.arch}`;
  const executable = join(folder, "node_modules", platform, process.platform === "win32" ? "claude.exe" : "claude");
  if (existsSync(executable)) return executable;
  mkdirSync(folder, { recursive: true });
  const wanted = { private: true, dependencies: { "@anthropic-ai/claude-code": version } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(wanted));
  const install = [process.execPath, "install", "--cwd", folder, "--ignore-scripts"];
  await succeed(install, `Claude Code ${version} could not be installed`);
  if (!existsSync(executable)) throw new Error(`There is no Claude Code ${version} for this machine (${platform}).`);
  return executable;
}

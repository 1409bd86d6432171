// The real Codex, from npm, against the service in front of a scripted engine. Its traffic stays on this machine.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { succeed } from "../virtual-environment.ts";

const version = "0.169.0";

export async function codexCounts(): Promise<Counts> {
  const checks = ["codex.checks.ts", "compaction.checks.ts", "engines.checks.ts"].map((name) =>
    join(import.meta.dir, name),
  );
  const { code, output } = await command([process.execPath, "test", ...checks], {
    limit_ms: 15 * 60_000,
    environment: { CODEX: await installed() },
  });
  return countsOf(output, code);
}

/** Path of its executable, which is in a package of its own for each kind of machine. */
async function installed(): Promise<string> {
  const folder = join(process.cwd(), ".cache/clients/codex", version);
  const kind = `${process.platform}-${process.arch}`;
  const executable = () => executableIn(join(folder, "node_modules/@openai", `codex-${kind}`));
  if (executable() !== undefined) return executable()!;
  mkdirSync(folder, { recursive: true });
  const wanted = { private: true, dependencies: { "@openai/codex": version } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(wanted));
  const install = [process.execPath, "install", "--cwd", folder, "--ignore-scripts"];
  await succeed(install, `Codex ${version} could not be installed`);
  const found = executable();
  if (found === undefined) throw new Error(`There is no Codex ${version} for this machine (${kind}).`);
  return found;
}

function executableIn(platformPackage: string): string | undefined {
  const name = process.platform === "win32" ? "codex.exe" : "codex";
  const [found] = existsSync(platformPackage)
    ? [...new Bun.Glob(`vendor/*/bin/${name}`).scanSync({ cwd: platformPackage })]
    : [];
  return found === undefined ? undefined : join(platformPackage, found);
}

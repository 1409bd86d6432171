// The real pi, from npm, against the service in front of a scripted engine. Its traffic stays on this machine.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { succeed } from "../virtual-environment.ts";

const version = "0.73.1";

export async function piCounts(): Promise<Counts> {
  const { code, output } = await command([process.execPath, "test", join(import.meta.dir, "pi.checks.ts")], {
    limit_ms: 15 * 60_000,
    environment: { PI: await installed() },
  });
  return countsOf(output, code);
}

/** Path of its script. */
async function installed(): Promise<string> {
  const folder = join(process.cwd(), ".cache/clients/pi", version);
  const script = join(folder, "node_modules/@mariozechner/pi-coding-agent/dist/cli.js");
  if (existsSync(script)) return script;
  mkdirSync(folder, { recursive: true });
  const wanted = { private: true, dependencies: { "@mariozechner/pi-coding-agent": version } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(wanted));
  const install = [process.execPath, "install", "--cwd", folder, "--ignore-scripts"];
  await succeed(install, `pi ${version} could not be installed`);
  if (!existsSync(script)) throw new Error(`There is no script of pi ${version} at ${script}.`);
  return script;
}

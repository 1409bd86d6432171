// The AI SDK and the OpenAI Agents SDK, from npm, by Responses against the service in front of a scripted engine. What
// they would send elsewhere is caught.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { outsideTrap } from "../traffic.ts";
import { succeed } from "../virtual-environment.ts";

const versions = {
  ai: "7.0.173",
  "@ai-sdk/openai": "4.0.118",
  "@openai/agents": "0.20.0",
  openai: "7.55.0",
  zod: "4.6.7",
};

export async function aiCounts(): Promise<Counts> {
  const packages = await installed();
  const trap = outsideTrap();
  try {
    const { code, output } = await command([process.execPath, "test", join(import.meta.dir, "ai.checks.ts")], {
      limit_ms: 5 * 60_000,
      environment: { AI_PACKAGES: packages, ...trap.env },
    });
    if (trap.caught.length > 0) throw new Error(`They wanted to leave this machine: ${trap.caught.join(", ")}`);
    return countsOf(output, code);
  } finally {
    trap.stop();
  }
}

/** Path of the folder whose node_modules has them; made anew for other versions. */
async function installed(): Promise<string> {
  const folder = join(process.cwd(), ".cache/clients/ai");
  const wanted = JSON.stringify({ private: true, dependencies: versions });
  const madeFrom = join(folder, "made-from.json");
  if (existsSync(madeFrom) && readFileSync(madeFrom, "utf8") === wanted) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), wanted);
  const install = [process.execPath, "install", "--cwd", folder, "--ignore-scripts"];
  await succeed(install, "The AI SDK and the Agents SDK could not be installed");
  writeFileSync(madeFrom, wanted);
  return folder;
}

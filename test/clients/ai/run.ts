// Runs the AI SDK and the OpenAI Agents SDK, from npm, over Responses against the service in front of a scripted engine.
// Requests to other hosts are caught.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import type { Edition, Ran } from "../edition.ts";
import { npmPackages } from "../npm-packages.ts";
import { outsideTrap } from "../traffic.ts";

const wanted = {
  ai: "7.0.173",
  "@ai-sdk/openai": "4.0.118",
  "@openai/agents": "0.20.0",
  openai: "7.57.0",
  zod: "4.6.7",
};

export async function aiSuite(edition: Edition): Promise<Ran> {
  const { folder, versions } = await npmPackages("ai", wanted, edition);
  const trap = outsideTrap();
  try {
    const { code, output } = await command([process.execPath, "test", join(import.meta.dir, "ai.checks.ts")], {
      limit_ms: 5 * 60_000,
      environment: { AI_PACKAGES: folder, ...trap.env },
    });
    if (trap.caught.length > 0) throw new Error(`They wanted to leave this machine: ${trap.caught.join(", ")}`);
    return { counts: countsOf(output, code), versions };
  } finally {
    trap.stop();
  }
}

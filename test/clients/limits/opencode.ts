// Runs opencode once, in a folder of its own with a home directory of its own, until it ends or the time limit passes.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { agentFolder, ranUntil } from "../agent-process.ts";
import { outsideTrap } from "../traffic.ts";

export interface OpencodeRun {
  /** The exit code; null if opencode had not ended in time. */
  code: number | null;
  shown: string;
}

/**
 * The key is the protocol; the value has the package of opencode's provider, and the path to append to the service's
 * URL.
 */
export const providers = {
  chat: { npm: "@ai-sdk/openai-compatible", base: "/v1" },
  responses: { npm: "@ai-sdk/openai", base: "/v1" },
  messages: { npm: "@ai-sdk/anthropic", base: "/v1" },
};

export async function runOpencode(
  executable: string,
  to: { url: string; key: string; model: string; protocol: keyof typeof providers; limit_ms: number },
): Promise<OpencodeRun> {
  using folder = agentFolder();
  const { work, home } = folder;
  const { npm, base } = providers[to.protocol];
  const options = { baseURL: to.url + base, apiKey: to.key };
  const provider = { sluice: { npm, name: "Sluice", options, models: { [to.model]: { name: "Writer" } } } };
  const model = `sluice/${to.model}`;
  writeFileSync(join(work, "opencode.json"), JSON.stringify({ provider, model, small_model: model }));
  // Blocked requests: opencode asks a registry for its providers' packages, gets an error, and goes on with the
  // packages that it has.
  const trap = outsideTrap();
  const env = { ...quiet, PATH: process.env.PATH ?? "", HOME: home, ...trap.env };
  const words = ["run", "--model", model, "Say hello."];
  try {
    const how = { cwd: work, env, limit_ms: to.limit_ms };
    const { isLate, code, out, err } = await ranUntil([executable, ...words], how);
    return { code: isLate ? null : code, shown: out + err };
  } finally {
    trap.stop();
  }
}

/** The environment variables of opencode that keep it from sending requests to other machines. */
export const quiet: Record<string, string> = Object.fromEntries(
  ["MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "SHARE", "DEFAULT_PLUGINS"].map((what) => [
    `OPENCODE_DISABLE_${what}`,
    "1",
  ]),
);

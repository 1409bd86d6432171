// One run of pi in a folder of its own, with a home of its own, and what it asked of the service on the way.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { filesOf, runToEnd } from "../agent-process.ts";
import { type Asked, outsideTrap, watched } from "../traffic.ts";

const run_ms = 90_000;

/** pi's own names for the protocols, with the path to append to the service's URL. */
export const basePaths = { "openai-completions": "/v1", "anthropic-messages": "", "openai-responses": "/v1" };
export type Api = keyof typeof basePaths;
export const apis = Object.keys(basePaths) as Api[];

export interface Run {
  /** Exit code. */
  code: number;
  /** The answer that pi printed; on the next line, what it printed as errors. */
  answer: string;
  errors: string;
  /** The files in the run's folder afterwards, by name. */
  files: Record<string, string>;
  asked: Asked[];
}

export interface RunOptions {
  /** Base URL of the service. */
  url: string;
  key: string;
  model: string;
  api: Api;
  prompt: string;
}

export async function runAgent(options: RunOptions): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-agent-"));
  const [work, home] = [join(folder, "work"), join(folder, "home")];
  const watch = watched(options);
  const trap = outsideTrap();
  for (const one of [work, home]) mkdirSync(one);
  writeFileSync(join(home, "models.json"), JSON.stringify(modelsFor(watch.url, options)));
  const words = ["--print", "--no-session", "--offline", "--provider", "sluice", "--model", options.model];
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: home, PI_CODING_AGENT_DIR: home },
    ...{ ...trap.env, SLUICE_KEY: options.key },
  };
  try {
    const command = [process.execPath, process.env.PI ?? "", ...words, options.prompt];
    const { code, out, err } = await runToEnd(command, { cwd: work, env, limit_ms: run_ms });
    if (trap.caught.length > 0) throw new Error(`pi wanted to leave this machine: ${trap.caught.join(", ")}`);
    return { code, answer: out.trim(), errors: err, files: filesOf(work), asked: watch.asked };
  } finally {
    watch.stop();
    trap.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** pi's model configuration, as docs/clients.md shows it. */
function modelsFor(url: string, { api, model }: RunOptions): object {
  const baseUrl = url + basePaths[api];
  return { providers: { sluice: { baseUrl, api, apiKey: "$SLUICE_KEY", models: [{ id: model, reasoning: true }] } } };
}

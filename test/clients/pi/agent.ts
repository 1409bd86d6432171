// Runs pi once in a folder of its own, with a home directory of its own, and records its requests to the service.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { agentFolder, filesOf, runWatched, type WatchedRun } from "../agent-process.ts";

const run_ms = 90_000;

/** pi's own names for the protocols, with the path to append to the service's URL. */
export const basePaths = { "openai-completions": "/v1", "anthropic-messages": "", "openai-responses": "/v1" };
export type Api = keyof typeof basePaths;
export const apis = Object.keys(basePaths) as Api[];

export interface Run extends Pick<WatchedRun, "code" | "asked"> {
  /** The text that pi printed; on the next line, the errors that it printed. */
  answer: string;
  errors: string;
  /** The files in the run's folder afterwards, by name. */
  files: Record<string, string>;
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
  using folder = agentFolder();
  const { work, home } = folder;
  const watching = { name: "pi", url: options.url, limit_ms: run_ms };
  const { code, out, err, asked } = await runWatched(folder, watching, (proxy) => {
    writeFileSync(join(home, "models.json"), JSON.stringify(modelsFor(proxy, options)));
    const words = ["--print", "--no-session", "--offline", "--provider", "sluice", "--model", options.model];
    const command = [process.execPath, process.env.PI ?? "", ...words, options.prompt];
    return { command, env: { PI_CODING_AGENT_DIR: home, SLUICE_KEY: options.key } };
  });
  return { code, answer: out.trim(), errors: err, files: filesOf(work), asked };
}

/** pi's model configuration, as docs/clients.md shows it. */
function modelsFor(url: string, { api, model }: RunOptions): object {
  const baseUrl = url + basePaths[api];
  return { providers: { sluice: { baseUrl, api, apiKey: "$SLUICE_KEY", models: [{ id: model, reasoning: true }] } } };
}

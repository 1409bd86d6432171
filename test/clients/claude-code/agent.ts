// Runs Claude Code once in a folder of its own, with a home directory of its own, and records its requests to the
// service.

import { agentFolder, runWatched, type WatchedRun } from "../agent-process.ts";
import type { Instead } from "../traffic.ts";

const standardRun_ms = 120_000;

export interface Run extends Pick<WatchedRun, "asked" | "took_ms"> {
  /** The text that Claude Code printed as the result, or as its error. */
  result: string;
  failed: boolean;
  usage: { input_tokens: number; output_tokens: number };
}

export interface RunOptions {
  /** The base URL of the service. */
  url: string;
  model: string;
  /** Returns the prompt, given the folder in which the agent works. */
  prompt: (folder: string) => string;
  /** The environment variables with the credential. */
  env: Record<string, string>;
  /** The files in the agent's folder at the start, by name. */
  files?: Record<string, string>;
  instead?: Instead;
  run_ms?: number;
}

export async function runAgent(options: RunOptions): Promise<Run> {
  using folder = agentFolder(options.files);
  const { url, instead, run_ms: limit_ms = standardRun_ms } = options;
  const { out, err, asked, took_ms } = await runWatched(
    folder,
    { name: "Claude Code", url, instead, limit_ms },
    (proxy) => {
      const words = ["-p", options.prompt(folder.work), "--model", options.model, "--output-format", "json"];
      const env = { ...quiet, ANTHROPIC_BASE_URL: proxy, ...options.env };
      return { command: [process.env.CLAUDE_CODE ?? "claude", ...words], env };
    },
  );
  return { ...answerIn(out, err), asked, took_ms };
}

/** The agent's own switches that prevent requests to other hosts. */
export const quiet = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_TELEMETRY: "1",
  DISABLE_ERROR_REPORTING: "1",
  DISABLE_AUTOUPDATER: "1",
  IS_SANDBOX: "1",
};

function answerIn(out: string, err: string): Pick<Run, "result" | "failed" | "usage"> {
  try {
    const { result, is_error, usage } = JSON.parse(out) as {
      result: string;
      is_error: boolean;
      usage: Run["usage"];
    };
    return { result, failed: is_error, usage };
  } catch {
    throw new Error(`Claude Code answered with no JSON: ${out.slice(0, 2000)} ${err.slice(0, 2000)}`);
  }
}

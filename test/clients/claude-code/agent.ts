// One run of Claude Code in a folder of its own, with a home of its own, and the requests that it sent to the service.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Asked, type Instead, outsideTrap, watched } from "../traffic.ts";

const standardRun_ms = 120_000;

export interface Run {
  /** The text that it printed as its answer, or as its error. */
  result: string;
  failed: boolean;
  usage: { input_tokens: number; output_tokens: number };
  asked: Asked[];
  took_ms: number;
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
  const folder = mkdtempSync(join(tmpdir(), "sluice-agent-"));
  const work = join(folder, "work");
  mkdirSync(work);
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(work, name), text);
  const watch = watched(options);
  const trap = outsideTrap();
  const began_ms = performance.now();
  const words = ["-p", options.prompt(work), "--model", options.model, "--output-format", "json"];
  const child = Bun.spawn([process.env.CLAUDE_CODE ?? "claude", ...words], {
    cwd: work,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: folder,
      ...quiet,
      ...trap.env,
      ANTHROPIC_BASE_URL: watch.url,
      ...options.env,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), options.run_ms ?? standardRun_ms);
  try {
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (trap.caught.length > 0) throw new Error(`Claude Code wanted to leave this machine: ${trap.caught.join(", ")}`);
    return { ...answerIn(out, err), asked: watch.asked, took_ms: performance.now() - began_ms };
  } finally {
    clearTimeout(timer);
    watch.stop();
    trap.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The agent's own switches that prevent requests to other hosts. */
const quiet = {
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

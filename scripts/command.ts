// Running one program for a script: shown as it goes, bounded in time, and never left behind.

import { spawn } from "node:child_process";

export interface Outcome {
  /** 0 when the program succeeded; 124 when the time limit ended it. */
  code: number;
  /** What it printed, both channels in the order in which they came. */
  output: string;
  /** Of that, what came on standard output. */
  stdout: string;
  took_ms: number;
}

export interface CommandOptions {
  limit_ms: number;
  environment?: Record<string, string | undefined>;
  /** Keep what it prints for the outcome alone. */
  quiet?: boolean;
  /** How long it may take to end when it is asked to: longer for one that has such programs of its own to end. */
  grace_ms?: number;
}

/** Runs it in a process group of its own, which is swept at its end: what it started and left ends with it. */
export async function command(words: string[], options: CommandOptions): Promise<Outcome> {
  const began = performance.now();
  const { grace_ms = 300 } = options;
  const [program = "", ...rest] = words;
  const child = spawn(program, rest, {
    env: { ...process.env, ...options.environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  let stdout = "";
  let timedOut = false;
  const sweep = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // The group is gone already.
    }
  };
  // First a request: what runs under it may have groups of its own to sweep.
  const end = () => {
    sweep("SIGTERM");
    return setTimeout(() => sweep("SIGKILL"), grace_ms);
  };
  // The script itself was asked to end: it starts nothing more, so this never answers.
  let isEnding = false;
  const onSignal = (signal: NodeJS.Signals) => {
    isEnding = true;
    end();
    setTimeout(() => process.exit(signal === "SIGINT" ? 130 : 143), grace_ms + 100);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal).on("SIGHUP", onSignal);
  const limit = setTimeout(() => {
    timedOut = true;
    end();
  }, options.limit_ms);
  for (const [channel, shown] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ] as const) {
    channel.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (channel === child.stdout) stdout += text;
      if (!options.quiet) shown.write(text);
    });
  }
  const code = await new Promise<number>((resolve) => {
    child.once("error", (failure) => {
      output += `${failure.message}\n`;
      resolve(127);
    });
    child.once("exit", (status) => {
      sweep("SIGKILL");
      // What holds the pipes open has just been swept; what they still carry is read.
      child.once("close", () => isEnding || resolve(status ?? 1));
    });
  });
  clearTimeout(limit);
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal).off("SIGHUP", onSignal);
  return { code: timedOut ? 124 : code, output, stdout, took_ms: performance.now() - began };
}

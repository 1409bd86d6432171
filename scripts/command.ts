// Runs one program for a script: shows its output, limits its time, and leaves no process behind.

import { spawn } from "node:child_process";

/** The program that runs a script of package.json: npm, or Bun where there is no npm. */
export const npmRun = Bun.which("npm") === null ? [process.execPath, "run"] : ["npm", "run"];

export interface Outcome {
  /** 0 if the program succeeded; 124 if the time limit ended it. */
  code: number;
  /** The output on both channels, in order of arrival. */
  output: string;
  /** The part of the output that was written to standard output. */
  stdout: string;
  took_ms: number;
}

export interface CommandOptions {
  limit_ms: number;
  /** The folder in which the program runs. Absent: this process's own. */
  folder?: string;
  environment?: Record<string, string | undefined>;
  /** Don't show the output; only return it. */
  quiet?: boolean;
  /** How long the program may take to end after SIGTERM. It needs longer if it has programs of its own to end. */
  grace_ms?: number;
}

/**
 * Runs a program in a process group of its own, and kills the group when the program ends, with everything that it left
 * running.
 */
export async function command(words: string[], options: CommandOptions): Promise<Outcome> {
  const began = performance.now();
  const { grace_ms = 300 } = options;
  const [program = "", ...rest] = words;
  const child = spawn(program, rest, {
    cwd: options.folder,
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
      // The process group has ended already.
    }
  };
  // SIGTERM first: the program may have groups of its own to kill.
  const end = () => {
    sweep("SIGTERM");
    return setTimeout(() => sweep("SIGKILL"), grace_ms);
  };
  // After a signal to the script itself, `command` never resolves, so that the script starts nothing more.
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
      // All writers of the pipes have ended by now; what they left in the pipes is still read.
      child.once("close", () => isEnding || resolve(status ?? 1));
    });
  });
  clearTimeout(limit);
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal).off("SIGHUP", onSignal);
  return { code: timedOut ? 124 : code, output, stdout, took_ms: performance.now() - began };
}

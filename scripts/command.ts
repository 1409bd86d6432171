// Runs one program for a script: prints its output, limits its time, and leaves no process behind.

import { spawn } from "node:child_process";

/** The command that runs a script of package.json: npm, or Bun if npm is not installed. */
export const npmRun = Bun.which("npm") === null ? [process.execPath, "run"] : ["npm", "run"];

export interface Outcome {
  /** The exit code; 124 if the time limit ended the program. */
  code: number;
  /** The output on stdout and stderr, in the order of arrival. */
  output: string;
  /** The part of the output that was written to stdout. */
  stdout: string;
  took_ms: number;
}

export interface CommandOptions {
  limit_ms: number;
  /** The working directory of the program. By default that of this process. */
  folder?: string;
  environment?: Record<string, string | undefined>;
  /** Whether the output is only returned, and not printed. */
  quiet?: boolean;
  /**
   * How long the program may take to exit after SIGTERM, in milliseconds. A program that has to end others needs
   * longer.
   */
  grace_ms?: number;
}

/**
 * Runs a program in a process group of its own. When the program ends, the group is killed, with everything that the
 * program left running.
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
  // SIGTERM is sent first, because the program may have to kill process groups of its own.
  const end = () => {
    sweep("SIGTERM");
    return setTimeout(() => sweep("SIGKILL"), grace_ms);
  };
  // After a signal to the script itself, `command` never resolves, so that the script starts no further program.
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
      // All processes that wrote to the pipes have ended by now; the rest of the data in the pipes is still read.
      child.once("close", () => isEnding || resolve(status ?? 1));
    });
  });
  clearTimeout(limit);
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal).off("SIGHUP", onSignal);
  return { code: timedOut ? 124 : code, output, stdout, took_ms: performance.now() - began };
}

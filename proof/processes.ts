// Runs programs that are killed, frozen and restarted, always on the same port.

import { type ChildProcess, spawn } from "node:child_process";
import { childrenOf } from "../test/harness/daemon.ts";
import { pause } from "./pause.ts";
import type { Part } from "./target.ts";

export interface Program extends Part {
  lastWords(): string;
  stop(): Promise<void>;
}

export interface ProgramOptions {
  name: string;
  kind: Part["kind"];
  command: readonly [string, ...string[]];
  environment: Record<string, string>;
  folder: string;
  /** The account that the program runs as, for programs that refuse to run as root. */
  account?: { uid?: number; gid?: number };
  /** Checks whether the program works. */
  isReady(): Promise<boolean>;
  deadline_ms: number;
}

const words_max = 4_000;

export function program(options: ProgramOptions): Program {
  let child: ChildProcess | null = null;
  let words = "";
  const ended = async () => {
    const running = child;
    if (running === null || running.exitCode !== null || running.signalCode !== null) return;
    await new Promise((resolve) => running.once("exit", resolve));
  };
  /**
   * Signals the program and its child processes, because some programs, such as Postgres, put each of these into a
   * process group of its own.
   */
  const signal = (name: NodeJS.Signals) => {
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    for (const pid of [child.pid, ...childrenOf(child.pid)]) send(pid, name);
  };
  return {
    name: options.name,
    kind: options.kind,
    async start() {
      const [file, ...rest] = options.command;
      child = spawn(file, rest, {
        ...options.account,
        cwd: options.folder,
        env: { PATH: process.env.PATH ?? "", ...options.environment },
        stdio: ["ignore", "pipe", "pipe"],
      });
      for (const output of [child.stdout, child.stderr])
        output?.on("data", (bytes) => {
          words = (words + bytes).slice(-words_max);
        });
      const deadline_ms = Date.now() + options.deadline_ms;
      while (!(await options.isReady().catch(() => false))) {
        if (Date.now() > deadline_ms || child.exitCode !== null)
          throw new Error(`${options.name} did not start:\n${words}`);
        await pause(50);
      }
    },
    async kill() {
      signal("SIGKILL");
      await ended();
    },
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    lastWords: () => `${options.name}: ${words}`,
    async stop() {
      signal("SIGKILL");
      await ended();
    },
  };
}

export async function answersWith(url: string, status: number): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
  return response.status === status;
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The program has ended by itself.
  }
}

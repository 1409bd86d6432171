// Starts an engine's server on a free port of this machine, and ends it together with all its child processes.

import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { freePort } from "../../harness/daemon.ts";
import { until } from "../../harness/until.ts";

export interface ServerOptions {
  /** The server's command, given its port. */
  words(port: number): string[];
  environment?: Record<string, string>;
  /** The path, from the root of the server, that returns 200 once the server is ready. */
  ready: string;
  start_ms: number;
  /** The path of the file for the server's log. If absent, the output is discarded. */
  log?: string;
}

export interface Server {
  /** The URL, without a path. */
  root: string;
  stop(): Promise<void>;
}

export async function startServer({ words, environment, ready, start_ms, log }: ServerOptions): Promise<Server> {
  const port = await freePort();
  const root = `http://127.0.0.1:${port}`;
  const [program = "", ...rest] = words(port);
  const output = log === undefined ? "ignore" : openSync(log, "a");
  // The server gets a process group of its own, because engines start worker processes that outlive them. Its standard
  // input stays open until this process ends.
  const child = spawn(program, rest, {
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...environment },
    stdio: ["pipe", output, output],
    detached: true,
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()).once("error", () => resolve()));
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // The process group has ended already.
    }
  };
  process.once("exit", kill);
  const isUp = () =>
    fetch(root + ready).then(
      ({ ok }) => ok || hasEnded,
      () => hasEnded,
    );
  await until(isUp, start_ms, `${program} to serve`).catch((late) => {
    kill();
    throw late;
  });
  if (hasEnded) throw new Error(`${program} ended (${child.exitCode}) instead of serving${log ? `; see ${log}` : ""}`);
  return {
    root,
    stop: async () => {
      kill();
      await ended;
      process.off("exit", kill);
    },
  };
}

// Runs an agent as a process in a folder of its own, with a home directory of its own. Returns the requests that it
// sent to the service, and the files in its folder afterwards.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Asked, type Instead, watched, withinMachine } from "./traffic.ts";

export interface Ended {
  /** The exit code of the process. */
  code: number;
  out: string;
  err: string;
}

interface Limits {
  cwd: string;
  env: Record<string, string>;
  limit_ms: number;
}

/** Waits until the agent has ended, and kills it at the deadline. */
export async function ranUntil(
  command: string[],
  { cwd, env, limit_ms }: Limits,
): Promise<Ended & { isLate: boolean }> {
  const child = Bun.spawn(command, { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, limit_ms);
  try {
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, out, err, isLate };
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until the agent has ended. Throws at the deadline. */
export async function runToEnd(command: string[], limits: Limits): Promise<Ended> {
  const { isLate, ...ended } = await ranUntil(command, limits);
  const { out, err } = ended;
  if (isLate) throw new Error(`It did not end within ${limits.limit_ms} ms: ${out.slice(-2000)} ${err.slice(-2000)}`);
  return ended;
}

export interface AgentFolder extends Disposable {
  work: string;
  home: string;
}

/** Creates a folder in which an agent works, with these files in it, and a home directory beside it. */
export function agentFolder(files: Record<string, string> = {}): AgentFolder {
  const folder = mkdtempSync(join(tmpdir(), "sluice-agent-"));
  const [work, home] = [join(folder, "work"), join(folder, "home")];
  for (const one of [work, home]) mkdirSync(one);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(work, name), text);
  return { work, home, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

export interface WatchedRun extends Ended {
  asked: Asked[];
  took_ms: number;
}

export interface Watching {
  /** The agent's name, for the error that is thrown if it tries to reach another machine. */
  name: string;
  /** The base URL of the service, or a function that returns the base URL of the node for each new connection. */
  url: string | (() => string);
  instead?: Instead | undefined;
  limit_ms: number;
}

/**
 * Runs an agent behind a proxy that records its requests to the service. `started` gets the proxy's URL, and returns
 * the agent's command and its environment variables.
 */
export async function runWatched(
  { work, home }: Pick<AgentFolder, "work" | "home">,
  { name, url, instead, limit_ms }: Watching,
  started: (url: string) => { command: string[]; env: Record<string, string> },
): Promise<WatchedRun> {
  const watch = watched({ url, ...(instead && { instead }) });
  const began_ms = performance.now();
  try {
    const { command, env } = started(watch.url);
    const ended = await withinMachine((trapped) => {
      const own = { PATH: process.env.PATH ?? "", HOME: home, ...trapped, ...env };
      return runToEnd(command, { cwd: work, env: own, limit_ms });
    }, name);
    return { ...ended, asked: watch.asked, took_ms: performance.now() - began_ms };
  } finally {
    watch.stop();
  }
}

/** The contents of the files in a folder, by file name. */
export function filesOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(entries.map(({ name }) => [name, readFileSync(join(folder, name), "utf8")]));
}

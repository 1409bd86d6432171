// Starts and stops the programs of a measurement, and reads their CPU time from the kernel.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { promisify } from "node:util";

const ticks_a_second = 100;
const words_max = 4_000;

export interface Program {
  pid: number;
  stop(): Promise<void>;
}

export interface ProgramOptions {
  environment?: Record<string, string>;
  folder: string;
  /** The account that the program runs as, for programs that refuse to run as root. */
  account?: { uid?: number; gid?: number };
  isReady(): Promise<boolean>;
  ready_ms_max: number;
}

/** The programs that are running. All of them are stopped at the end. */
const started = new Set<ChildProcess>();

export async function stopAll(): Promise<void> {
  await Promise.all([...started].map(ended));
}

for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => void stopAll().finally(() => process.exit(1)));

/** Starts a program, and waits until it is ready. */
export async function start(words: readonly string[], options: ProgramOptions): Promise<Program> {
  const [file = "", ...rest] = words;
  const child = spawn(file, rest, {
    ...options.account,
    cwd: options.folder,
    env: { PATH: process.env.PATH, HOME: options.folder, ...options.environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  started.add(child);
  child.once("exit", () => started.delete(child));
  let said = "";
  for (const channel of [child.stdout, child.stderr])
    channel.on("data", (bytes) => {
      said = (said + bytes).slice(-words_max);
    });
  child.on("error", (failure) => {
    said += failure.message;
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
  const isReady = async () => hasEnded() || (await options.isReady().catch(() => false));
  await until(isReady, options.ready_ms_max, () => `${file} is not ready: ${said.slice(-500)}`);
  if (hasEnded()) throw new Error(`${file} ended by itself: ${said}`);
  return { pid: child.pid!, stop: () => ended(child) };
}

async function ended(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  if (child.exitCode !== null || child.signalCode !== null) return;
  // Signals the program's whole process group, because some programs leave child processes behind.
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-child.pid!, name);
    } catch {
      // The process has ended by itself.
    }
  };
  signal("SIGTERM");
  const late = setTimeout(() => signal("SIGKILL"), 10_000);
  await gone;
  clearTimeout(late);
}

export async function output(words: readonly string[], environment: Record<string, string> = {}): Promise<string> {
  const [file = "", ...rest] = words;
  const env = { ...process.env, ...environment };
  return (await promisify(execFile)(file, rest, { env, maxBuffer: 1 << 26 })).stdout.trim();
}

/** The user and system CPU time so far of these processes and all their descendants. */
export function cpu_us(roots: readonly number[]): number {
  const parents = new Map<number, number>();
  const used = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const fields = Number.isInteger(pid) ? statOf(pid) : null;
    if (!fields) continue;
    parents.set(pid, Number(fields[1]));
    // The process's own user and system time, and that of its child processes that have ended.
    const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
    used.set(pid, (ticks * 1e6) / ticks_a_second);
  }
  const isWithin = (pid: number): boolean => roots.includes(pid) || (parents.has(pid) && isWithin(parents.get(pid)!));
  return [...used].reduce((sum, [pid, time_us]) => sum + (isWithin(pid) ? time_us : 0), 0);
}

function statOf(pid: number): string[] | null {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
  } catch {
    // The process has ended since the list was read.
    return null;
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

export async function until(
  isTrue: () => Promise<boolean> | boolean,
  most_ms: number,
  what: () => string,
): Promise<void> {
  const deadline_ms = Date.now() + most_ms;
  while (!(await isTrue())) {
    if (Date.now() > deadline_ms) throw new Error(`${what()} (waited ${most_ms / 1000} s)`);
    await pause(100);
  }
}

export const pause = (time_ms: number) => new Promise<void>((resolve) => setTimeout(resolve, time_ms));

export async function answers(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
  return response.status < 500;
}

/** Sends a request with JSON. Throws an error with the response's text if the request is refused. */
export async function ask(
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: object,
): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${new URL(url).pathname}: ${response.status} ${text.slice(0, 400)}`);
  return text === "" ? null : JSON.parse(text);
}

// Runs one real service for tests (Postgres or Redis) whose life is tied to the process that started it: the service
// ends and its folder is removed when that process ends, whether by normal exit, Ctrl-C, crash, or kill -9.

import { spawn } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The account that a service runs as. Empty: the account of this process. */
export interface Account {
  uid?: number;
  gid?: number;
}

/** Postgres refuses to run as root, so root runs it as the user "nobody". */
export const account: Account = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

export interface Daemon {
  /** Resolves when the service has ended and its folder is removed. */
  stop(): Promise<void>;
}

export interface DaemonOptions {
  name: string;
  command: string[];
  environment: Record<string, string>;
  /**
   * The folder that `serviceFolder` made for the service; it is removed when the service ends. The service's output
   * goes to its file `log`.
   */
  folder: string;
  /** Whether the service accepts requests. It is called repeatedly until it returns true or the deadline passes. */
  ready(): Promise<boolean>;
  deadline_ms: number;
}

// The shell's `read` waits on a pipe whose other end this process holds. When this process has ended, for whatever
// reason, `read` returns: the shell stops the service and removes its folder. SIGINT ends Postgres and Redis
// immediately, without waiting for clients. The shell itself only reports that a service ended by itself, so a test
// runner that kills its children loses no more than that report.
const watchdog = `
folder=$1; name=$2; shift 2
exec 3<&0
"$@" >>"$folder/log" 2>&1 </dev/null 3<&- &
service=$!
(
  read -r line <&3
  : >"$folder/asked"
  kill -INT $service
  tries=0
  while kill -0 $service && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
  kill -KILL $service
  rm -rf "$folder"
) >/dev/null 2>&1 &
reader=$!
wait $service
[ -e "$folder/asked" ] && { wait $reader; exit 0; }
{ echo "$name ended by itself. Its last words:"; tail -n 20 "$folder/log"; } >&2
kill $reader
rm -rf "$folder"
exit 1
`;

/** A new folder that the services' account owns. */
export function serviceFolder(name: string): string {
  // Root's temporary folder may be closed to the user "nobody".
  const folder = mkdtempSync(join(account.uid === undefined ? tmpdir() : "/tmp", `sluice-test-${name}-`));
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid!);
  chmodSync(folder, 0o700);
  return folder;
}

/** The IDs of a process's child processes. Empty where the system does not tell. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/**
 * A range of ports below those that the system assigns to outgoing connections, because an outgoing connection could
 * take such a port before the service listens on it.
 */
const ports = { from: 10_000, count: 22_000 };

/** A port on which no program listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = ports.from + Math.floor(Math.random() * ports.count);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** Starts the service and waits until it is ready. Throws if the service exits or the deadline passes before that. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const child = spawn("/bin/sh", ["-c", watchdog, "watchdog", options.folder, options.name, ...options.command], {
    ...account,
    cwd: options.folder,
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", ...options.environment },
    stdio: ["pipe", "ignore", "inherit"],
    detached: true, // a process session of its own, so that Ctrl-C reaches only the tests
  });
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const stop = () => {
    child.stdin.destroy();
    return ended;
  };
  const deadline = Date.now() + options.deadline_ms;
  while (!(await options.ready())) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${options.name} ended while starting`);
    if (Date.now() > deadline) {
      await stop();
      throw new Error(`${options.name} was not ready within ${options.deadline_ms} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  // The child must not keep this process running: the end of this process is the signal to stop the service.
  child.unref();
  if ("unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();
  return { stop };
}

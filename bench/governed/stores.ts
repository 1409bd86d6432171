// Starts a Postgres and a Redis for the run, from installed programs: `initdb` and `postgres` in the PATH or in
// GOVERNED_POSTGRES (a folder), `redis-server` in the PATH or GOVERNED_REDIS (a program). Postgres does not wait for
// its disk.

import { execFile } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort, output, type Program, start } from "./processes.ts";

export interface Store extends Program {
  url: string;
}

/** The account that Postgres runs as, because it refuses to run as root. */
const account = process.getuid?.() === 0 ? { uid: idOf("nobody", 2), gid: idOf("nobody", 3) } : {};

export async function postgres(parent: string): Promise<Store> {
  const folder = join(parent, "postgres");
  mkdirSync(folder, { recursive: true });
  if (account.uid !== undefined) {
    chownSync(folder, account.uid, account.gid);
    chmodSync(parent, 0o755);
  }
  const programs = process.env.GOVERNED_POSTGRES;
  const program = (name: string) => (programs ? join(programs, name) : name);
  const data = join(folder, "data");
  const how = ["-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale"];
  await promisify(execFile)(program("initdb"), how, { ...account, cwd: folder });
  const port = await freePort();
  const settings = ["fsync=off", "listen_addresses=127.0.0.1", "max_connections=200", "unix_socket_directories="];
  const words = [program("postgres"), "-D", data, "-p", `${port}`, ...settings.flatMap((one) => ["-c", one])];
  const isReady = () => says(port, startUp).then((bytes) => bytes.startsWith("R"));
  const running = await start(words, { folder, account, isReady, ready_ms_max: 60_000 });
  return { ...running, url: `postgres://postgres@127.0.0.1:${port}/postgres` };
}

export async function redis(folder: string): Promise<Store> {
  const port = await freePort();
  const program = process.env.GOVERNED_REDIS ?? "redis-server";
  const words = [program, "--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--dir", folder];
  const isReady = () => says(port, "PING\r\n").then((bytes) => bytes.startsWith("+PONG"));
  const running = await start(words, { folder, isReady, ready_ms_max: 30_000 });
  return { ...running, url: `redis://127.0.0.1:${port}` };
}

export const versionOfStores = async (): Promise<string> => {
  const programs = process.env.GOVERNED_POSTGRES;
  const first = await output([programs ? join(programs, "postgres") : "postgres", "--version"]).catch(
    () => "no Postgres",
  );
  const second = await output([process.env.GOVERNED_REDIS ?? "redis-server", "--version"]).catch(() => "no Redis");
  return `${first}; ${second.split(" sha=")[0]}`;
};

function idOf(name: string, column: number): number {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((one) => one.startsWith(`${name}:`));
  return Number(line?.split(":")[column]);
}

/**
 * The startup message of Postgres' protocol 3.0, for user and database `postgres`. A server that is ready responds with
 * R.
 */
export const startUp = (() => {
  const text = "user\0postgres\0database\0postgres\0\0";
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + text.length, 0);
  head.writeInt32BE(3 << 16, 4);
  return Buffer.concat([head, Buffer.from(text)]);
})();

/** Sends a message to the server, and returns the first bytes of its response. */
export function says(port: number, message: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(message));
    socket.setTimeout(2_000, () => socket.destroy(new Error("no answer")));
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("closed")));
    socket.once("data", (bytes) => {
      resolve(bytes.toString("latin1"));
      socket.destroy();
    });
  });
}

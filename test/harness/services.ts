// The URLs of the tests' real Postgres and Redis: `TEST_DATABASE_URL` and `TEST_REDIS_URL`, which the test runner sets
// to servers that it starts once for the whole run; else DATABASE_URL and REDIS_URL; else a server of each kind that
// starts when this process first needs it and ends with the process.

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import postgres from "postgres";
import { type Programs, postgresPrograms, reachable, redisPrograms } from "./binaries.ts";
import { account, type Daemon, freePort, serviceFolder, startDaemon } from "./daemon.ts";

/** URL of a Postgres whose user may create databases. */
export function postgresUrl(): Promise<string> {
  const given = process.env.TEST_DATABASE_URL || process.env.DATABASE_URL;
  return given ? Promise.resolve(given) : once("postgres", async () => (await startPostgres()).url);
}

/** The URL of a Redis. Other tests use the same Redis concurrently, so every test needs a key prefix of its own. */
export function redisUrl(): Promise<string> {
  const given = process.env.TEST_REDIS_URL || process.env.REDIS_URL;
  return given ? Promise.resolve(given) : once("redis", async () => (await startRedis()).url);
}

/** Creates an empty database for one test. `drop` also ends the connections that are still open to it. */
export async function freshDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const server = await postgresUrl();
  const name = `sluice_test_${randomUUID().replaceAll("-", "")}`;
  await statement(server, `create database "${name}"`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => statement(server, `drop database if exists "${name}" with (force)`) };
}

export interface Service extends Daemon {
  url: string;
}

/**
 * Starts a Postgres server for a test that stops the server, or that needs settings of its own (`prepared` gets the
 * data folder and returns more settings). Every other test uses `freshDatabase`.
 */
export async function startPostgres(port?: number, prepared = (_data: string): string[] => []): Promise<Service> {
  const found = await postgresPrograms();
  return onFreePort("postgres", port, async (chosen, folder) => {
    const programs = await reachable(found, "postgres", account, join(folder, "programs"));
    const data = await newCluster(programs, folder);
    const settings = [
      "fsync=off",
      "synchronous_commit=off",
      "full_page_writes=off",
      "max_connections=400",
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${folder}`,
      ...prepared(data),
    ];
    const daemon = await startDaemon({
      name: "postgres",
      command: postgresCommand(programs, data, chosen, settings),
      environment: programs.environment,
      folder,
      ready: () => answers(`postgres://postgres@127.0.0.1:${chosen}/postgres`),
      deadline_ms: 30_000,
    });
    return { url: `postgres://postgres@127.0.0.1:${chosen}/postgres`, ...daemon };
  });
}

/** Makes the data folder of a Postgres below this folder, which its account owns. */
export async function newCluster(programs: Programs, folder: string): Promise<string> {
  const data = join(folder, "data");
  const words = ["-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale"];
  const env = { PATH: process.env.PATH ?? "", ...programs.environment };
  await promisify(execFile)(join(programs.folder, "initdb"), words, { ...account, cwd: folder, env, timeout: 60_000 });
  return data;
}

export function postgresCommand(programs: Programs, data: string, port: number, settings: string[]): string[] {
  const given = settings.flatMap((line) => ["-c", line]);
  return [join(programs.folder, "postgres"), "-D", data, "-p", `${port}`, ...given];
}

/**
 * Starts a Redis server for a test that stops the server, or that needs settings of its own. Every other test uses
 * `redisUrl`.
 */
export async function startRedis(
  port?: number,
  prepared = (_folder: string): Record<string, string | number> => ({}),
): Promise<Service> {
  const found = await redisPrograms();
  return onFreePort("redis", port, async (chosen, folder) => {
    const programs = await reachable(found, "redis-server", account, join(folder, "programs"));
    const settings = {
      ...{ "--port": chosen, "--bind": "127.0.0.1", "--save": "", "--appendonly": "no" },
      ...prepared(folder),
    };
    const daemon = await startDaemon({
      name: "redis",
      command: [join(programs.folder, "redis-server"), ...Object.entries(settings).flat().map(String)],
      environment: programs.environment,
      folder,
      ready: () => pongs(chosen),
      deadline_ms: 15_000,
    });
    return { url: `redis://127.0.0.1:${chosen}`, ...daemon };
  });
}

/** Starts a service once for this process, even if several test files import their own instance of this module. */
function once(name: string, start: () => Promise<string>): Promise<string> {
  const shared = globalThis as { [key: symbol]: Promise<string> | undefined };
  const key = Symbol.for(`sluice.test.${name}`);
  shared[key] ??= start();
  return shared[key];
}

/** Retries on another port if another program has taken the port after it was found free. */
async function onFreePort(
  name: string,
  port: number | undefined,
  start: (port: number, folder: string) => Promise<Service>,
): Promise<Service> {
  let failure: unknown;
  for (let attempt = 0; attempt < 3; attempt++) {
    const folder = serviceFolder(name);
    try {
      return await start(port ?? (await freePort()), folder);
    } catch (thrown) {
      failure = thrown;
      rmSync(folder, { recursive: true, force: true });
    }
  }
  throw failure;
}

async function statement(url: string, text: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    await sql.unsafe(text);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function answers(url: string): Promise<boolean> {
  return statement(url, "select 1").then(
    () => true,
    () => false,
  );
}

function pongs(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.setTimeout(1000, () => socket.destroy());
    socket.once("data", (data) => {
      // A Redis that requires a password is ready, too.
      resolve(/^(\+PONG|-NOAUTH)/.test(data.toString()));
      socket.destroy();
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}

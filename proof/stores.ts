// Starts a Postgres and a Redis for targets that need them, on ports of their own. Data that Postgres has confirmed
// survive a kill of its processes; only the disk is not waited for.

import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { says, startUp } from "../bench/governed/stores.ts";
import { postgresPrograms, reachable, redisPrograms } from "../test/harness/binaries.ts";
import { account, freePort, serviceFolder } from "../test/harness/daemon.ts";
import { type Program, program } from "./processes.ts";

export interface StoreProgram extends Program {
  url: string;
  port: number;
}

export async function postgresProgram(): Promise<StoreProgram> {
  const folder = serviceFolder("postgres");
  const programs = await reachable(await postgresPrograms(), "postgres", account, join(folder, "programs"));
  const data = join(folder, "data");
  const port = await freePort();
  const locale = ["--encoding=UTF8", "--no-locale"];
  await promisify(execFile)(
    join(programs.folder, "initdb"),
    ["-D", data, "-U", "postgres", "--auth=trust", "--no-sync", ...locale],
    { ...account, cwd: folder, env: { PATH: process.env.PATH ?? "", ...programs.environment } },
  );
  const settings = ["fsync=off", "listen_addresses=127.0.0.1", "max_connections=200", "unix_socket_directories="];
  const inner = program({
    name: "postgres",
    kind: "store",
    command: [
      join(programs.folder, "postgres"),
      "-D",
      data,
      "-p",
      `${port}`,
      ...settings.flatMap((line) => ["-c", line]),
    ],
    environment: programs.environment,
    folder,
    account,
    isReady: async () => (await says(port, startUp)).startsWith("R"),
    deadline_ms: 60_000,
  });
  return stored(inner, folder, { url: `postgres://postgres@127.0.0.1:${port}/postgres`, port });
}

/** A Redis that loses all data when it is killed or, if it is `durable`, keeps everything that it has confirmed. */
export async function redisProgram(durable = false): Promise<StoreProgram> {
  const folder = serviceFolder("redis");
  const programs = await reachable(await redisPrograms(), "redis-server", account, join(folder, "programs"));
  const port = await freePort();
  const settings = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--dir", folder];
  settings.push("--appendonly", durable ? "yes" : "no", "--appendfsync", "everysec");
  const inner = program({
    name: "redis",
    kind: "store",
    command: [join(programs.folder, "redis-server"), ...settings],
    environment: programs.environment,
    folder,
    account,
    isReady: async () => (await says(port, "PING\r\n")).startsWith("+PONG"),
    deadline_ms: 60_000,
  });
  return stored(inner, folder, { url: `redis://127.0.0.1:${port}`, port });
}

function stored(inner: Program, folder: string, place: { url: string; port: number }): StoreProgram {
  const stop = async () => {
    await inner.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...inner, ...place, stop };
}

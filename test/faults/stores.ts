// A Postgres and a Redis that are killed, frozen, and restarted on their data. Postgres keeps its usual guarantees when
// it is killed, because confirmed writes are in the kernel's page cache; with fsync off, they need not be on the disk.

import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../src/stores/postgres/database.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { postgresPrograms, reachable, redisPrograms } from "../harness/binaries.ts";
import { account, childrenOf, freePort } from "../harness/daemon.ts";
import { newCluster, postgresCommand } from "../harness/services.ts";
import { until } from "../harness/until.ts";

export interface Store {
  port: number;
  kill(): Promise<void>;
  /** Starts the store again; resolves when it accepts queries. */
  start(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /**
   * Simulates a failover to a replica that lagged behind: all writes from now until `until` has resolved are lost, even
   * if they were confirmed. Resolves when the store accepts queries again.
   */
  wakeInThePast(until: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

interface StoreProcess {
  port: number;
  folder: string;
  command: string[];
  environment: Record<string, string>;
  answers(): Promise<boolean>;
}

async function storeOf(process_: StoreProcess): Promise<Store> {
  let child: ChildProcess | null = null;
  /** Sends a signal to each child process, because Postgres puts each of its processes into a group of its own. */
  const signalGroup = (signal: NodeJS.Signals) => {
    if (!child?.pid || child.exitCode !== null || child.signalCode !== null) return;
    for (const pid of [child.pid, ...childrenOf(child.pid)]) {
      try {
        process.kill(pid, signal);
      } catch {
        // The process has already ended.
      }
    }
  };
  const store: Store = {
    port: process_.port,
    async start() {
      const [program, ...words] = process_.command;
      const isGone = () => child === null || child.exitCode !== null || child.signalCode !== null;
      const answers = async () => {
        // Postgres exits at its start while a process of the killed server still runs.
        if (isGone())
          child = spawn(program!, words, {
            ...account,
            cwd: process_.folder,
            env: { PATH: process.env.PATH ?? "", ...process_.environment },
            stdio: "ignore",
          });
        return process_.answers();
      };
      await until(answers, 30_000, `${program} to answer`);
    },
    async kill() {
      const dying = child;
      if (!dying || dying.exitCode !== null || dying.signalCode !== null) return;
      const gone = new Promise<void>((resolve) => dying.once("exit", () => resolve()));
      signalGroup("SIGKILL");
      await gone;
    },
    freeze: () => signalGroup("SIGSTOP"),
    thaw: () => signalGroup("SIGCONT"),
    async wakeInThePast(until) {
      const [now, past] = ["data", "past"].map((name) => join(process_.folder, name)) as [string, string];
      signalGroup("SIGSTOP");
      rmSync(past, { recursive: true, force: true });
      // A copy of a stopped store's files is what a crash leaves. `cp -a` keeps owner and permissions.
      await Bun.spawn(["cp", "-a", now, past]).exited;
      signalGroup("SIGCONT");
      await until();
      await store.kill();
      rmSync(now, { recursive: true, force: true });
      rmSync(join(past, "postmaster.pid"), { force: true });
      renameSync(past, now);
      await store.start();
    },
    async stop() {
      signalGroup("SIGCONT");
      await store.kill();
      rmSync(process_.folder, { recursive: true, force: true });
    },
  };
  process.once("exit", () => signalGroup("SIGKILL"));
  await store.start();
  return store;
}

function ownFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `sluice-faults-${name}-`));
  chmodSync(folder, 0o700);
  if (account.uid !== undefined && account.gid !== undefined) chownSync(folder, account.uid, account.gid);
  return folder;
}

export async function faultyPostgres(): Promise<Store> {
  const folder = ownFolder("postgres");
  const programs = await reachable(await postgresPrograms(), "postgres", account, join(folder, "programs"));
  const data = await newCluster(programs, folder);
  const port = await freePort();
  const settings = [
    "fsync=off",
    "max_connections=100",
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${folder}`,
  ];
  return storeOf({
    port,
    folder,
    command: postgresCommand(programs, data, port, settings),
    environment: programs.environment,
    answers: () =>
      ask(port, (db) => db.query("select 1")).then(
        () => true,
        () => false,
      ),
  });
}

export const faultyRedis = (): Promise<Store> => redisWith([]);

async function redisWith(settings: readonly string[]): Promise<Store> {
  const folder = ownFolder("redis");
  const programs = await reachable(await redisPrograms(), "redis-server", account, join(folder, "programs"));
  const port = await freePort();
  const standard = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder];
  return storeOf({
    port,
    folder,
    command: [join(programs.folder, "redis-server"), ...standard, ...settings],
    environment: programs.environment,
    answers: () =>
      redisSays(port, "PING").then(
        (said) => said.startsWith("+PONG"),
        () => false,
      ),
  });
}

const slots = ["0 5460", "5461 10922", "10923 16383"];

/**
 * Creates a Redis Cluster of three nodes with a third of the slots each; the port is that of the first node. `kill`
 * kills one node, in turn. Every other `freeze` freezes one node, and the freezes between them all three. Sluice
 * connects to the nodes at the addresses that they announce, so cutting the proxy to the first node cuts no Sluice node
 * off from all of them.
 */
export async function faultyRedisCluster(): Promise<Store> {
  const clustered = async () =>
    redisWith([
      ...["--cluster-enabled", "yes", "--cluster-port", `${await freePort()}`],
      ...["--cluster-require-full-coverage", "no"],
    ]);
  const nodes = [await clustered(), await clustered(), await clustered()] as const;
  const isWhole = async () => {
    const told = await Promise.all(nodes.map(({ port }) => redisSays(port, "CLUSTER INFO").catch(() => "")));
    return told.every((text) => text.includes("cluster_state:ok") && text.includes("cluster_known_nodes:3"));
  };
  for (const [at, range] of slots.entries()) await redisSays(nodes[at]!.port, `CLUSTER ADDSLOTSRANGE ${range}`);
  for (const { port } of nodes.slice(1)) {
    const busPort = /@(\d+)/.exec(await redisSays(port, "CLUSTER NODES"))![1]!;
    await redisSays(nodes[0].port, `CLUSTER MEET 127.0.0.1 ${port} ${busPort}`);
  }
  await until(isWhole, 20_000, "the cluster to form");
  let [turn, freezes] = [0, 0];
  let victim: Store = nodes[0];
  return {
    port: nodes[0].port,
    kill() {
      victim = nodes[turn++ % nodes.length]!;
      return victim.kill();
    },
    async start() {
      await victim.start();
      await until(isWhole, 20_000, "the cluster to be whole again");
    },
    freeze() {
      freezes += 1;
      for (const node of freezes % 2 === 1 ? nodes.slice(freezes % nodes.length).slice(0, 1) : nodes) node.freeze();
    },
    thaw() {
      for (const node of nodes) node.thaw();
    },
    wakeInThePast: () => Promise.reject(new Error("a Redis keeps nothing")),
    stop: () => Promise.all(nodes.map((node) => node.stop())).then(() => {}),
  };
}

/** Runs queries on the Postgres at this port, on a connection of its own. */
export async function ask<Answer>(port: number, question: (db: Database) => Promise<Answer>): Promise<Answer> {
  // Uses the product's own client: the bare driver throws an error that cannot be caught when a server dies in the
  // middle of a statement.
  const db = await serverDatabase(`postgres://postgres@127.0.0.1:${port}/postgres`, { connect_ms: 2_000 });
  try {
    return await question(db);
  } finally {
    await db.close();
  }
}

export function redisSays(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open: (socket) => void socket.write(`${command}\r\n`),
        data(socket, data) {
          resolve(data.toString());
          socket.end();
        },
        connectError: (_, error) => reject(error),
        error: (_, error) => reject(error),
      },
    }).catch(reject);
    setTimeout(() => reject(new Error("Redis does not answer")), 1000).unref();
  });
}

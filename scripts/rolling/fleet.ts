// Three nodes on one Postgres and one Redis. Each keeps its port when it is restarted.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/harness/daemon.ts";
import { freshDatabase, redisUrl } from "../../test/harness/services.ts";
import { until } from "../../test/harness/until.ts";

const start_ms = 30_000;

export interface Node {
  port: number;
  /** Sends SIGTERM, and waits until the node has drained. Throws unless its exit code is 0. */
  stop(): Promise<void>;
  /** Starts the node with this command, which may be that of another build. Resolves when the node is ready. */
  start(words: string[]): Promise<void>;
  kill(): void;
}

export interface Fleet {
  nodes: Node[];
  key: string;
  /**
   * Runs a command with --json of the build that `words` starts, and returns the parsed output. It must be the build of
   * the running nodes, because other builds refuse the database's schema.
   */
  json<T>(words: string[], ...command: string[]): Promise<T>;
  stop(): Promise<void>;
}

export interface FleetOptions {
  count: number;
  /** The number of workers of each node. */
  workers: string;
  /** The command with which the nodes are started first. */
  words: string[];
  drain_delay_ms: number;
  drain_ms: number;
}

export async function startFleet({ count, workers, words, ...drain }: FleetOptions): Promise<Fleet> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-rolling-"));
  const database = await freshDatabase();
  writeFileSync(join(folder, "sluice.yaml"), `limits: ${JSON.stringify(drain)}\n`);
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: folder,
    DATABASE_URL: database.url,
    REDIS_URL: await redisUrl(),
    SLUICE_CONFIG: join(folder, "sluice.yaml"),
    SLUICE_WORKERS: workers,
    SLUICE_TRUSTED_PROXIES: "127.0.0.1",
    BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
  };
  const json = async <T>(build: string[], ...command: string[]): Promise<T> => {
    const run = Bun.spawn([...build, ...command, "--json"], { cwd: folder, env, stdout: "pipe", stderr: "inherit" });
    return JSON.parse(await run.stdout.text()) as T;
  };
  const nodes: Node[] = [];
  for (let index = 0; index < count; index++) {
    const node = nodeOn(await freePort(), folder, env);
    nodes.push(node);
    await node.start(words);
  }
  await json(words, "org", "create", "rolling", "--plan", "unlimited");
  const { key } = await json<{ key: string }>(words, "key", "create", "--org", "rolling", "--name", "rolling");
  return {
    nodes,
    key,
    json,
    async stop() {
      for (const node of nodes) node.kill();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function nodeOn(port: number, cwd: string, env: Record<string, string>): Node {
  let child: Bun.Subprocess | null = null;
  let starts = 0;
  return {
    port,
    async start(words) {
      const log = Bun.file(join(cwd, `${port}-${starts++}.log`));
      const started = Bun.spawn([...words, "serve"], {
        cwd,
        env: { ...env, PORT: String(port) },
        stdin: "ignore",
        stdout: "ignore",
        stderr: log,
      });
      child = started;
      const isReady = async () => {
        if (started.exitCode !== null) throw new Error(`the node ended: ${(await log.text()).slice(-2000)}`);
        return fetch(`http://127.0.0.1:${port}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        );
      };
      await until(isReady, start_ms, "the node to be ready");
    },
    async stop() {
      child!.kill("SIGTERM");
      const code = await child!.exited;
      if (code !== 0) throw new Error(`a node ended with ${code}`);
    },
    kill: () => child?.kill("SIGKILL"),
  };
}

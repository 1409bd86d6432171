// Three nodes of one service on one Postgres and one Redis, each behind wires that can be cut; and an engine that counts
// what it produced.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/daemon.ts";
import { type Simulator, startSimulator } from "../harness/simulator.ts";
import { until } from "../harness/until.ts";
import { faultyPostgres, faultyRedis, type Store } from "./stores.ts";
import { type Wire, wireTo } from "./wire.ts";

export const model = "acme/writer-1";
export const price = { input: 1, output: 100 };
export const lease_s = 2;
export const checkpoint_s = 0.2;

export interface Node {
  name: string;
  url: string;
  database: Wire;
  redis: Wire;
  running: boolean;
  frozen: boolean;
  start(): Promise<void>;
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** The end of what it logged. */
  lastWords(): string;
}

export interface Rig {
  nodes: Node[];
  postgres: Store;
  redis: Store;
  engine: Simulator;
  key: string;
  /** One more organization on the same plan, with windows of its own. */
  organization(): Promise<{ key: string }>;
  /** What a command of `sluice` answers with --json; throws when it fails. */
  command<T>(...words: string[]): Promise<T>;
  stop(): Promise<void>;
}

const root = join(import.meta.dir, "../..");
const program = process.env.TEST_SLUICE ? [process.env.TEST_SLUICE] : [process.execPath, join(root, "src/main.ts")];

/** `plan`: the limits of the organization, as sluice.yaml writes them. */
export async function startRig(options: { nodes: number; plan: string; requests_max: number }): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-faults-"));
  const [postgres, redis, engine] = await Promise.all([
    faultyPostgres(),
    faultyRedis(),
    startSimulator({
      directives: "echo",
      log: { entries_max: options.requests_max, body_characters_max: 512 * 1024 * 1024 },
    }),
  ]);
  writeFileSync(join(folder, "sluice.yaml"), configTo(engine.url, options.plan));
  const nodes: Node[] = [];
  for (let index = 0; index < options.nodes; index++)
    nodes.push(await nodeOf(`node ${index}`, folder, postgres.port, redis.port));
  // One after the other: the first migrates.
  for (const node of nodes) {
    await node.start();
    if (!node.running) throw new Error(`${node.name} did not start: ${node.lastWords()}`);
  }
  const database = `postgres://postgres@127.0.0.1:${postgres.port}/postgres`;
  const command = async <T>(...words: string[]): Promise<T> => {
    const env = { PATH: process.env.PATH ?? "", DATABASE_URL: database, SLUICE_CONFIG: join(folder, "sluice.yaml") };
    const run = Bun.spawn([...program, ...words, "--json"], { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
    const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
    if (code !== 0) throw new Error(`sluice ${words.join(" ")}: ${err}`);
    return JSON.parse(out) as T;
  };
  let organizations = 0;
  const organization = async () => {
    const slug = `faults-${organizations++}`;
    await command("org", "create", slug, "--plan", "faults");
    return command<{ key: string }>("key", "create", "--org", slug, "--name", "faults");
  };
  const { key } = await organization();
  return {
    nodes,
    postgres,
    redis,
    engine,
    key,
    organization,
    command,
    async stop() {
      await Promise.all(nodes.map((node) => node.kill()));
      for (const node of nodes) {
        node.database.close();
        node.redis.close();
      }
      await Promise.all([postgres.stop(), redis.stop(), engine.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configTo(url: string, plan: string): string {
  return `upstreams:
  main: { url: "${url}" }
models:
  - id: ${model}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 4096
    prices: { input: ${price.input}, output: ${price.output} }
    routes: [{ upstream: main, model: m }]
plans:
  faults: ${plan}
metering: { lease_s: ${lease_s}, checkpoint_s: ${checkpoint_s}, sweep_s: 0.3, unstreamed_tokens_max: 16 }
`;
}

async function nodeOf(name: string, folder: string, postgresPort: number, redisPort: number): Promise<Node> {
  const [database, redis, port] = await Promise.all([wireTo(postgresPort), wireTo(redisPort), freePort()]);
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: folder,
    PORT: `${port}`,
    SLUICE_CONFIG: join(folder, "sluice.yaml"),
    SLUICE_DATA_DIR: join(folder, name.replace(" ", "-")),
    DATABASE_URL: `postgres://postgres@127.0.0.1:${database.port}/postgres`,
    REDIS_URL: `redis://127.0.0.1:${redis.port}`,
  };
  let child: ReturnType<typeof spawned> | null = null;
  let log = "";
  const spawned = () =>
    Bun.spawn([...program, "serve"], { cwd: folder, env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const node: Node = {
    name,
    url: `http://127.0.0.1:${port}`,
    database,
    redis,
    running: false,
    frozen: false,
    async start() {
      const started = spawned();
      child = started;
      void (async () => {
        const decoder = new TextDecoder();
        for await (const chunk of started.stderr) log = (log + decoder.decode(chunk, { stream: true })).slice(-20_000);
      })();
      const ready = () =>
        fetch(`${node.url}/livez`).then(
          (response) => response.ok,
          () => false,
        );
      await until(async () => started.exitCode !== null || (await ready()), 30_000, `${name} to start`);
      node.running = started.exitCode === null;
    },
    async kill() {
      node.running = false;
      node.frozen = false;
      child?.kill("SIGKILL");
      await child?.exited;
    },
    freeze() {
      node.frozen = true;
      child?.kill("SIGSTOP");
    },
    thaw() {
      node.frozen = false;
      child?.kill("SIGCONT");
    },
    lastWords: () => log,
  };
  return node;
}

// A test rig: three nodes of one service on one Postgres and one Redis, each connected through proxies that can be cut;
// and engines that count the tokens they generate, each behind a proxy that injects its faults.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/daemon.ts";
import { inMoney } from "../harness/engine.ts";
import { shortLived } from "../harness/short-lived.ts";
import { type Simulator, startSimulator } from "../harness/simulator.ts";
import { jsonCommands, program } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { type EngineFront, engineFront } from "./engine-front.ts";
import { faultyPostgres, faultyRedis, faultyRedisCluster, type Store } from "./stores.ts";
import { type Wire, wireTo } from "./wire.ts";

export const model = "acme/writer-1";
/** One model of each kind besides chat. The node passes their engines' responses on unchanged. */
export const passedModels = { embedding: "acme/embed-1", rerank: "acme/rank-1", completion: "acme/complete-1" };
export const price = { input: 1, output: 100, search: 1_000 };
export const lease_s = 2;
export const checkpoint_s = 0.2;
/**
 * The largest output of a request for a response in one piece. It is small, so most unstreamed responses are collected
 * from a stream.
 */
export const unstreamed_tokens_max = 16;

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
  /** Sets the difference between the node's wall clock and the true time, in milliseconds. */
  setClock(off_ms: number): void;
  /** The end of the node's log, for error messages. */
  lastWords(): string;
  /** The warnings and errors in the node's log that name this request, each with its event and time. */
  warnedOf(requestId: string): string[];
}

export interface Rig {
  nodes: Node[];
  postgres: Store;
  redis: Store;
  engines: { engine: Simulator; front: EngineFront }[];
  key: string;
  /** Creates another organization on the same plan, with its own usage windows. */
  organization(): Promise<{ key: string }>;
  databaseUrl: string;
  /** Runs a command of `sluice` with --json, and returns the parsed output; throws when the command fails. */
  command<T>(...words: string[]): Promise<T>;
  stop(): Promise<void>;
}

export interface RigOptions {
  nodes: number;
  /** The limits of the organization, as sluice.yaml writes them. */
  plan: string;
  requests_max: number;
  /** The number of engines; 1 by default. */
  engines?: number;
  /** Whether Redis is a cluster: three nodes with a third of the slots each. */
  redisIsCluster?: boolean;
  /** Whether the nodes have no Redis, so that the database stores everything. */
  isWithoutRedis?: boolean;
  /**
   * The lease in seconds: the requests of a node that is silent for longer are settled by others. By default `lease_s`.
   */
  lease_s?: number;
  /** The timeouts of the model, as sluice.yaml writes them; short ones by default. */
  timeouts?: string;
}

/** Posts JSON to a node of the rig, with this key. */
export function post(
  node: Pick<Node, "url">,
  path: string,
  key: string,
  body: object,
  { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(node.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

export async function startRig(options: RigOptions): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-faults-"));
  const engineOf = async () => {
    const log = { entries_max: options.requests_max, body_characters_max: 512 * 1024 * 1024 };
    const engine = await startSimulator({ directives: "echo", log });
    return { engine, front: await engineFront(engine.port) };
  };
  const [postgres, redis, engines] = await Promise.all([
    faultyPostgres(),
    options.redisIsCluster ? faultyRedisCluster() : faultyRedis(),
    Promise.all(Array.from({ length: options.engines ?? 1 }, engineOf)),
  ]);
  const urls = engines.map(({ front }) => `http://127.0.0.1:${front.port}/v1`);
  writeFileSync(join(folder, "sluice.yaml"), configTo(urls, options));
  const nodes: Node[] = [];
  for (let index = 0; index < options.nodes; index++)
    nodes.push(await nodeOf(`node ${index}`, folder, { postgres, redis }, options.isWithoutRedis));
  const started = async (node: Node) => {
    await node.start();
    if (!node.running) throw new Error(`${node.name} did not start: ${node.lastWords()}`);
  };
  // The first node to start migrates the database.
  const [first, ...others] = nodes;
  await started(first!);
  await Promise.all(others.map(started));
  const database = `postgres://postgres@127.0.0.1:${postgres.port}/postgres`;
  const command = jsonCommands({ DATABASE_URL: database, SLUICE_CONFIG: join(folder, "sluice.yaml") });
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
    engines,
    key,
    organization,
    databaseUrl: database,
    command,
    async stop() {
      await Promise.all(nodes.map((node) => node.kill()));
      for (const node of nodes) {
        node.database.close();
        node.redis.close();
      }
      for (const { front } of engines) front.close();
      await Promise.all([postgres.stop(), redis.stop(), ...engines.map(({ engine }) => engine.stop())]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** How many output tokens the rig's engines have generated so far. */
export const made = ({ engines }: Rig): number =>
  engines.flatMap(({ engine }) => engine.requests).reduce((sum, { tokens }) => sum + tokens, 0);

/** How many requests the rig's engines are serving now. */
export const active = ({ engines }: Rig): number => engines.reduce((sum, { engine }) => sum + engine.counts.active, 0);

/**
 * Starts a rig, runs the work on it, and stops the rig. If the work fails, the error contains the end of each node's
 * log.
 */
export async function withRig<Result>(options: RigOptions, work: (rig: Rig) => Promise<Result>): Promise<Result> {
  const rig = await startRig(options);
  try {
    return await work(rig);
  } catch (failure) {
    const words = rig.nodes.map((node) => `${node.name}: ${node.lastWords().slice(-1500)}`);
    throw new Error([failure instanceof Error ? failure.message : failure, ...words].join("\n"));
  } finally {
    await rig.stop();
  }
}

/** Timeouts so short that an engine that stalls is given up within a round of the test. */
const impatient = "{ connect_ms: 1000, first_part_ms: 4000, first_part_spare_ms: 1500, idle_ms: 2500 }";

function configTo(
  urls: string[],
  { plan, timeouts = impatient, lease_s: lasts_s = lease_s }: Pick<RigOptions, "plan" | "timeouts" | "lease_s">,
): string {
  const upstreams = urls.map((url, index) => `  engine-${index}: { url: "${url}" }`);
  const routes = urls.map((_, index) => `{ upstream: engine-${index}, model: m }`).join(", ");
  const ofKind = ([kind, id]: [string, string]) => `
  - id: ${id}
    kind: ${kind}
    created: 1790000000
    context_window: 131072
    prices: { ${kindPrices[kind]} }
    timeouts: ${timeouts}
    routes: [${routes}]`;
  return `upstreams:
${upstreams.join("\n")}
models:
  - id: ${model}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    prices: { input: ${price.input / 1000}, output: ${price.output / 1000} }
    timeouts: ${timeouts}
    routes: [${routes}]${Object.entries(passedModels).map(ofKind).join("")}
plans:
  faults: ${inMoney(plan)}
  kept: {}
metering: { currency: USD, lease_s: ${lasts_s}, checkpoint_s: ${checkpoint_s}, sweep_s: 0.3, unstreamed_tokens_max: ${unstreamed_tokens_max} }
`;
}

const kindPrices: Record<string, string> = {
  embedding: `input: ${price.input / 1000}`,
  rerank: `input: ${price.input / 1000}, search: ${price.search / 1e6}`,
  completion: `input: ${price.input / 1000}, output: ${price.output / 1000}`,
};

/** How many warnings of a node are stored to explain objections. */
const warnings_max = 5_000;

async function nodeOf(
  name: string,
  folder: string,
  stores: Pick<Rig, "postgres" | "redis">,
  isWithoutRedis = false,
): Promise<Node> {
  const [database, redis, port] = await Promise.all([
    wireTo(stores.postgres.port),
    wireTo(stores.redis.port),
    freePort(),
  ]);
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: folder,
    PORT: `${port}`,
    SLUICE_CONFIG: join(folder, "sluice.yaml"),
    SLUICE_DATA_DIR: join(folder, name.replace(" ", "-")),
    DATABASE_URL: `postgres://postgres@127.0.0.1:${database.port}/postgres`,
    ...(isWithoutRedis ? {} : { REDIS_URL: `redis://127.0.0.1:${redis.port}` }),
    // The warm-up is off: nodes start hundreds of times, and a test begins as soon as a node serves.
    SLUICE_WARM_UP_MS: "0",
    ...shortLived,
    FAULTS_CLOCK: join(folder, `${name}.clock`),
    // A compiled executable reads this variable, too, but has no such option on its command line.
    BUN_OPTIONS: `--preload=${join(import.meta.dir, "stepped-clock.ts")}`,
  };
  let child: ReturnType<typeof spawned> | null = null;
  let log = "";
  const warnings: string[] = [];
  const spawned = () =>
    Bun.spawn([...program, "serve"], {
      cwd: folder,
      env,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
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
        let line = "";
        for await (const chunk of started.stderr) {
          const text = decoder.decode(chunk, { stream: true });
          log = (log + text).slice(-20_000);
          const lines = (line + text).split("\n");
          line = lines.pop()!;
          warnings.push(...lines.filter((one) => !one.includes('"level":"info"')));
          warnings.splice(0, warnings.length - warnings_max);
        }
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
    setClock: (off_ms) => writeFileSync(env.FAULTS_CLOCK, `${off_ms}`),
    lastWords: () => log,
    warnedOf: (requestId) => warnings.filter((line) => line.includes(requestId)),
  };
  return node;
}

// The environment of incidents: two nodes on a Postgres and a Redis that can be killed and frozen, two engines that can
// be made to fail, and a Prometheus that scrapes every node. More nodes can be started for incidents that would harm
// these two.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { type EngineFront, engineFront } from "../../test/faults/engine-front.ts";
import { faultyPostgres, faultyRedis, type Store } from "../../test/faults/stores.ts";
import { type Channel, slackChannel, teamsChannel } from "../../test/harness/channels.ts";
import { freePort } from "../../test/harness/daemon.ts";
import { type Mailbox, mailbox } from "../../test/harness/mail-server.ts";
import { startSimulator } from "../../test/harness/simulator.ts";
import { until } from "../../test/harness/until.ts";
import { type Prometheus, startPrometheus } from "../prometheus/server.ts";
import { quickened } from "./quickened.ts";

const root = join(import.meta.dir, "../..");
const secretKey = Buffer.from(new Uint8Array(32).fill(5)).toString("base64");
const program = process.env.TEST_SLUICE ? [process.env.TEST_SLUICE] : [process.execPath, join(root, "src/main.ts")];

/**
 * The lease of a node. It must be longer than the time by which a busy machine delays a node's report of its requests'
 * usage: otherwise another node would settle the requests of a running node.
 */
const lease_s = 10;
const starts_ms = 120_000;

/** One model for each engine: only the first engine serves `frail`, only the second serves `sound`. */
export const [frail, sound] = ["acme/frail", "acme/sound"] as const;

export interface Node {
  url: string;
  /** The host and port at which Prometheus scrapes this node. */
  target: string;
  /** The node's name in the fleet. */
  name: string;
  key: string;
  /** The path of the node's own sluice.yaml. */
  configuration: string;
  pid(): number;
  start(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Kills the node with SIGKILL. */
  kill(): Promise<void>;
  log(): string;
  verbose(): Promise<string>;
  /** Runs a command of `sluice` and returns its output. */
  command(...words: string[]): Promise<string>;
}

export interface NodeOptions {
  database?: string;
  limits?: string;
  /** The section `answers` of sluice.yaml, as YAML. */
  answers?: string;
  descriptors?: number;
  workers?: number;
  /** The path of the file with the first engine's key. */
  engineKeyFile?: string;
}

export interface Site {
  nodes: [Node, Node];
  /**
   * Starts another node, on a database of its own, which is created if it does not exist. The node's configuration is
   * not compared with that of the others.
   */
  another(options?: NodeOptions): Promise<Node>;
  postgres: Store;
  redis: Store;
  /** The two engines: that of the model `frail`, and that of `sound`. */
  engines: [EngineFront, EngineFront];
  prometheus: Prometheus;
  /** The channels that get the notices for operators. */
  channels: Channels;
  stop(): Promise<void>;
}

export type Channels = Record<"slack" | "teams", Channel> & { mail: Mailbox };

/** Sets each channel up as a destination of notices, for the organization or for the whole service. */
export async function heardBy(channels: Channels, node: Pick<Node, "command">, ...words: string[]): Promise<void> {
  for (const [form, { url }] of Object.entries(channels)) {
    const where = [form === "mail" ? "--to" : "--url", url];
    await node.command("notice", "set", "--name", form, "--form", form, ...where, ...words);
  }
}

export async function startSite(): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-incidents-"));
  const simulators = await Promise.all([startSimulator(), startSimulator()]);
  const engines = (await Promise.all(simulators.map(({ port }) => engineFront(port)))) as [EngineFront, EngineFront];
  const [postgres, redis] = await Promise.all([faultyPostgres(), faultyRedis()]);
  const channels: Channels = { slack: slackChannel(), teams: teamsChannel(), mail: await mailbox() };
  const targets: string[] = [];
  const all: Node[] = [];
  let others = 0;
  const tell = () => writeFileSync(join(folder, "others.json"), JSON.stringify([{ targets }]));

  async function node(name: string, options: NodeOptions = {}) {
    const {
      database = "postgres",
      limits = "{}",
      answers = "{}",
      descriptors = 0,
      workers = 1,
      engineKeyFile,
    } = options;
    const [port, operatorPort] = [await freePort(), await freePort()];
    const own = join(folder, name);
    mkdirSync(own);
    const configuration = join(own, "sluice.yaml");
    writeFileSync(configuration, configurationOf(engines, channels.mail, { limits, answers, engineKeyFile }));
    const env = {
      ...{ PATH: process.env.PATH ?? "", HOME: own, PORT: String(port), SLUICE_CONFIG: configuration },
      SLUICE_OPERATOR_PORT: String(operatorPort),
      SLUICE_WORKERS: String(workers),
      SLUICE_SECRET_KEY: secretKey,
      DATABASE_URL: `postgres://postgres@127.0.0.1:${postgres.port}/${database}`,
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    };
    const words = descriptors === 0 ? program : ["sh", "-c", `ulimit -n ${descriptors} && exec "$0" "$@"`, ...program];
    const started = await nodeOf(words, env, own);
    all.push(started);
    return started;
  }

  const first = await node("first");
  const second = await node("second");
  tell();
  await heardBy(channels, first);
  const rules = join(folder, "rules.yaml");
  writeFileSync(rules, quickened(await Bun.file(join(root, "deploy/prometheus/rules.yaml")).text()));
  const prometheus = await startPrometheus(folder, rules, [
    `{ job_name: sluice, static_configs: [{ targets: ["${first.target}", "${second.target}"] }] }`,
    `{ job_name: others, file_sd_configs: [{ files: ["${join(folder, "others.json")}"], refresh_interval: 1s }], metric_relabel_configs: [{ source_labels: [__name__], regex: configuration_info, action: drop }, { target_label: job, replacement: sluice }] }`,
  ]);
  const areScraped = async () => (await prometheus.query('up{job="sluice"} == 1')).length === 2;
  // Waits for the first scrapes, because Prometheus sees no increase in events before a counter's first scrape.
  await until(areScraped, 30_000, "Prometheus to have asked both nodes");
  return {
    nodes: [first, second],
    async another(options) {
      const further = await node(`other-${others++}`, options);
      targets.push(further.target);
      tell();
      return further;
    },
    ...{ postgres, redis, engines, prometheus, channels },
    async stop() {
      await prometheus.stop();
      await Promise.all(all.map((one) => one.kill()));
      for (const front of engines) front.close();
      for (const channel of Object.values(channels)) channel.stop();
      await Promise.all([postgres.stop(), redis.stop(), ...simulators.map((simulator) => simulator.stop())]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configurationOf(
  engines: EngineFront[],
  { settings: smtp }: Mailbox,
  { limits, answers, engineKeyFile }: { limits: string; answers: string; engineKeyFile: string | undefined },
): string {
  const key = engineKeyFile ? `, api_key: "\${file:${engineKeyFile}}"` : "";
  const upstreams = engines.map(
    ({ port }, at) => `  engine-${at}: { url: "http://127.0.0.1:${port}/v1"${at === 0 ? key : ""} }`,
  );
  const models = [frail, sound].map(
    (id, at) => `  - id: ${id}
    created: 1790000000
    context_window: 131072
    prices: { input: 0.001, output: 0.1 }
    timeouts: { first_part_ms: 120000 }
    routes: [{ upstream: engine-${at}, model: m }]`,
  );
  return `upstreams:\n${upstreams.join("\n")}\nmodels:\n${models.join("\n")}
metering: { currency: USD, lease_s: ${lease_s}, checkpoint_s: 0.5, sweep_s: 0.3 }
limits: ${limits}
answers: ${answers}
webhooks: { allow_private: true }
smtp: { host: ${smtp.host}, port: ${smtp.port}, tls: "${smtp.tls}", from: ${smtp.from} }
`;
}

async function nodeOf(words: string[], env: Record<string, string>, folder: string): Promise<Node> {
  let child: Bun.Subprocess | null = null;
  let log = "";
  const url = `http://127.0.0.1:${env.PORT}`;
  const command = async (...more: string[]) => {
    const run = Bun.spawn([...program, ...more], { cwd: folder, env, stdout: "pipe", stderr: "ignore" });
    return run.stdout.text();
  };
  const node: Node = {
    ...{ url, name: `${hostname()}:${env.PORT}`, key: "", configuration: env.SLUICE_CONFIG!, command },
    target: `127.0.0.1:${env.SLUICE_OPERATOR_PORT}`,
    pid: () => child!.pid,
    async start() {
      const started = Bun.spawn([...words, "serve"], {
        ...{ cwd: folder, env, stdin: "ignore", stdout: "ignore", stderr: "pipe" },
      });
      child = started;
      void (async () => {
        const decoder = new TextDecoder();
        for await (const chunk of started.stderr)
          log = (log + decoder.decode(chunk, { stream: true })).slice(-5_000_000);
      })();
      const isReady = () =>
        fetch(`${url}/readyz`).then(
          ({ ok }) => ok,
          () => started.exitCode !== null,
        );
      await until(isReady, starts_ms, "a node to be ready");
      if (started.exitCode !== null) throw new Error(`a node did not start: ${log}`);
    },
    signal: (signal) => child?.kill(signal),
    async kill() {
      child?.kill("SIGCONT");
      child?.kill("SIGKILL");
      await child?.exited;
    },
    log: () => log,
    verbose: async () => (await fetch(`${url}/readyz?verbose`)).text(),
  };
  await node.start();
  const name = `incidents-${env.PORT}`;
  await command("org", "create", name, "--plan", "unlimited");
  const created = JSON.parse(await command("key", "create", "--org", name, "--name", name, "--json")) as {
    key: string;
  };
  return Object.assign(node, { key: created.key });
}

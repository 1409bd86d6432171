// The measured targets: a process that only passes requests on, nginx, and this service with its two kinds of store.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/harness/daemon.ts";
import { debianProgram } from "../../test/harness/debian.ts";
import { until } from "../../test/harness/until.ts";
import { type Asked, asked, type Behaviour, modelOf, type Protocol, protocols } from "./asks.ts";
import { pinned } from "./process.ts";
import { embedding, names } from "./scenarios.ts";

export interface Target {
  name: string;
  pid: number;
  url: string;
  /** This target's name for the model. For a target that only passes requests on, it is the engine's name. */
  modelFor(engine: Asked, behaviour: Behaviour): string;
  headers: Record<string, string>;
  speaks: readonly Asked[];
  /** Whether the target translates: clients may use any protocol, whichever one its engine speaks. */
  translates: boolean;
  /** Whether the target gets unstreamed requests in scenarios in which other targets get streamed ones. */
  isAskedWhole?: boolean;
  /** For a node: the time from its start until it served, in milliseconds. */
  ready_ms?: number;
  /** Whether it is another project's gateway: its errors count as refusals, but its responses must still be correct. */
  isOthers?: boolean;
  stop(): Promise<void>;
}

/**
 * Starts the process with which targets are compared. It does the minimum that a program on this runtime can do: no
 * key, no metering, no parsing of bodies.
 */
export async function startPasser(engineUrl: string): Promise<Target> {
  const program = `const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 120, async fetch(request) {
    const path = new URL(request.url).pathname;
    return fetch("${engineUrl}" + path, { method: "POST", body: await request.bytes() });
  } });
  console.log(server.url.origin);`;
  const env = { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };
  const child = Bun.spawn(pinned([process.execPath, "-e", program]), { env, stdout: "pipe", stderr: "inherit" });
  const url = await firstLine(child.stdout);
  return { ...passing("passed on"), pid: child.pid, url, stop: () => ended(child) };
}

/** Starts floor.ts, a process that does with a stream the minimum that this node's own components allow. */
export async function startFloor(engineUrl: string): Promise<Target> {
  const program = [process.execPath, join(import.meta.dir, "floor.ts"), engineUrl];
  const child = Bun.spawn(pinned(program), { stdout: "pipe", stderr: "inherit" });
  const url = await firstLine(child.stdout);
  return { ...passing(names.floor), pid: child.pid, url, stop: () => ended(child) };
}

export const passing = (name: string) => ({
  name,
  modelFor: (_: Asked, behaviour: Behaviour) => modelOf(behaviour),
  headers: {},
  speaks: asked,
  translates: false,
});

/**
 * The process that only passes requests on, with unstreamed requests: the lowest possible cost of an agent's request.
 */
export const askedWhole = (passer: Target): Target => ({
  ...passer,
  name: names.whole,
  isAskedWhole: true,
  stop: async () => {},
});

/** Starts this machine's nginx, or the one from Debian's package. Null if neither is available. */
export async function startNginx(engineUrl: string): Promise<Target | null> {
  const installed = Bun.which("nginx", { PATH: `${process.env.PATH}:/usr/sbin` });
  const program = installed ? { path: installed, env: process.env } : await debianProgram("nginx").catch(() => null);
  if (!program) return null;
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-nginx-"));
  const port = await freePort();
  const file = join(folder, "nginx.conf");
  writeFileSync(file, nginxConfiguration(folder, port, new URL(engineUrl).host));
  const child = Bun.spawn(pinned([program.path, "-c", file, "-p", folder, "-g", "daemon off;"]), {
    env: program.env,
    stdout: "ignore",
    stderr: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await until(() => answers(`${url}/`), 10_000, "nginx");
  const stop = () => ended(child, folder);
  return { ...passing("nginx"), pid: child.pid, url, stop };
}

const nginxConfiguration = (folder: string, port: number, engine: string) => `worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  client_max_body_size 8m;
  client_body_buffer_size 2m;
  keepalive_requests 1000000000;
  upstream engine { server ${engine}; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://engine;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;

export interface Plan {
  name: string;
  /** The name of the plan in the configuration. */
  plan: "on" | "off";
}

export interface NodeOptions {
  /** The command that runs the program, to which a subcommand can be appended. */
  program: readonly string[];
  /** The command that starts the server, if it differs from `program`. */
  serving?: readonly string[];
  engineUrl: string;
  behaviours: readonly Behaviour[];
  /** The node's stores. Null: the embedded database, and no Redis. */
  stores: { databaseUrl: string; redisUrl: string } | null;
  plans: readonly Plan[];
  /** The number of worker processes, which share the port. */
  workers?: number;
  /** Additional settings of `server`. */
  server?: object;
}

/** Starts a node, and returns a target for each plan, with an organization and a key of its own. */
export async function startNode(options: NodeOptions): Promise<Target[]> {
  const { program, serving = program, engineUrl, behaviours, stores, plans, workers, server = {} } = options;
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  mkdirSync(join(folder, "data"));
  writeFileSync(join(folder, "sluice.yaml"), configuration(engineUrl, behaviours, server));
  const env = {
    ...{ PATH: process.env.PATH ?? "", PORT: "0", SLUICE_CONFIG: join(folder, "sluice.yaml") },
    ...(stores
      ? { DATABASE_URL: stores.databaseUrl, REDIS_URL: stores.redisUrl }
      : { SLUICE_DATA_DIR: join(folder, "data") }),
    ...(workers === undefined ? {} : { SLUICE_WORKERS: `${workers}` }),
  };
  const began_ms = performance.now();
  const node = Bun.spawn(pinned([...serving, "serve"]), {
    ...{ cwd: folder, env, stdout: "pipe", stderr: Bun.file(join(folder, "log")) },
  });
  const log = join(folder, "log");
  const url = await servingOn(node.stdout, log);
  const ready_ms = performance.now() - began_ms;
  let isStopping = false;
  void node.exited.then((code) => {
    if (!isStopping) console.error(`the node ended by itself with ${code}: ${readFileSync(log, "utf8").slice(-2000)}`);
  });
  const cli = async <T>(...command: string[]): Promise<T> => {
    const run = Bun.spawn([...program, ...command, "--json"], { cwd: folder, env, stdout: "pipe", stderr: "inherit" });
    return JSON.parse(await run.stdout.text()) as T;
  };
  const targets: Target[] = [];
  for (const { name, plan } of plans) {
    await cli("org", "create", plan, "--plan", plan);
    const { key } = await cli<{ key: string }>("key", "create", "--org", plan, "--name", "bench");
    targets.push({
      name,
      pid: node.pid,
      url,
      ready_ms,
      modelFor: publicModel,
      headers: { authorization: `Bearer ${key}` },
      speaks: asked,
      translates: true,
      stop() {
        isStopping = true;
        return ended(node, folder);
      },
    });
  }
  return targets;
}

const publicModel = (engine: Asked, behaviour: Behaviour) => `${engine}/${modelOf(behaviour)}`;

const engineProtocol: Record<Protocol, string> = {
  chat: "openai-chat",
  messages: "anthropic-messages",
  responses: "openai-responses",
};

/** The configuration of a node with every limit on. No limit is ever reached. */
function configuration(engineUrl: string, behaviours: readonly Behaviour[], server: object): string {
  const upstreams = protocols.map((name) => ({ [name]: { url: `${engineUrl}/v1`, protocol: engineProtocol[name] } }));
  const models = protocols.flatMap((engine) =>
    behaviours.map((behaviour) => ({
      ...{ id: publicModel(engine, behaviour), created: 1, context_window: 1_000_000, max_output_tokens: 16_384 },
      ...{ capabilities: ["tools", "parallel_tools"], prices: { input: 0.001, output: 0.001 } },
      routes: [{ upstream: engine, model: modelOf(behaviour) }],
    })),
  );
  const embedder = {
    ...{ id: publicModel("embeddings", embedding), kind: "embedding", created: 1, context_window: 1_000_000 },
    ...{ prices: { input: 1 }, routes: [{ upstream: "chat", model: modelOf(embedding) }] },
  };
  const limits = {
    ...{ session: 1e6, week: 1e6, month: 1e6 },
    ...{ requests_per_minute: 1e9, tokens_per_minute: 1e12, concurrent_requests: 1e6 },
  };
  // The configuration is written as JSON, which is valid YAML.
  const plans = { off: {}, on: limits };
  const file = { server, metering: { currency: "USD" }, upstreams: Object.assign({}, ...upstreams), plans };
  return JSON.stringify({ ...file, models: [...models, embedder] });
}

export async function servingOn(stdout: ReadableStream<Uint8Array>, log: string): Promise<string> {
  let out = "";
  const reading = (async () => {
    for await (const chunk of stdout) out += new TextDecoder().decode(chunk);
  })();
  let ended = false;
  void reading.finally(() => {
    ended = true;
  });
  await until(() => ended || /serving on \S+\n/.test(out), 60_000, "the node");
  const url = /serving on (\S+)\n/.exec(out)?.[1];
  if (!url) throw new Error(`the node did not start: ${out}${readFileSync(log, "utf8")}`);
  return url;
}

async function firstLine(stdout: ReadableStream<Uint8Array>): Promise<string> {
  let out = "";
  for await (const chunk of stdout) {
    out += new TextDecoder().decode(chunk);
    if (out.includes("\n")) break;
  }
  return out.trim();
}

/** Starts the engine in a process of its own. */
export async function startEngineProcess(program = "engine.ts"): Promise<{ url: string; stop(): Promise<void> }> {
  const words = [process.execPath, join(import.meta.dir, program)];
  const child = Bun.spawn(words, { stdout: "pipe", stderr: "inherit" });
  return { url: `http://127.0.0.1:${await firstLine(child.stdout)}`, stop: () => ended(child) };
}

export const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => true,
    () => false,
  );

export async function ended(child: Bun.Subprocess, folder?: string): Promise<void> {
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await child.exited;
  clearTimeout(late);
  if (folder) rmSync(folder, { recursive: true, force: true });
}

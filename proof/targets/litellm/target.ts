// The target LiteLLM: its proxy with virtual keys and budgets in Postgres. It has two instances, and a Redis, as its
// documents advise for more than one instance.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../../../test/harness/daemon.ts";
import { answersWith, type Program, program } from "../../processes.ts";
import { postgresProgram, redisProgram, type StoreProgram } from "../../stores.ts";
import type { Key, Link, Site, Target, Usage } from "../../target.ts";
import { wireTo } from "../../wire.ts";
import { type Installed, installed } from "./install.ts";

const model = "proof-1";
const masterKey = "sk-proof-master";

export const litellm: Target = {
  name: "litellm",
  version: async () => (await installed()).version,
  settings:
    "two instances of one worker, Postgres, a Redis with an append-only file; fail_closed_budget_enforcement, and spend " +
    "written each second, otherwise as it comes; Prisma's engine in WebAssembly; a price of 1 for a token of output",
  settled_ms_max: 30_000,
  // The documents of LiteLLM promise nothing about tokens that a dead instance had delivered.
  uncounted_ms_max: 0,
  cut_off_ms_max: 0,
  // The documents of LiteLLM promise no precision for counts that no usage report of the engine confirms.
  estimate_share_max: 0.5,
  limit_status: 422,
  start,
};

interface Node extends Program {
  port: number;
}

async function start(engine_url: string): Promise<Site> {
  const how = await installed();
  const folder = mkdtempSync(join(tmpdir(), "proof-litellm-"));
  const [postgres, redis] = await Promise.all([postgresProgram(), redisProgram(true)]);
  await Promise.all([postgres.start(), redis.start()]);
  await promisify(execFile)("psql", ["-q", "-v", "ON_ERROR_STOP=1", "-f", how.schema, postgres.url]);
  const links: Link[] = [];
  const nodes: Node[] = [];
  for (const name of ["instance-1", "instance-2"])
    nodes.push(await nodeOf(name, folder, engine_url, how, { postgres, redis }, links));
  // The instances are started one after another, because the first creates the views.
  for (const node of nodes) await node.start();
  const manage = managing(nodes.map(({ port }) => `http://127.0.0.1:${port}`));
  return {
    nodes: nodes.map(({ name, port }) => ({ name, url: `http://127.0.0.1:${port}/v1` })),
    parts: [...nodes, postgres, redis],
    links,
    model,
    async createKey(name, max_budget) {
      const body = { key_alias: `${name}-${crypto.randomUUID()}`, ...(max_budget === null ? {} : { max_budget }) };
      const { key } = (await manage("POST", "key/generate", body)) as { key: string };
      return { id: key, secret: key };
    },
    usage: (keys) => usageOf(manage, keys),
    running: async () => null,
    lastWords: () => [...nodes, postgres, redis].map((part) => part.lastWords()).join("\n\n"),
    async stop() {
      await Promise.all([...nodes, postgres, redis].map((part) => part.stop()));
      await Promise.all(links.map(({ wire }) => wire.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

type Stores = Record<"postgres" | "redis", StoreProgram>;

async function nodeOf(
  name: string,
  folder: string,
  engine_url: string,
  { program: file, environment }: Installed,
  { postgres, redis }: Stores,
  links: Link[],
): Promise<Node> {
  const [database, cache, port] = await Promise.all([wireTo(postgres), wireTo(redis), freePort()]);
  links.push({ name: `${name} and its database`, node: name, wire: database });
  links.push({ name: `${name} and Redis`, node: name, wire: cache });
  const settings = join(folder, `${name}.yaml`);
  writeFileSync(settings, configuration(engine_url, cache.port));
  const node = program({
    name,
    kind: "node",
    command: [file, "--config", settings, "--port", `${port}`, "--host", "127.0.0.1"],
    environment: {
      ...environment,
      HOME: folder,
      HOSTNAME: name,
      DATABASE_URL: `postgresql://postgres@127.0.0.1:${database.port}/postgres`,
      DISABLE_SCHEMA_UPDATE: "true",
      ENFORCE_PRISMA_MIGRATION_CHECK: "false",
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      LITELLM_MODE: "PRODUCTION",
      LITELLM_LOG: "ERROR",
    },
    folder,
    isReady: () => takesKeys(port),
    deadline_ms: 300_000,
  });
  return { ...node, port };
}

/** Whether the node can look up keys: LiteLLM reports that it is ready before it has created the views for that. */
async function takesKeys(port: number): Promise<boolean> {
  const base = `http://127.0.0.1:${port}`;
  if (!(await answersWith(`${base}/health/readiness`, 200))) return false;
  const headers = { authorization: `Bearer ${masterKey}` };
  const response = await fetch(`${base}/key/list?size=1`, { headers, signal: AbortSignal.timeout(5_000) });
  await response.body?.cancel();
  return response.ok;
}

/** The configuration, written as JSON, which is valid YAML. */
function configuration(engine_url: string, redis_port: number): string {
  const engine = {
    model: `openai/${model}`,
    api_base: `${engine_url}/v1`,
    api_key: "none",
    input_cost_per_token: 0,
    output_cost_per_token: 1,
  };
  const redis = { host: "127.0.0.1", port: redis_port };
  return JSON.stringify({
    model_list: [{ model_name: model, litellm_params: engine }],
    router_settings: { redis_host: redis.host, redis_port: redis.port },
    // The response cache is disabled for every kind of call.
    litellm_settings: { cache: true, cache_params: { type: "redis", ...redis, supported_call_types: [] } },
    general_settings: {
      master_key: masterKey,
      proxy_batch_write_at: 1,
      fail_closed_budget_enforcement: true,
      use_redis_transaction_buffer: true,
    },
  });
}

type Manage = ReturnType<typeof managing>;

/**
 * The usage of each key, which is the amount that LiteLLM has charged: an output token costs 1, and input costs
 * nothing.
 */
async function usageOf(manage: Manage, keys: readonly Key[]): Promise<Map<string, Usage>> {
  const usage = new Map<string, Usage>();
  for (const { id } of keys) {
    const { info } = (await manage("GET", `key/info?key=${id}`)) as { info: { spend: number } };
    usage.set(id, { input_tokens: 0, output_tokens: Math.round(info.spend) });
  }
  return usage;
}

/** Sends management requests to any instance that responds. */
function managing(urls: readonly string[]) {
  return async (method: string, path: string, body?: object): Promise<unknown> => {
    let failure = "no instance answers";
    for (const url of urls) {
      const headers = { authorization: `Bearer ${masterKey}`, "content-type": "application/json" };
      const content = body === undefined ? null : JSON.stringify(body);
      const signal = AbortSignal.timeout(30_000);
      const answer = await fetch(`${url}/${path}`, { method, headers, signal, body: content }).catch(() => null);
      if (answer?.ok) return answer.json();
      if (answer) failure = `${answer.status} ${await answer.text()}`;
    }
    throw new Error(`${method} ${path}: ${failure}`);
  };
}

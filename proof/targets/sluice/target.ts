// The target Sluice: two nodes on one Postgres and one Redis, as its documents advise, with short leases and checkpoint
// intervals, so that a run is short.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../test/harness/daemon.ts";
import { answersWith, type Program, program } from "../../processes.ts";
import { postgresProgram, redisProgram } from "../../stores.ts";
import type { Key, Link, Site, Target, Usage } from "../../target.ts";
import { wireTo } from "../../wire.ts";

const lease_s = 2;
const checkpoint_s = 0.2;
const model = "proof/proof-1";

/** The command that starts Sluice: this checkout's source, unless PROOF_SLUICE names an executable. */
function words(): [string, ...string[]] {
  const executable = process.env.PROOF_SLUICE;
  if (executable) return [executable];
  return [process.execPath, join(import.meta.dir, "../../../src/main.ts")];
}

export const sluice: Target = {
  name: "sluice",
  async version() {
    return (await run([...words(), "--version"], {}, tmpdir())).trim();
  },
  settings: `two nodes, Postgres, Redis; lease ${lease_s} s, checkpoint ${checkpoint_s} s, answers beyond 16 tokens collected from streams, otherwise as it comes`,
  settled_ms_max: 30_000,
  // By docs/metering.md, tokens that were delivered after the last checkpoint of a dead node may be uncounted. Writing
  // a checkpoint takes a moment.
  uncounted_ms_max: 1000 * (checkpoint_s * 2 + 0.6),
  // By docs/metering.md, a node without a database goes on forwarding until shortly before its lease ends.
  cut_off_ms_max: 1000 * lease_s,
  // By docs/metering.md, counts that no usage report of the engine confirms are wrong by 5 % on average; for a single
  // short response, the error is larger.
  estimate_share_max: 0.2,
  start,
  attach,
};

interface Node extends Program {
  port: number;
  operator_port: number;
}

async function start(engine_url: string): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "proof-sluice-"));
  const [postgres, redis] = await Promise.all([postgresProgram(), redisProgram()]);
  await Promise.all([postgres.start(), redis.start()]);
  writeFileSync(join(folder, "sluice.yaml"), configuration(engine_url));
  const links: Link[] = [];
  const nodes: Node[] = [];
  for (const name of ["node-1", "node-2"]) nodes.push(await nodeOf(name, folder, postgres, redis, links));
  // The nodes are started one after another, because the first creates the tables.
  for (const node of nodes) await node.start();
  const database = { DATABASE_URL: postgres.url, SLUICE_CONFIG: join(folder, "sluice.yaml"), HOME: folder };
  const operator = await run(
    [...words(), "operator", "create", "proof", "--role", "admin", "--json"],
    database,
    folder,
  );
  const urls = nodes.map(({ operator_port }) => `http://127.0.0.1:${operator_port}`);
  return {
    ...(await bookOf(managing(urls, (JSON.parse(operator) as { token: string }).token))),
    nodes: nodes.map(({ name, port }) => ({ name, url: `http://127.0.0.1:${port}/v1` })),
    parts: [...nodes, postgres, redis],
    links,
    lastWords: () => [...nodes, postgres, redis].map((part) => part.lastWords()).join("\n\n"),
    async stop() {
      await Promise.all([...nodes, postgres, redis].map((part) => part.stop()));
      await Promise.all(links.map(({ wire }) => wire.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Attaches to a running server. Its model PROOF_MODEL must be routed to the test's engine, and have prices of 0 and 1
 * for a million input and output tokens.
 */
async function attach(url: string): Promise<Site> {
  const { PROOF_OPERATOR_URL, SLUICE_OPERATOR_TOKEN } = process.env;
  if (!PROOF_OPERATOR_URL || !SLUICE_OPERATOR_TOKEN)
    throw new Error("Set PROOF_OPERATOR_URL and SLUICE_OPERATOR_TOKEN: keys are made and usage is read there.");
  const book = await bookOf(managing([PROOF_OPERATOR_URL], SLUICE_OPERATOR_TOKEN));
  const nodes = [{ name: "the gateway", url }];
  return { ...book, nodes, parts: [], links: [], lastWords: () => "", stop: async () => undefined };
}

type Manage = ReturnType<typeof managing>;

/**
 * Reads the recorded usage through the management interface. A new organization is created, which has no usage of
 * earlier runs.
 */
async function bookOf(manage: Manage): Promise<Pick<Site, "model" | "createKey" | "usage" | "running">> {
  const organization = `proof-${Date.now().toString(36)}`;
  await manage("POST", "organizations", { slug: organization, plan: "unlimited" });
  const report = () => manage("GET", `usage/report?by=key&organization=${organization}`) as Promise<Report>;
  return {
    model: process.env.PROOF_MODEL ?? model,
    async createKey(name, output_tokens_max) {
      const limits = output_tokens_max === null ? null : { session: moneyOf(output_tokens_max) };
      const made = (await manage("POST", "keys", { organization, name, limits })) as {
        id: string;
        key: string;
      };
      return { id: made.id, secret: made.key };
    },
    async usage(keys) {
      return usageOf(keys, await report());
    },
    running: async () => (await report()).running.requests,
  };
}

/**
 * The money for a number of output tokens. A million output tokens cost one unit of money, so that a key's limit is a
 * number of tokens.
 */
const moneyOf = (output_tokens: number) => `${output_tokens / 1e6}`;

function configuration(engine_url: string): string {
  return `upstreams: { first: { url: "${engine_url}/v1" }, second: { url: "${engine_url}/v1" } }
models:
  - id: ${model}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    prices: { input: 0, output: 1 }
    routes: [{ upstream: first, model: proof-1 }, { upstream: second, model: proof-1 }]
metering: { currency: USD, lease_s: ${lease_s}, checkpoint_s: ${checkpoint_s}, sweep_s: 0.3, unstreamed_tokens_max: 16 }
`;
}

interface Store {
  url: string;
  port: number;
}

async function nodeOf(name: string, folder: string, postgres: Store, redis: Store, links: Link[]): Promise<Node> {
  const [database, rates, port, operator_port] = await Promise.all([
    wireTo(postgres),
    wireTo(redis),
    freePort(),
    freePort(),
  ]);
  links.push({ name: `${name} and Postgres`, node: name, wire: database });
  links.push({ name: `${name} and Redis`, node: name, wire: rates });
  const url = new URL(postgres.url);
  url.port = `${database.port}`;
  const node = program({
    name,
    kind: "node",
    command: [...words(), "serve"],
    environment: {
      HOME: folder,
      PORT: `${port}`,
      SLUICE_OPERATOR_PORT: `${operator_port}`,
      SLUICE_CONFIG: join(folder, "sluice.yaml"),
      SLUICE_DATA_DIR: join(folder, name),
      SLUICE_WARM_UP_MS: "0",
      DATABASE_URL: url.href,
      REDIS_URL: `redis://127.0.0.1:${rates.port}`,
    },
    folder,
    isReady: () => answersWith(`http://127.0.0.1:${port}/readyz`, 200),
    deadline_ms: 60_000,
  });
  return { ...node, port, operator_port };
}

interface Report {
  rows: { key_id: string; input_tokens: number; output_tokens: number }[];
  running: { requests: number };
}

function usageOf(keys: readonly Key[], { rows }: Report): Map<string, Usage> {
  const byKey = new Map(rows.map((row) => [row.key_id, row]));
  return new Map(
    keys.map(({ id }) => {
      const row = byKey.get(id);
      return [id, { input_tokens: row?.input_tokens ?? 0, output_tokens: row?.output_tokens ?? 0 }];
    }),
  );
}

/** Sends management requests to one node after another, because a node may be dead. */
function managing(urls: readonly string[], token: string) {
  return async (method: string, path: string, body?: object): Promise<unknown> => {
    const failures: string[] = [];
    for (const url of urls) {
      const answer = await fetch(`${url}/management/v1/${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(5_000),
      }).catch(String);
      if (typeof answer !== "string" && answer.ok) return answer.json();
      failures.push(typeof answer === "string" ? answer : `${answer.status} ${await answer.text()}`);
    }
    throw new Error(`${method} ${path}: ${failures.join("; ")}`);
  };
}

async function run(command: readonly string[], environment: Record<string, string>, folder: string): Promise<string> {
  const env = { PATH: process.env.PATH ?? "", ...environment };
  const child = Bun.spawn([...command], { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
  const [out, problems, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${problems}`);
  return out;
}

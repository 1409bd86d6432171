// The target hardcap, from PyPI: a gateway with token budgets per tenant in Redis. It has two replicas, and a Redis
// that keeps all confirmed data. PROOF_HARDCAP names the program: `python3 -m venv v && v/bin/pip install hardcap`.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../test/harness/daemon.ts";
import { answersWith, type Program, program } from "../../processes.ts";
import { pythonProgram } from "../../python.ts";
import { limits } from "../../session.ts";
import { redisProgram, type StoreProgram } from "../../stores.ts";
import type { Key, Link, Site, Target, Usage } from "../../target.ts";
import { wireTo } from "../../wire.ts";

const model = "proof-1";
/**
 * The number of tenants with each limit. Tenants are defined in hardcap's configuration file, so it has as many as a
 * run may need.
 */
const tenants_of_each_limit = 200;
const tenants_without_limit = 6_000;

const python = pythonProgram("PROOF_HARDCAP", "hardcap", "v/bin/hardcap");

export const hardcap: Target = {
  name: "hardcap",
  version: python.version,
  settings: "two replicas, Redis with an append-only file; reservations live 5 s, otherwise as it comes",
  settled_ms_max: 15_000,
  // The documents of hardcap promise that reservations of a dead replica expire, and nothing about tokens that the
  // replica had delivered.
  uncounted_ms_max: 0,
  cut_off_ms_max: 0,
  // If the engine reports no usage, hardcap estimates the tokens, and promises no precision, so an error of half is
  // accepted.
  estimate_share_max: 0.5,
  start,
};

interface Node extends Program {
  port: number;
}

async function start(engine_url: string): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "proof-hardcap-"));
  const redis = await redisProgram(true);
  await redis.start();
  const links: Link[] = [];
  const nodes: Node[] = [];
  for (const name of ["replica-1", "replica-2"]) nodes.push(await nodeOf(name, folder, engine_url, redis, links));
  await Promise.all(nodes.map((node) => node.start()));
  const urls = nodes.map(({ port }) => `http://127.0.0.1:${port}`);
  const made = new Map<string, number>();
  return {
    nodes: nodes.map(({ name, port }) => ({ name, url: `http://127.0.0.1:${port}/v1` })),
    parts: [...nodes, redis],
    links,
    model,
    async createKey(_name, output_tokens_max) {
      const kind = `${output_tokens_max ?? "free"}`;
      const number = made.get(kind) ?? 0;
      made.set(kind, number + 1);
      if (number >= countOf(output_tokens_max)) throw new Error("Every tenant is used: run fewer faults at a time.");
      return { id: `${kind}-${number}`, secret: `sk-${kind}-${number}` };
    },
    usage: (keys) => usageOf(keys, urls),
    running: async () => null,
    lastWords: () => [...nodes, redis].map((part) => part.lastWords()).join("\n\n"),
    async stop() {
      await Promise.all([...nodes, redis].map((part) => part.stop()));
      await Promise.all(links.map(({ wire }) => wire.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function countOf(limit: number | null): number {
  return limit === null ? tenants_without_limit : tenants_of_each_limit;
}

async function nodeOf(
  name: string,
  folder: string,
  engine_url: string,
  redis: StoreProgram,
  links: Link[],
): Promise<Node> {
  const [wire, port] = await Promise.all([wireTo(redis), freePort()]);
  links.push({ name: `${name} and Redis`, node: name, wire });
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, configuration(engine_url, `redis://127.0.0.1:${wire.port}/0`));
  const node = program({
    name,
    kind: "node",
    command: [python.path(), "serve", "-c", file, "--host", "127.0.0.1", "--port", `${port}`],
    environment: { HOME: folder },
    folder,
    isReady: () => answersWith(`http://127.0.0.1:${port}/healthz`, 200),
    deadline_ms: 180_000,
  });
  return { ...node, port };
}

function configuration(engine_url: string, redis_url: string): string {
  const tenants = [...limits, null].flatMap((limit) =>
    Array.from({ length: countOf(limit) }, (_, number) => {
      const name = `${limit ?? "free"}-${number}`;
      return `  ${name}: { api_keys: [sk-${name}], budget: { window_s: 1000000000, output: ${limit ?? 0} } }`;
    }),
  );
  return `redis_url: ${redis_url}
budget: { reservation_ttl_s: 5 }
upstreams: { first: { base_url: "${engine_url}/v1" }, second: { base_url: "${engine_url}/v1" } }
routes:
  ${model}: { targets: [{ upstream: first, model: proof-1 }, { upstream: second, model: proof-1 }] }
tenants:
${tenants.join("\n")}
`;
}

/** Reads the usage of each key, authorized by the key itself, from any replica. */
async function usageOf(keys: readonly Key[], urls: readonly string[]): Promise<Map<string, Usage>> {
  const usage = new Map<string, Usage>();
  for (const { id, secret } of keys) usage.set(id, await usageOfKey(secret, urls));
  return usage;
}

async function usageOfKey(secret: string, urls: readonly string[]): Promise<Usage> {
  for (const url of urls) {
    const headers = { authorization: `Bearer ${secret}` };
    const signal = AbortSignal.timeout(5_000);
    const answer = await fetch(`${url}/v1/hardcap/usage`, { headers, signal }).catch(() => null);
    if (answer?.status !== 200) continue;
    const { used } = (await answer.json()) as { used: { input: number; output: number } };
    return { input_tokens: used.input, output_tokens: used.output };
  }
  throw new Error("No replica says what a tenant used.");
}

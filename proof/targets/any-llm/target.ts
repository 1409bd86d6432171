// The target any-llm-gateway, in the last version of PyPI's any-llm-sdk that contains it: two nodes, and users with
// budgets in Postgres. PROOF_ANY_LLM names the program: `python3 -m venv v && v/bin/pip install
// 'any-llm-sdk[gateway,openai]==1.14.0'`.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../test/harness/daemon.ts";
import { answersWith, type Program, program } from "../../processes.ts";
import { pythonProgram } from "../../python.ts";
import { postgresProgram, type StoreProgram } from "../../stores.ts";
import type { Key, Link, Site, Target, Usage } from "../../target.ts";
import { wireTo } from "../../wire.ts";

const model = "openai:proof-1";
const masterKey = "proof-master-key";

const python = pythonProgram("PROOF_ANY_LLM", "any-llm-sdk", "v/bin/any-llm-gateway");

export const anyLlm: Target = {
  name: "any-llm",
  version: python.version,
  settings: "two nodes of any-llm-gateway, Postgres; a budget for each user at a price of 1 for a token of output",
  settled_ms_max: 15_000,
  // The gateway's documents promise nothing about tokens that a dead node had delivered.
  uncounted_ms_max: 0,
  cut_off_ms_max: 0,
  // The gateway promises no precision for counts that no usage report of the engine confirms.
  estimate_share_max: 0.5,
  start,
};

interface Node extends Program {
  port: number;
}

async function start(engine_url: string): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "proof-any-llm-"));
  const postgres = await postgresProgram();
  await postgres.start();
  const links: Link[] = [];
  const nodes: Node[] = [];
  for (const name of ["node-1", "node-2"]) nodes.push(await nodeOf(name, folder, engine_url, postgres, links));
  // The nodes are started one after another, because the first creates the tables.
  for (const node of nodes) await node.start();
  const manage = managing(nodes.map(({ port }) => `http://127.0.0.1:${port}`));
  return {
    nodes: nodes.map(({ name, port }) => ({ name, url: `http://127.0.0.1:${port}/v1` })),
    parts: [...nodes, postgres],
    links,
    model,
    createKey: (name, output_tokens_max) => createKey(manage, name, output_tokens_max),
    usage: (keys) => usageOf(manage, keys),
    running: async () => null,
    lastWords: () => [...nodes, postgres].map((part) => part.lastWords()).join("\n\n"),
    async stop() {
      await Promise.all([...nodes, postgres].map((part) => part.stop()));
      await Promise.all(links.map(({ wire }) => wire.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function nodeOf(
  name: string,
  folder: string,
  engine_url: string,
  postgres: StoreProgram,
  links: Link[],
): Promise<Node> {
  const [wire, port] = await Promise.all([wireTo(postgres), freePort()]);
  links.push({ name: `${name} and its database`, node: name, wire });
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, configuration(engine_url, `postgresql+psycopg2://postgres@127.0.0.1:${wire.port}/postgres`));
  const node = program({
    name,
    kind: "node",
    command: [python.path(), "serve", "-c", file, "--host", "127.0.0.1", "--port", `${port}`],
    environment: { HOME: folder },
    folder,
    isReady: () => answersWith(`http://127.0.0.1:${port}/health/liveness`, 200),
    deadline_ms: 120_000,
  });
  return { ...node, port };
}

/** The configuration. One output token costs one unit of money, so that a budget is a number of tokens. */
function configuration(engine_url: string, database_url: string): string {
  return `database_url: ${database_url}
master_key: ${masterKey}
bootstrap_api_key: false
providers: { openai: { api_base: "${engine_url}/v1", api_key: none } }
pricing: { "${model}": { input_price_per_million: 0, output_price_per_million: 1000000 } }
`;
}

type Manage = ReturnType<typeof managing>;

/**
 * Creates a key with a user of its own, because budgets belong to users. The test uses the user's ID as the key's ID.
 */
async function createKey(manage: Manage, name: string, output_tokens_max: number | null): Promise<Key> {
  const user_id = `${name}-${crypto.randomUUID()}`;
  const limit = output_tokens_max === null ? null : await manage("POST", "budgets", { max_budget: output_tokens_max });
  const budget_id = limit && (limit as { budget_id: string }).budget_id;
  await manage("POST", "users", { user_id, budget_id });
  const { key } = (await manage("POST", "keys", { key_name: name, user_id })) as { key: string };
  return { id: user_id, secret: key };
}

interface Line {
  prompt_tokens: number | null;
  completion_tokens: number | null;
}

async function usageOf(manage: Manage, keys: readonly Key[]): Promise<Map<string, Usage>> {
  const usage = new Map<string, Usage>();
  for (const { id } of keys) usage.set(id, sumOf(await linesOf(manage, id)));
  return usage;
}

const page = 1000;

async function linesOf(manage: Manage, user: string): Promise<Line[]> {
  const lines: Line[] = [];
  while (true) {
    const more = (await manage("GET", `users/${user}/usage?skip=${lines.length}&limit=${page}`)) as Line[];
    lines.push(...more);
    if (more.length < page) return lines;
  }
}

function sumOf(lines: readonly Line[]): Usage {
  const sum = { input_tokens: 0, output_tokens: 0 };
  for (const { prompt_tokens, completion_tokens } of lines) {
    sum.input_tokens += prompt_tokens ?? 0;
    sum.output_tokens += completion_tokens ?? 0;
  }
  return sum;
}

/** Sends management requests to any node that responds. */
function managing(urls: readonly string[]) {
  return async (method: string, path: string, body?: unknown): Promise<unknown> => {
    let failure = "no node answers";
    for (const url of urls) {
      const headers = { authorization: `Bearer ${masterKey}`, "content-type": "application/json" };
      const signal = AbortSignal.timeout(10_000);
      const content = body === undefined ? null : JSON.stringify(body);
      const answer = await fetch(`${url}/v1/${path}`, { method, headers, signal, body: content }).catch(() => null);
      if (answer?.ok) return answer.json();
      if (answer) failure = `${answer.status} ${await answer.text()}`;
    }
    throw new Error(`${method} ${path}: ${failure}`);
  };
}

// Measures how a flood of made-up keys affects clients with real keys: `bun bench/forged-keys.ts [seconds] [requests a
// second]`. It uses one node with the embedded database, and then one on Postgres; on each, rounds without a flood
// alternate with rounds under 100 and 1,500 connections. Each forged key has a valid checksum, and no two are the same.
// With TEST_SLUICE_BEFORE, an older binary takes turns with this one.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Table from "cli-table3";
import { freshDatabase } from "../test/harness/services.ts";
import { until } from "../test/harness/until.ts";
import { answeredWhole, steadily } from "./steady.ts";

const root = join(import.meta.dir, "..");
const programs: Record<string, string[]> = {
  ...(process.env.TEST_SLUICE_BEFORE ? { before: [process.env.TEST_SLUICE_BEFORE] } : {}),
  now: process.env.TEST_SLUICE ? [process.env.TEST_SLUICE] : [process.execPath, join(root, "src/main.ts")],
};
const seconds = Number(process.argv[2] ?? 5);
const rate = Number(process.argv[3] ?? 40);
const rounds = 3;
const floods = [0, 100, 1500];
/**
 * The time for opening connections and for the first failures of a flood; the requests in it are reported separately.
 */
const settle_ms = 1500;

async function main(): Promise<void> {
  const engine = Bun.serve({
    port: 0,
    fetch: async (request) => {
      await request.arrayBuffer();
      return Response.json({
        choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
      });
    },
  });
  const table = new Table({
    head: ["", "operation", "connections", "requests", "p50 ms", "× quiet", "p99 ms", "answers to the flood"],
    style: { head: [], border: [] },
  });
  for (const [name, words] of Object.entries(programs)) {
    for (const store of ["embedded", "postgres"]) {
      const node = await startNode(words, engine.port!, store === "postgres");
      for (const row of await measured(node)) table.push([`${name}, ${store}`, ...row]);
      await node.stop();
    }
  }
  console.log(table.toString());
  await engine.stop(true);
}

interface Node {
  url: string;
  key: string;
  stop(): Promise<void>;
}

async function measured({ url, key }: Node): Promise<string[][]> {
  const authorization = `Bearer ${key}`;
  const operations: Record<string, () => Promise<Response>> = {
    models: () => fetch(`${url}/v1/models`, { headers: { authorization } }),
    chat: () =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: '{"model":"acme/m","max_tokens":16,"messages":[{"role":"user","content":"Hello"}]}',
      }),
  };
  const latencies = new Map<string, number[]>();
  const answers = new Map<number, string>();
  for (const ask of Object.values(operations))
    await steadily(() => answeredWhole(ask()), { length_s: 1, rate, latencies: [] });
  for (let round = 0; round < rounds; round++) {
    for (const connections of floods) {
      const attack = connections > 0 ? await attacked(url, connections) : null;
      for (const [name, ask] of Object.entries(operations)) {
        const id = `${name} ${connections}`;
        const list = latencies.get(id) ?? [];
        latencies.set(id, list);
        await steadily(() => answeredWhole(ask()), { length_s: seconds, rate, latencies: list });
      }
      if (attack) answers.set(connections, await attack.end());
    }
  }
  return Object.keys(operations).flatMap((name) =>
    floods.map((connections) => {
      const list = latencies.get(`${name} ${connections}`)!.toSorted((one, other) => one - other);
      const at = (share: number) => list[Math.floor(list.length * share)]!;
      const quiet = latencies.get(`${name} 0`)!.toSorted((one, other) => one - other);
      const ratio = at(0.5) / quiet[Math.floor(quiet.length / 2)]!;
      const numbers = [at(0.5).toFixed(2), ratio.toFixed(2), at(0.99).toFixed(1)];
      return [name, String(connections), String(list.length), ...numbers, answers.get(connections) ?? ""];
    }),
  );
}

async function attacked(url: string, connections: number) {
  const script = join(root, "test/attacks/flood.ts");
  const child = Bun.spawn([process.execPath, script, url, String(connections)], { stdout: "pipe", stderr: "ignore" });
  let last = "";
  const reading = (async () => {
    for await (const chunk of child.stdout) last = new TextDecoder().decode(chunk).trim().split("\n").at(-1)!;
  })();
  await until(() => last !== "", 60_000, "the flood to begin");
  await Bun.sleep(settle_ms);
  return {
    async end() {
      child.kill("SIGKILL");
      await reading;
      return last;
    },
  };
}

/** Starts a node, and creates a key of an organization without limits. */
async function startNode(words: string[], enginePort: number, onPostgres: boolean): Promise<Node> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const database = onPostgres ? await freshDatabase() : null;
  writeFileSync(join(folder, "sluice.yaml"), configuration(enginePort));
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: folder, PORT: "0", SLUICE_CONFIG: join(folder, "sluice.yaml") },
    ...(database ? { DATABASE_URL: database.url } : { SLUICE_DATA_DIR: join(folder, "data") }),
  };
  const node = Bun.spawn([...words, "serve"], { cwd: folder, env, stdout: "pipe", stderr: "ignore" });
  let out = "";
  void (async () => {
    for await (const chunk of node.stdout) out += new TextDecoder().decode(chunk);
  })();
  await until(() => out.includes("serving on"), 60_000, "the node");
  const cli = async <T>(...command: string[]): Promise<T> => {
    const run = Bun.spawn([...words, ...command, "--json"], { cwd: folder, env, stdout: "pipe", stderr: "inherit" });
    return JSON.parse(await run.stdout.text()) as T;
  };
  await cli("org", "create", "bench", "--plan", "unlimited");
  const { key } = await cli<{ key: string }>("key", "create", "--org", "bench", "--name", "bench");
  return {
    url: /serving on (\S+)/.exec(out)![1]!,
    key,
    async stop() {
      node.kill("SIGTERM");
      await node.exited;
      await database?.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const configuration = (enginePort: number) => `upstreams:
  main: { url: "http://127.0.0.1:${enginePort}/v1" }
metering: { currency: USD }
models:
  - { id: acme/m, created: 1, context_window: 8192, prices: { input: 0.001, output: 0.001 }, routes: [{ upstream: main, model: m }] }
`;

await main();

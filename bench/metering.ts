// What metering costs a request: `bun bench/metering.ts [seconds] [requests a second]`. One node on Postgres and Redis, an
// engine that answers after 20 ms, and a driver; requests of an organization without limits and of one with every limit take
// turns, round by round, in one run, with requests to the engine directly and through a process that passes them on and does
// nothing else. CPU is the process's own (user and system), not the clock's. With TEST_SLUICE_BEFORE, an older binary takes
// turns with this one, on a database of its own.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Table from "cli-table3";
import { freshDatabase, redisUrl } from "../test/harness/services.ts";
import { until } from "../test/harness/until.ts";
import { steadily } from "./steady.ts";

const root = join(import.meta.dir, "..");
const program = process.env.TEST_SLUICE ? [process.env.TEST_SLUICE] : [process.execPath, join(root, "src/main.ts")];
const programBefore = process.env.TEST_SLUICE_BEFORE ? [process.env.TEST_SLUICE_BEFORE] : null;
const seconds = Number(process.argv[2] ?? 5);
const rounds = 4;
const rate = Number(process.argv[3] ?? 150);
const engine_ms = 20;
const ticks_a_second = 100;

interface Measured {
  latencies: number[];
  cpu_us: number;
}

async function main(): Promise<void> {
  const answer = JSON.stringify({
    choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
  });
  const engine = Bun.serve({
    port: 0,
    fetch: async (request) => {
      await request.arrayBuffer();
      await Bun.sleep(engine_ms);
      return new Response(answer, { headers: { "content-type": "application/json" } });
    },
  });
  const passing = await passer(`http://127.0.0.1:${engine.port}`);
  const now = await startNode(program, engine.port!);
  const before = programBefore ? await startNode(programBefore, engine.port!) : null;
  const at = (base: string, key = "") => post(`${base}/v1/chat/completions`, key);
  const targets: Record<string, Target> = {
    "engine alone": { pid: now.pid, ask: () => at(`http://127.0.0.1:${engine.port}`) },
    "passed on": { pid: passing.pid, ask: () => at(passing.url) },
    ...(before ? { "limits on, before": { pid: before.pid, ask: () => at(before.url, before.keys.on) } } : {}),
    "limits off": { pid: now.pid, ask: () => at(now.url, now.keys.off) },
    "limits on": { pid: now.pid, ask: () => at(now.url, now.keys.on) },
  };
  const measured = Object.fromEntries(
    Object.keys(targets).map((name) => [name, { latencies: [], cpu_us: 0 } as Measured]),
  );
  for (const { ask } of Object.values(targets)) await steadily(ask, { length_s: 1, rate, latencies: [] });
  for (let round = 0; round < rounds; round++) {
    for (const [name, { pid, ask }] of Object.entries(targets)) {
      const before = cpu(pid);
      await steadily(ask, { length_s: seconds, rate, latencies: measured[name]!.latencies });
      measured[name]!.cpu_us += cpu(pid) - before;
    }
  }
  report(measured);
  passing.kill();
  await now.stop();
  await before?.stop();
  await engine.stop(true);
}

/** A node with a database of its own, and a key of an organization for each plan. */
async function startNode(words: string[], enginePort: number) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const database = await freshDatabase();
  writeFileSync(join(folder, "sluice.yaml"), configuration(enginePort));
  const env = {
    PATH: process.env.PATH ?? "",
    PORT: "0",
    DATABASE_URL: database.url,
    REDIS_URL: await redisUrl(),
    SLUICE_CONFIG: join(folder, "sluice.yaml"),
    BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
  };
  const node = Bun.spawn([...words, "serve"], { cwd: folder, env, stdout: "pipe", stderr: "ignore" });
  let out = "";
  void (async () => {
    for await (const chunk of node.stdout) out += new TextDecoder().decode(chunk);
  })();
  await until(() => out.includes("serving on"), 30_000, "the node");
  const cli = async <T>(...command: string[]): Promise<T> => {
    const run = Bun.spawn([...words, ...command, "--json"], { cwd: folder, env, stdout: "pipe", stderr: "inherit" });
    return JSON.parse(await run.stdout.text()) as T;
  };
  const keys: Record<string, string> = {};
  for (const plan of ["off", "on"]) {
    await cli("org", "create", plan, "--plan", plan);
    keys[plan] = (await cli<{ key: string }>("key", "create", "--org", plan, "--name", "bench")).key;
  }
  return {
    pid: node.pid,
    url: /serving on (\S+)/.exec(out)![1]!,
    keys,
    async stop() {
      node.kill("SIGTERM");
      await node.exited;
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const configuration = (enginePort: number) => `upstreams:
  main: { url: "http://127.0.0.1:${enginePort}/v1" }
models:
  - { id: acme/m, created: 1, context_window: 8192, prices: { input: 1, output: 1 }, routes: [{ upstream: main, model: m }] }
plans:
  off: {}
  on: { session: 1000000000, week: 1000000000, month: 1000000000, requests_per_minute: 1000000, tokens_per_minute: 1000000000, concurrent_requests: 10000 }
`;

interface Target {
  /** Whose CPU is counted: of requests that go to the engine directly the node's, which rests. */
  pid: number;
  ask(): Promise<Response>;
}

/** The least that a gateway of this runtime does: no key, no metering, no look at the body. */
async function passer(engineUrl: string) {
  const program = `const server = Bun.serve({ port: 0, async fetch(request) {
    const path = new URL(request.url).pathname;
    return fetch("${engineUrl}" + path, { method: "POST", body: await request.bytes() });
  } });
  console.log(server.url.origin);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.getReader().read();
  return { pid: child.pid, url: new TextDecoder().decode(value).trim(), kill: () => child.kill() };
}

function post(url: string, key: string): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: '{"model":"acme/m","max_tokens":16,"messages":[{"role":"user","content":"Hello"}]}',
  });
}

function cpu(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1e6) / ticks_a_second;
}

function report(measured: Record<string, Measured>): void {
  const table = new Table({
    head: ["", "requests", "CPU, µs a request", "× passed on", "p50 ms", "p99 ms"],
    style: { head: [], border: [] },
  });
  const cost = ({ latencies, cpu_us }: Measured) => cpu_us / latencies.length;
  const least = cost(measured["passed on"]!);
  for (const [name, of] of Object.entries(measured)) {
    const { latencies } = of;
    const sorted = latencies.toSorted((one, other) => one - other);
    const at = (share: number) => sorted[Math.floor(sorted.length * share)]!.toFixed(1);
    table.push([name, sorted.length, cost(of).toFixed(0), (cost(of) / least).toFixed(2), at(0.5), at(0.99)]);
  }
  console.log(table.toString());
}

await main();

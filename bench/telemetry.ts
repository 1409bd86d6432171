// Measures the cost of telemetry per request: `bun bench/telemetry.ts [seconds] [requests a second] [rounds]`. Three
// nodes on Postgres use the same engine: one with metrics only, one that traces 1 % of the requests, and one that
// traces all of them. Their requests take turns, round by round. A collector receives the exported data. CPU time is
// the process's own (user and system), not elapsed time; the column `best` is that of the best round, which other
// programs disturbed least. With TEST_SLUICE_BEFORE, an older binary takes turns with them.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Table from "cli-table3";
import { startCollector } from "../test/features/telemetry/collector.ts";
import { freshDatabase } from "../test/harness/services.ts";
import { until } from "../test/harness/until.ts";
import { cpu_us as cpu_us_of } from "./speed/process.ts";
import { answeredWhole, steadily } from "./steady.ts";

const root = join(import.meta.dir, "..");
const program = process.env.TEST_SLUICE ? [process.env.TEST_SLUICE] : [process.execPath, join(root, "src/main.ts")];
const seconds = Number(process.argv[2] ?? 4);
const rate = Number(process.argv[3] ?? 100);
const rounds = Number(process.argv[4] ?? 4);

async function main(): Promise<void> {
  const collector = startCollector();
  const engine = startEngine();
  const traced = (ratio: number) => `telemetry: { endpoint: "${collector.url}", sample_ratio: ${ratio} }`;
  const nodes: Record<string, Awaited<ReturnType<typeof startNode>>> = {
    ...(process.env.TEST_SLUICE_BEFORE
      ? { before: await startNode([process.env.TEST_SLUICE_BEFORE], engine.port!, "") }
      : {}),
    "metrics alone": await startNode(program, engine.port!, ""),
    "traces at 1 %": await startNode(program, engine.port!, traced(0.01)),
    "traces at 100 %": await startNode(program, engine.port!, traced(1)),
  };
  const cpu_us = new Map<string, number[]>(Object.keys(nodes).map((name) => [name, []]));
  const latencies = new Map<string, number[]>(Object.keys(nodes).map((name) => [name, []]));
  for (const { ask } of Object.values(nodes)) {
    // The first requests are sent one at a time, because a newly migrated database is slow at first.
    for (let count = 0; count < 50; count++) await ask();
    await steadily(ask, { length_s: 1, rate, latencies: [] });
  }
  for (let round = 0; round < rounds; round++) {
    for (const [name, { pid, ask }] of Object.entries(nodes)) {
      const before = cpu_us_of(pid);
      await steadily(ask, { length_s: seconds, rate, latencies: latencies.get(name)! });
      cpu_us.get(name)!.push((cpu_us_of(pid) - before) / (seconds * rate));
    }
  }
  const table = new Table({ head: ["node", "CPU µs a request", "best", "p50 ms"], style: { head: [], border: [] } });
  for (const [name, all] of latencies) {
    const sorted = all.toSorted((a, b) => a - b);
    const each = cpu_us.get(name)!;
    const mean = each.reduce((sum, one) => sum + one, 0) / each.length;
    table.push([name, Math.round(mean), Math.round(Math.min(...each)), sorted[sorted.length >> 1]!.toFixed(1)]);
  }
  console.log(`${table}\n${collector.spans.length} spans of ${rate * seconds * rounds} requests a node`);
  for (const node of Object.values(nodes)) await node.stop();
  await engine.stop(true);
  await collector.stop();
}

function startEngine() {
  const answer = JSON.stringify({
    choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
  });
  return Bun.serve({
    port: 0,
    async fetch(request) {
      await request.arrayBuffer();
      return new Response(answer, { headers: { "content-type": "application/json" } });
    },
  });
}

async function startNode(words: string[], enginePort: number, telemetry: string) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  writeFileSync(
    join(folder, "sluice.yaml"),
    `upstreams: { main: { url: "http://127.0.0.1:${enginePort}/v1" } }
metering: { currency: USD }
models:
  - { id: acme/m, created: 1, context_window: 8192, prices: { input: 0.001, output: 0.001 }, routes: [{ upstream: main, model: m }] }
plans: { pro: {} }
${telemetry}
`,
  );
  const database = await freshDatabase();
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: folder, PORT: "0", DATABASE_URL: database.url },
    SLUICE_CONFIG: join(folder, "sluice.yaml"),
  };
  const node = Bun.spawn([...words, "serve"], { cwd: folder, env, stdout: "pipe", stderr: "ignore" });
  let out = "";
  void (async () => {
    for await (const chunk of node.stdout) out += new TextDecoder().decode(chunk);
  })();
  await until(() => out.includes("serving on"), 60_000, "the node");
  const url = /serving on (\S+)/.exec(out)![1]!;
  const command = (...more: string[]) =>
    Bun.spawn([...words, ...more, "--json"], { cwd: folder, env, stdout: "pipe" }).stdout.json();
  await command("org", "create", "bench", "--plan", "unlimited");
  const { key } = (await command("key", "create", "--org", "bench", "--name", "bench")) as { key: string };
  const ask = () =>
    answeredWhole(
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: '{"model":"acme/m","max_tokens":16,"messages":[{"role":"user","content":"Hello"}]}',
      }),
    );
  const stop = async () => {
    node.kill("SIGTERM");
    await node.exited;
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { pid: node.pid, ask, stop };
}

await main();

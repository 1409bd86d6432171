// Measures how much a pg_dump slows requests down: `bun bench/dump.ts URL [requests a second] [seconds]`, on a database
// that bench/scale.ts has filled. There are one node, an engine that responds after 20 ms, ten organizations, and
// requests at a steady rate. There are three phases: some seconds without a dump; a pg_dump, until it has ended or the
// given seconds have passed; and seconds without a dump again.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Table from "cli-table3";
import { postgresProgram } from "../test/harness/binaries.ts";
import { redisUrl } from "../test/harness/services.ts";
import { startSluice } from "../test/harness/sluice.ts";

const [url] = process.argv.slice(2);
if (!url) throw new Error("name the database: bun bench/dump.ts postgres://…");
const rate = Number(process.argv[3] ?? 50);
const length_s = Number(process.argv[4] ?? 60);
const quiet_s = length_s / 2;
const engine_ms = 20;

const answer = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
});
const engine = Bun.serve({
  port: 0,
  async fetch(request) {
    await request.arrayBuffer();
    await Bun.sleep(engine_ms);
    return new Response(answer, { headers: { "content-type": "application/json" } });
  },
});
const configuration = `upstreams:
  main: { url: "http://127.0.0.1:${engine.port}/v1" }
metering: { currency: USD }
models:
  - { id: acme/m, created: 1, context_window: 8192, prices: { input: 0.001, output: 0.001 }, routes: [{ upstream: main, model: m }] }
plans:
  scale: { session: 1000, week: 1000, month: 1000, requests_per_minute: 1000000 }
`;

interface Phase {
  name: string;
  latencies: number[];
  /** The number of refused requests by HTTP status. */
  refused: Record<number, number>;
}

const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
const sluice = await startSluice({
  ...{ store: "pglite" as const, config: configuration, dataDir: folder },
  env: { DATABASE_URL: url, REDIS_URL: await redisUrl() },
});
let isOver = false;
const keys: string[] = [];
for (let count = 0; count < 10; count++) {
  const slug = `dump-${crypto.randomUUID().slice(0, 8)}`;
  await sluice.json("org", "create", slug, "--plan", "scale");
  keys.push((await sluice.json<{ key: string }>("key", "create", "--org", slug, "--name", "bench")).key);
}

async function ask(count: number, { latencies, refused }: Phase): Promise<void> {
  const sent = performance.now();
  const response = await fetch(`${sluice.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${keys[count % keys.length]}`, "content-type": "application/json" },
    body: '{"model":"acme/m","max_tokens":16,"messages":[{"role":"user","content":"Hello"}]}',
  });
  await response.text();
  if (response.status !== 200) refused[response.status] = (refused[response.status] ?? 0) + 1;
  latencies.push(performance.now() - sent);
}

/** Runs a phase: sends requests at a steady rate, without waiting for earlier ones, until `isOver`. */
async function phase(name: string, isOver: (elapsed_s: number) => boolean): Promise<Phase> {
  const taken: Phase = { name, latencies: [], refused: {} };
  const pending: Promise<void>[] = [];
  const started = performance.now();
  for (let count = 0; !isOver((performance.now() - started) / 1000); count++) {
    const wait = started + (count * 1000) / rate - performance.now();
    if (wait > 1) await Bun.sleep(wait);
    pending.push(ask(count, taken));
  }
  await Promise.all(pending);
  return taken;
}

void sluice.exited.then((code) => {
  if (!isOver) console.error(`the node ended with ${code}:\n${sluice.stderr().slice(-2000)}`);
  if (!isOver) process.exit(1);
});

await phase("warm", (elapsed_s) => elapsed_s > 3);
const phases = [await phase("quiet", (elapsed_s) => elapsed_s > quiet_s)];
const { file, env } = await postgresProgram("pg_dump");
const dump = Bun.spawn(["sh", "-c", 'exec "$0" --format=custom --compress=1 "$1" >/dev/null', file, url], {
  env,
  stderr: "inherit",
});
const began = performance.now();
phases.push(await phase("pg_dump", (elapsed_s) => dump.exitCode !== null || elapsed_s > length_s));
const hasEnded = dump.exitCode !== null;
console.log(
  `pg_dump ${hasEnded ? `answered ${dump.exitCode}` : "still ran"} after ${((performance.now() - began) / 1000).toFixed(0)} s`,
);
dump.kill();
await dump.exited;
phases.push(await phase("quiet again", (elapsed_s) => elapsed_s > quiet_s));

const table = new Table({ head: ["", "requests", "refused", "p50 ms", "p99 ms"], style: { head: [], border: [] } });
for (const { name, latencies, refused } of phases) {
  const sorted = latencies.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]!.toFixed(1);
  const no = Object.entries(refused).map(([status, count]) => `${count} × ${status}`);
  table.push([name, sorted.length, no.join(", ") || "0", at(0.5), at(0.99)]);
}
console.log(table.toString());
isOver = true;
await sluice.stop();
await engine.stop(true);
rmSync(folder, { recursive: true, force: true });

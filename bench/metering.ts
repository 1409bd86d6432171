// What metering costs a request: `bun bench/metering.ts [seconds] [requests a second]`. One node on Postgres and Redis, an
// engine that answers after 20 ms, and a driver; requests of an organization without limits and of one with every limit take
// turns, round by round, in one run, with requests to the engine directly and through a process that passes them on and does
// nothing else. CPU is the process's own (user and system), not the clock's. With TEST_SLUICE_BEFORE, an older binary takes
// turns with this one, on a database of its own.

import Table from "cli-table3";
import { smallBody } from "./agent-body.ts";
import { cpu_us, post, programs, startNode, startPasser } from "./node.ts";
import { steadily } from "./steady.ts";

const seconds = Number(process.argv[2] ?? 5);
const rounds = 4;
const rate = Number(process.argv[3] ?? 150);
const engine_ms = 20;

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
  const words = programs();
  const passing = await startPasser(`http://127.0.0.1:${engine.port}`);
  const now = await startNode(words.now, engine.port!);
  const before = words.before ? await startNode(words.before, engine.port!) : null;
  const at = (base: string, key = "") => post(`${base}/v1/chat/completions`, key, smallBody);
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
      const begun_us = cpu_us(pid);
      await steadily(ask, { length_s: seconds, rate, latencies: measured[name]!.latencies });
      measured[name]!.cpu_us += cpu_us(pid) - begun_us;
    }
  }
  report(measured);
  passing.kill();
  await now.stop();
  await before?.stop();
  await engine.stop(true);
}

interface Target {
  /** Whose CPU is counted: of requests that go to the engine directly the node's, which rests. */
  pid: number;
  ask(): Promise<Response>;
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

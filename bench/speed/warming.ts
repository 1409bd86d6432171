// Measures the first requests, and warms processes up. A process runs code slowly until it has run it some thousand
// times, so the cost of the first requests is a row of its own, and everything else is measured after a warm-up.

import { closely, counted } from "../steady.ts";
import { protocols } from "./asks.ts";
import type { Pool } from "./client.ts";
import { cpu_us } from "./process.ts";
import type { Line } from "./report.ts";
import { names, type Scenario, scenarios, warmStream } from "./scenarios.ts";
import { askerOf, type Count } from "./slice.ts";
import type { Target } from "./targets.ts";

/** A target, the connections to it, and the count of its requests. */
export interface Driven {
  target: Target;
  connections: Pool;
  count: Count;
}

const cold_requests = 2000;
const connections_count = 64;
const small = scenarios[0]!;
const embeddings = scenarios.find(({ caller }) => caller === "embeddings")!;

/** Measures the first requests of each process. */
export async function coldLine(driven: readonly Driven[], say: (text: string) => void): Promise<Line> {
  const cells: Line["cells"] = {};
  const seen = new Set<number>();
  for (const { target, connections, count } of driven) {
    if (seen.has(target.pid)) continue;
    seen.add(target.pid);
    say(`cold: ${target.name}`);
    const before = cpu_us(target.pid);
    const ask = askerOf(target, connections, small, count);
    await counted(ask, { count: cold_requests, connections: connections_count });
    cells[target.name] = { value: (cpu_us(target.pid) - before) / cold_requests, compared: null, note: "" };
  }
  const base = cells[names.passed]?.value;
  for (const [name, cell] of Object.entries(cells)) {
    if (name !== names.passed && base && cell.value !== null) cell.compared = cell.value / base;
  }
  const name = `CPU a small request, the first ${cold_requests} after the start, chat`;
  return { id: "cold", name, unit: "µs", as: "ratio", budget: null, cells };
}

/** Warms the targets up: with small requests for half of the time, then with streams, in all protocols of a target. */
export async function warmed(driven: readonly Driven[], length_s: number, say: (text: string) => void): Promise<void> {
  const seen = new Set<number>();
  for (const { target, connections, count } of driven) {
    if (seen.has(target.pid)) continue;
    seen.add(target.pid);
    say(`warming: ${target.name}`);
    const kinds: Pick<Scenario, "behaviour" | "isStreamed">[] = [
      { behaviour: small.behaviour, isStreamed: false },
      { behaviour: warmStream, isStreamed: true },
    ];
    const callers = protocols.filter((protocol) => target.speaks.includes(protocol));
    for (const kind of kinds) {
      for (const caller of callers) {
        const ask = askerOf(target, connections, { ...small, ...kind, caller, engine: caller }, count);
        const each_s = length_s / kinds.length / callers.length;
        await closely(ask, { length_s: each_s, connections: connections_count, latencies: [] });
      }
    }
    if (!target.speaks.includes("embeddings")) continue;
    const embed = askerOf(target, connections, embeddings, count);
    await closely(embed, { length_s: length_s / 4, connections: connections_count, latencies: [] });
  }
}

// `npm run rolling -- haproxy`: runs three nodes behind Debian's haproxy or nginx, or Envoy, with continuous streams
// and requests, and restarts each node in turn. No request may fail and no stream may be cut off. Everything runs on
// loopback; a round takes about a minute.
//
// With TEST_SLUICE_BEFORE, an older binary, the nodes start with that binary, are upgraded, and are downgraded again.
// Nodes run from source, or from the binary in TEST_SLUICE, as one process or, with `--workers N`, as several.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { programs } from "../bench/programs.ts";
import { isName, kinds, type Name, startBalancer } from "./rolling/balancer.ts";
import { type Fleet, startFleet } from "./rolling/fleet.ts";
import { differences, roll } from "./rolling/roll.ts";

const { values, positionals } = parseArgs({
  args: Bun.argv.slice(2),
  allowPositionals: true,
  options: {
    streams: { type: "string", default: "100" },
    requests: { type: "string", default: "50" },
    workers: { type: "string", default: "1" },
  },
});
const drain = { drain_delay_ms: 5000, drain_ms: 25_000 };
const load = {
  streams: Number(values.streams),
  requests_per_second: Number(values.requests),
  stream_s: 8,
  settle_ms: 5000,
};

async function main(): Promise<void> {
  const name = positionals[0];
  if (!isName(name)) {
    const names = Object.keys(kinds).join("|");
    console.error(`usage: npm run rolling -- ${names} [--streams 100] [--requests 50] [--workers 1]`);
    process.exit(2);
  }
  const { now, before } = programs();
  const fleet = await startFleet({ count: 3, workers: values.workers, words: before ?? now, ...drain });
  let failed = true;
  try {
    failed = await rollThrough(name, fleet, before ? { upgrade: now, rollback: before } : { restart: now }, now);
  } finally {
    await fleet.stop();
  }
  process.exit(failed ? 1 : 0);
}

/**
 * Restarts all nodes under load, once for each of `rolls`. Returns whether any request failed or any stream was cut
 * off.
 */
async function rollThrough(
  name: Name,
  fleet: Fleet,
  rolls: Record<string, string[]>,
  newest: string[],
): Promise<boolean> {
  const balancer = await startBalancer(
    name,
    fleet.nodes.map(({ port }) => port),
  );
  const table = new Table({
    head: ["", "s", "streams", "cut", "requests", "failed", "longest silence, ms"],
    style: { head: [], border: [] },
  });
  let broken = false;
  try {
    for (const [what, words] of Object.entries(rolls)) {
      const { tally, took_ms } = await roll(fleet, { url: balancer.url, words, ...load, tell: console.log });
      const { streams, cut, requests, failed, silence_ms_max } = tally;
      table.push([what, (took_ms / 1000).toFixed(0), streams, cut, requests, failed, silence_ms_max.toFixed(0)]);
      for (const problem of tally.problems) console.log(problem);
      broken ||= cut + failed > 0;
    }
    console.log(`${balancer.version}\n${table.toString()}`);
    const differ = await differences(fleet, newest);
    console.log(`windows that differ from their records: ${differ}`);
    return broken || differ > 0;
  } finally {
    await balancer.stop();
  }
}

await main();

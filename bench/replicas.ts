// Measures the cost of a synchronous replica: `bun bench/replicas.ts [seconds] [batches a second]`. There are a primary
// and a replica on this machine, both of which wait for their disks, and one ledger with batches of eight commands of
// one organization. Three modes take turns, second by second:
// - No commit waits for the replica.
// - A commit waits until the replica has it on disk.
// - The same for the ledger's commits; all others wait until the replica has replayed them (`remote_apply`), which the
//   ledger does not need.

import { readFileSync } from "node:fs";
import Table from "cli-table3";
import { migrate } from "../db/migrate.ts";
import type { Admit } from "../src/core/store/ledger.ts";
import { ledger } from "../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { admitOf, newHex, settleOf } from "../test/core/store/ledger-stores.ts";
import { startPair } from "../test/harness/replica.ts";

const [length_s = 20, rate = 100] = process.argv.slice(2).map(Number);
const limits = { session: 1e14, week: 1e14, month: 1e14, concurrentRequests: 100_000 };
const modes = {
  "no replica is waited for": { synchronous_standby_names: "", synchronous_commit: "on" },
  synchronous_standby_names: { synchronous_standby_names: "replica", synchronous_commit: "on" },
  "and remote_apply": { synchronous_standby_names: "replica", synchronous_commit: "remote_apply" },
};

const pair = await startPair(["fsync=on", "full_page_writes=on"]);
const db = await serverDatabase(pair.primary.url);
await migrate(db);
const organization = `org_${newHex()}`;
await db.query("insert into organization (id, slug, name, anchor_at) values ($1, 'bench', 'Bench', '2026-01-31Z')", [
  organization.slice(4),
]);
const book = ledger(db, { recovery: "checkpoint", answer_ms: 60_000 });

const processes = async () =>
  (
    await db.query<{ pid: number }>(
      "select pid from pg_stat_activity where backend_type in ('client backend', 'walsender', 'walwriter')",
    )
  ).map(({ pid }) => pid);
const cpu_us = (pids: number[]) =>
  pids.reduce((sum, pid) => sum + Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1000, 0);

let running: Admit[] = [];
/** Runs one second of batches at a steady rate, without waiting for earlier ones. */
async function second(latencies: number[]): Promise<void> {
  const pending: Promise<unknown>[] = [];
  const started = performance.now();
  for (let count = 0; count < rate; count++) {
    const wait = started + (1000 * count) / rate - performance.now();
    if (wait > 1) await Bun.sleep(wait);
    const settles = running.map((one) => settleOf(one, 700));
    running = [];
    const admits = Array.from({ length: 4 }, () => admitOf(organization, { limits }));
    const sent = performance.now();
    pending.push(
      book.run([...settles, ...admits]).then(() => {
        latencies.push(performance.now() - sent);
        running.push(...admits);
      }),
    );
  }
  await Promise.all(pending);
}

const taken = Object.fromEntries(Object.keys(modes).map((name) => [name, { latencies: [] as number[], cpu_us: 0 }]));
for (let turn = -2; turn < length_s; turn++) {
  for (const [name, settings] of Object.entries(modes)) {
    for (const [setting, value] of Object.entries(settings)) {
      await pair.ask(pair.primary, `alter system set ${setting} = '${value}'`);
    }
    await pair.ask(pair.primary, "select pg_reload_conf()");
    const pids = await processes();
    const before = cpu_us(pids);
    await second(turn < 0 ? [] : taken[name]!.latencies);
    if (turn >= 0) taken[name]!.cpu_us += cpu_us(pids) - before;
  }
}

const table = new Table({
  head: ["", "batches", "p50 ms", "p99 ms", "primary's CPU, µs a batch"],
  style: { head: [], border: [] },
});
for (const [name, { latencies, cpu_us: cpu }] of Object.entries(taken)) {
  const sorted = latencies.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]!.toFixed(1);
  table.push([name, sorted.length, at(0.5), at(0.99), (cpu / sorted.length).toFixed(0)]);
}
console.log(table.toString());
await book.close();
await db.close();
await pair.stop();

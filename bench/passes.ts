// Measures the cost of a pass (one run) of the audit, which hashes all new records: `bun bench/passes.ts [records]`.
// Each transaction has 20 records, on a Postgres of its own; the CPU time is that of the backend, counted by the
// kernel. The bench also measures how the audit reads new records, and adds them to tallies (sums by window) and
// roll-ups. It does the same on PGlite, where it measures elapsed time instead of CPU time.

import { readFileSync } from "node:fs";
import Table from "cli-table3";
import { ledger } from "../src/stores/postgres/ledger.ts";
import { passDifferences } from "../src/stores/postgres/passes.ts";
import { admitOf, settleOf, stores } from "../test/core/store/ledger-stores.ts";

const records = Number(process.argv[2] ?? 20_000);
const perTransaction = 20;

async function measured(kind: "postgres" | "pglite"): Promise<string[][]> {
  const store = await stores[kind]();
  const book = ledger(store.db, { recovery: "checkpoint" });
  const organization = await store.newOrganization();
  const command = admitOf(organization);
  await book.run([command]);
  await book.run([settleOf(command, 40)]);
  const columns = await store.db.query<{ names: string }>(
    `select string_agg(attname, ', ') as names from pg_attribute where attrelid = 'usage_record'::regclass
     and attnum > 0 and not attisdropped and attname not in ('request_id', 'xact')`,
  );
  const { names } = columns[0]!;
  const [seed] = await store.db.query<{ id: string }>("select request_id as id from usage_record");
  for (let made = 1; made < records; made += perTransaction)
    await store.db.query(
      `insert into usage_record (request_id, ${names})
       select overlay(r.request_id::text placing lpad(to_hex($1 + n), 12, '0') from 25)::uuid, ${names}
       from usage_record r cross join generate_series(1, ${perTransaction}) n where r.request_id = $2`,
      [made, seed!.id],
    );
  await store.db.query("analyze usage_record");
  const lane = await store.db.lane();
  const [{ pid }] = (await lane.query<{ pid: number }>("select pg_backend_pid() as pid")) as [{ pid: number }];
  const cpu_ms = () =>
    kind === "pglite" ? performance.now() : Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  const row = async (what: string, work: () => Promise<unknown>) => {
    const began_ms = cpu_ms();
    await work();
    return [kind, what, (((cpu_ms() - began_ms) * 1000) / records).toFixed(1)];
  };
  const rows = [
    await row("read on: tallies and roll-ups", () => lane.query("select usage_audit_read(1000000000)")),
    await row("a pass, in one piece", () => lane.query("select * from usage_digests(0, 4000000000)")),
    await row("the same again", () => lane.query("select * from usage_digests(0, 4000000000)")),
  ];
  await lane.close();
  await book.audit();
  const began_ms = performance.now();
  const found = await passDifferences(store.db, { quick_ms: 100, slow_ms: 500 });
  if (found.length > 0) throw new Error(`the book differs: ${JSON.stringify(found)}`);
  rows.push([
    kind,
    "compared by a full check (elapsed)",
    (((performance.now() - began_ms) * 1000) / records).toFixed(1),
  ]);
  await book.close();
  await store.close();
  return rows;
}

const table = new Table({ head: ["", "", "µs a record"] });
for (const kind of ["postgres", "pglite"] as const) table.push(...(await measured(kind)));
console.log(table.toString());

// Measures how long a page of the list of requests takes with 13 months of records: `bun bench/requests.ts URL
// [records]`. A database without records is filled first (bench/requests-fill.ts; by default 20 million records: 10 GB
// and 12 minutes on a busy machine). With each filter, the list is read from its newest page, from the middle and near
// the end. Prints the slowest page and the median.

import Table from "cli-table3";
import { migrate } from "../db/migrate.ts";
import type { RequestQuery } from "../src/admin/store/request-list.ts";
import { idOf } from "../src/core/store/ids.ts";
import { requestList } from "../src/stores/postgres/request-list.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { fillRequests, idFor } from "./requests-fill.ts";

const [, , url, records = "20000000"] = process.argv;
if (!url) throw new Error("usage: bun bench/requests.ts URL [records]");
/** The number of consecutive pages that are read from each position in the list. */
const pages = 5;
const day_ms = 86_400_000;

const hex = (kind: keyof typeof idFor, n: number) =>
  `000000${idFor[kind]}000070008000${n.toString(16).padStart(12, "0")}`;
const organization = (n: number) => idOf(hex("organization", n), "org_");
const key = (organizationNumber: number, n: number) => idOf(hex("key", organizationNumber * 100 + n), "key_");

const filters: Record<string, Partial<RequestQuery>> = {
  "no filter": {},
  "half of all records: organization 0": { organizationId: organization(0) },
  "and one of its 20 keys": { organizationId: organization(0), keyId: key(0, 3) },
  "and one of its 4 teams": { organizationId: organization(0), teamId: idOf(hex("team", 2), "team_") },
  "and outcome failed (1 %)": { organizationId: organization(0), outcome: "failed" },
  "and a model of one in a million": { organizationId: organization(0), model: "acme/rare" },
  "and a model nobody asked for since the first month": { organizationId: organization(0), model: "acme/retired" },
  "organization 1 (4 %)": { organizationId: organization(1) },
  "organization 100 (a request in 40 minutes)": { organizationId: organization(100) },
  "organization 900 (a request in 3 hours)": { organizationId: organization(900) },
  "outcome failed (1 %)": { outcome: "failed" },
  "outcome cancelled (2 %)": { outcome: "cancelled" },
  "model of one in a million": { model: "acme/rare" },
  "model nobody asked for since the first month": { model: "acme/retired" },
  "upstream of one in ten": { upstream: "second" },
  "upstream of one in a million": { upstream: "spare" },
  running: { outcome: "running" },
};

const db = await serverDatabase(url, { statement_ms: 3_600_000 });
await migrate(db);
const [has] = await db.query<{ some: boolean }>("select exists (select from usage_record) as some");
if (!has!.some) {
  const lane = await db.lane({ work_mem: "64MB" });
  await fillRequests(lane, Number(records));
  await lane.close();
}
const list = requestList(db);
const places = { newest: undefined, middle: 195 * day_ms, deep: 385 * day_ms };
const head = ["filter", ...Object.keys(places).map((place) => `${place}: ms usual, longest, items a page`)];
const table = new Table({ head, style: { head: [], border: [] } });
for (const [name, filter] of Object.entries(filters)) {
  const cells: string[] = [];
  for (const ago_ms of Object.values(places)) cells.push(await from(filter, ago_ms));
  table.push([name, ...cells]);
}
console.log(table.toString());
await db.close();

async function from(filter: Partial<RequestQuery>, ago_ms: number | undefined): Promise<string> {
  const took: number[] = [];
  let items = 0;
  let before = ago_ms === undefined ? undefined : idOf(Bun.randomUUIDv7(undefined, Date.now() - ago_ms), "req_");
  do {
    const began_ms = performance.now();
    const page = await list.listRequests({ ...filter, limit: 100, ...(before && { before }) });
    took.push(performance.now() - began_ms);
    items += page.items.length;
    before = page.next ?? undefined;
  } while (before !== undefined && took.length < pages);
  const sorted = took.toSorted((one, other) => one - other);
  return `${sorted[Math.floor(sorted.length / 2)]!.toFixed(0)}, ${sorted.at(-1)!.toFixed(0)}, ${Math.round(items / took.length)}`;
}

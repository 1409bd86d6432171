// Measures the console with 10,000 organizations and 13 months of records: `bun bench/console.ts URL [records] [watched
// s] [words of paths]`. A database without records is filled first (bench/console-fill.ts; by default 20 million
// records: 11 GB, and 15 to 40 minutes). A node serves it. A real browser opens each page several times without a
// cache, and then the next part of each list. For both, the bench prints the median and the longest time until the page
// is complete, in milliseconds. It splits the longest time of a next part into the time of the database (if it has
// pg_stat_statements), the rest of the node's time, and the browser's time. Then it prints how much the reports of the
// usage page read (bench/console-reads.ts). At the end, 20 people, each with a session of their own, watch the fleet
// page, and the node's CPU time is compared with that without them.

import Table from "cli-table3";
import { migrate } from "../db/migrate.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { launchBrowser, openTab, type Tab } from "../test/admin/console/chromium.ts";
import { firstLoad_bytes } from "../test/admin/console/first-load.ts";
import { Browser } from "../test/harness/browser.ts";
import { cpuOf_s } from "../test/harness/cpu.ts";
import { type PeopleNode, startPeopleNode } from "../test/harness/people-node.ts";
import { fillConsole } from "./console-fill.ts";
import { printReads } from "./console-reads.ts";
import { steadily } from "./steady.ts";

const [, , url, records = "20000000", watched_s = "60", words = ""] = process.argv;
if (!url) throw new Error("usage: bun bench/console.ts URL [records] [seconds with watchers] [words of paths]");
const organizations = 10_000;
const turns = Number(process.env.TURNS ?? 5);
const watchers = 20;

const db = await serverDatabase(url, { statement_ms: 3_600_000 });
await migrate(db);
const [has] = await db.query<{ some: boolean }>("select exists (select from usage_record) as some");
if (!has!.some) {
  const lane = await db.lane({ work_mem: "128MB" });
  await fillConsole(lane, { records: Number(records), organizations });
  await lane.close();
}
// A node started by an earlier run of this bench created an organization named `test`. It is renamed, because the new
// node creates one of the same name.
await db.query("update organization set slug = 'test-' || extract(epoch from now())::bigint where slug = 'test'");
const [{ id: request }] = (await db.query<{ id: string }>(
  "select 'req_' || replace(request_id::text, '-', '') as id from usage_record order by request_id desc limit 1",
)) as [{ id: string }];

const node = await startPeopleNode({ env: { DATABASE_URL: url } });
const { sluice, consoleUrl: origin } = node;
const name = `bench-${Date.now()}`;
const { token } = await sluice.json<{ token: string }>("operator", "create", name, "--role", "admin");

const lastMonth = new Date(Date.now() - 32 * 86_400_000).toISOString().slice(0, 7);
const yearAgo = new Date(Date.now() - 365 * 86_400_000).toISOString().slice(0, 7);
const pages = [
  "/",
  "/usage",
  "/usage?by=key",
  `/usage?by=key&from=${yearAgo}`,
  "/usage?by=model",
  `/usage?by=day&from=${lastMonth}`,
  "/usage?by=key&organization=org-0",
  "/requests",
  "/requests?organization=org-0",
  "/requests?organization=org-100",
  "/requests?outcome=failed",
  `/requests/${request}`,
  "/organizations",
  "/organizations?over=75",
  "/organizations/org-0",
  "/engines",
  "/nodes",
  "/plans",
  "/plans/pro",
  "/people",
  "/operators",
  "/audit",
  "/connect",
];

/**
 * JavaScript that measures the time from the click on the link to a list's next part until its rows are shown, and how
 * much of it the requests took. Null: there is no next part. The page evaluates it, because a click by the browser's
 * driver takes some 50 ms by itself.
 */
const nextPart = `new Promise((resolve) => {
  performance.clearResourceTimings();
  const first = () => document.querySelector("main tbody tr")?.textContent;
  const link = document.querySelector("a[rel=next]");
  if (!link) return resolve(null);
  const [before, began_ms] = [first(), performance.now()];
  const look = () => {
    const isThere = first() !== before && document.querySelector("[aria-busy=true], .waiting") === null;
    if (!isThere) return requestAnimationFrame(look);
    const whole_ms = performance.now() - began_ms;
    const asked = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/management/"));
    const ends = asked.map(({ responseEnd }) => responseEnd);
    const http_ms = asked.length === 0 ? 0 : Math.max(...ends) - Math.min(...asked.map(({ startTime }) => startTime));
    resolve({ whole_ms, http_ms });
  };
  requestAnimationFrame(look);
  link.click();
})`;

if (words !== "none") {
  const browser = await launchBrowser();
  const tab = await openTab(origin, { theme: "light", width: 1440 }, browser);
  await tab.signIn(token);
  console.log(`first load: ${(await firstLoad_bytes(origin)) / 1000} KB (gzip)`);
  await printPages(tab);
  await printReads(db);
  await browser.close();
}
if (Number(watched_s) > 0) await printWatchers(node, Number(watched_s));
await node[Symbol.asyncDispose]();
await db.close();

interface Took {
  whole_ms: number;
  http_ms: number;
  store_ms: number;
}

async function printPages(of: Tab): Promise<void> {
  const head = ["page", "usual, ms", "longest, ms", "next part: usual", "longest", "store, node, browser"];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const path of pages.filter((one) => words.split(",").some((word) => one.includes(word)))) {
    const opened: number[] = [];
    const next: Took[] = [];
    for (let turn = 0; turn < turns; turn++) {
      opened.push(await timed(() => of.visit(path)));
      const before_ms = await store_ms();
      const took = await of.page.evaluate<Pick<Took, "whole_ms" | "http_ms"> | null>(nextPart);
      if (took !== null) next.push({ ...took, store_ms: (await store_ms()) - before_ms });
    }
    const longest = next.toSorted((one, other) => other.whole_ms - one.whole_ms)[0];
    const row = [path, ...rendered(opened), ...rendered(next.map(({ whole_ms }) => whole_ms)), partsOf(longest)];
    table.push(row);
    console.error(row.join("  "));
  }
  console.log(table.toString());
  if (of.found.length > 0) console.log(of.found.join("\n"));
}

function partsOf(took: Took | undefined): string {
  if (!took) return "";
  const { whole_ms, http_ms, store_ms } = took;
  return [store_ms, http_ms - store_ms, whole_ms - http_ms].map((ms) => ms.toFixed(0)).join(", ");
}

/** The total time of all statements in the database so far; 0 if it has no pg_stat_statements. */
async function store_ms(): Promise<number> {
  const [{ has }] = (await db.query<{ has: boolean }>(
    "select to_regclass('pg_stat_statements') is not null as has",
  )) as [{ has: boolean }];
  if (!has) return 0;
  const [sum] = await db.query<{ ms: number }>(
    "select sum(total_exec_time)::float8 as ms from pg_stat_statements where query ~ 'usage_|request|organization'",
  );
  return sum!.ms;
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const began_ms = performance.now();
  await act();
  return performance.now() - began_ms;
}

function rendered(took: number[]): string[] {
  const sorted = took.toSorted((one, other) => one - other);
  return sorted.length === 0
    ? ["", ""]
    : [sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!].map((ms) => ms.toFixed(0));
}

/**
 * Prints how much more CPU time the node uses while people watch a page. Requests run during the measurement, so that
 * each event sent to the watchers has a change to report.
 */
async function printWatchers({ provider }: PeopleNode, length_s: number): Promise<void> {
  const sessions = [];
  for (let number = 0; number < watchers; number++) {
    provider.account = `watcher-${number}`;
    const email = `${provider.account}@example.com`;
    provider.claims.set(provider.account, { name: email, email, email_verified: true, groups: ["platform"] });
    const browser = new Browser();
    const secret = await browser.redeem(await browser.visit(`${origin}/sign-in`));
    sessions.push({
      cookie: `sluice-console=${browser.cookie("sluice-console")}`,
      "x-sluice-console": secret,
    });
  }
  for (const part of [1, 2]) {
    const without = await busy_percent(length_s);
    const stop = new AbortController();
    let events = 0;
    const opened = sessions.map(() => Promise.withResolvers<void>());
    const following = sessions
      .map(async (headers, number) => {
        const stream = await fetch(`${origin}/management/v1/fleet?format=events`, { headers, signal: stop.signal });
        if (!stream.ok) throw new Error(`the stream was refused: ${await stream.text()}`);
        for await (const _ of stream.body!) {
          opened[number]!.resolve();
          events += 1;
        }
      })
      .map((one) =>
        one.catch((thrown) => {
          if (!stop.signal.aborted) throw thrown;
        }),
      );
    await Promise.all(opened.map(({ promise }) => promise));
    const withThem = await busy_percent(length_s);
    stop.abort();
    await Promise.all(following);
    const perSecond = (events / watchers / length_s).toFixed(2);
    console.log(
      `${part}: the node takes ${without.toFixed(2)} % of a core without watchers, ${withThem.toFixed(2)} % with ${watchers} people (${perSecond} events a second to each)`,
    );
  }
}

async function busy_percent(length_s: number): Promise<number> {
  const model = "qwen/qwen3-coder";
  const messages = [{ role: "user", content: "hello" }];
  const before_s = cpuOf_s(sluice.pid);
  const asked = () => sluice.post("/v1/chat/completions", { model, max_tokens: 5, messages }).then((one) => one.text());
  await steadily(asked, { length_s, rate: 1, latencies: [] });
  return ((cpuOf_s(sluice.pid) - before_s) / length_s) * 100;
}

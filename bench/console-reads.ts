// Measures how much the console's reports read from a database that bench/console.ts has filled: for each statement,
// the rows used, the rows skipped, blocks and milliseconds. Only the milliseconds depend on the machine's load.

import Table from "cli-table3";
import type { ReportQuery } from "../src/admin/store/report.ts";
import type { Database, Transaction } from "../src/stores/postgres/database.ts";
import { report } from "../src/stores/postgres/report.ts";

interface Plan {
  "Relation Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  Plans?: Plan[];
}

interface Explained {
  Plan: Plan;
  "Execution Time": number;
}

/**
 * The start of the month `back` months ago in Berlin's time zone, in full hours. For a user in that time zone, the
 * console's days begin at midnight there.
 */
function monthInBerlin(back: number): Date {
  const now = new Date();
  const first_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back);
  const offset_h = Number(
    new Intl.DateTimeFormat("en", { timeZone: "Europe/Berlin", hour: "2-digit", hourCycle: "h23" }).format(first_ms),
  );
  return new Date(first_ms - offset_h * 3_600_000);
}

const months = 13;
const zone = "Europe/Berlin";
const [yearAgo, lastMonth, thisMonth, end] = [months - 1, 1, 0, -1].map(monthInBerlin) as [Date, Date, Date, Date];

/** The reports that the usage page requests. */
const reports: Record<string, Omit<ReportQuery, "organizationId" | "rows_max">> = {
  "a month by model and day": { by: ["model", "day"], zone, from: thisMonth, to: end, groups_max: 7 },
  "the month before by day": { by: ["day"], zone, from: lastMonth, to: thisMonth },
  "a month by key and day": { by: ["key", "day"], zone, from: thisMonth, to: end, groups_max: 7 },
  "a month by key": { by: ["key"], from: thisMonth, to: end, largest: 50 },
  "13 months by month": { by: ["month"], zone, from: yearAgo, to: end },
  "13 months by key and month": { by: ["key", "month"], zone, from: yearAgo, to: end, groups_max: 7 },
  "13 months by key": { by: ["key"], from: yearAgo, to: end, largest: 50 },
};

export async function printReads(db: Database): Promise<void> {
  const head = ["report", "rows used", "passed over", "blocks", "ms"];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const [name, query] of Object.entries(reports)) {
    const found: Explained[] = [];
    await report(explaining(db, found), { ...query, organizationId: null, rows_max: 1000 });
    const { Plan: plan, "Execution Time": took_ms } = found[0]!;
    const tables = nodesOf(plan).filter((one) => one["Relation Name"]?.startsWith("usage_"));
    const sum = (of: (plan: Plan) => number) => tables.reduce((all, one) => all + of(one) * one["Actual Loops"], 0);
    table.push([
      name,
      sum((one) => one["Actual Rows"]),
      sum((one) => (one["Rows Removed by Filter"] ?? 0) + (one["Rows Removed by Index Recheck"] ?? 0)),
      plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
      took_ms.toFixed(0),
    ]);
  }
  console.log(table.toString());
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/**
 * Returns a database object for the reports that runs EXPLAIN on each statement before the statement itself, and adds
 * the plan to `found`.
 */
function explaining(db: Database, found: Explained[]): Database {
  const explained = (tx: Transaction) => ({
    exec: (sql: string) => tx.exec(sql),
    async query<Row>(text: string, values?: readonly unknown[]) {
      if (text.includes("as groups")) {
        const statement = `explain (analyze, buffers, format json) ${text}`;
        const [row] = await tx.query<{ "QUERY PLAN": Explained[] }>(statement, values);
        found.push(row!["QUERY PLAN"][0]!);
      }
      return tx.query<Row>(text, values);
    },
  });
  const transaction = <T>(work: (tx: Transaction) => Promise<T>, options?: { statement_ms?: number }) =>
    db.transaction((tx) => work(explained(tx) as unknown as Transaction), options);
  return { transaction } as unknown as Database;
}

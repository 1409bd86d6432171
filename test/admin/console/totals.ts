// Reads the sums that a page shows, from the console's API as the page does, or from the page in a browser; and
// computes the sums that it must show, from the pages that it links to and from the ledger's records.

import { wayDown } from "../../../console/core/way-down.ts";
import type { ReportGroup } from "../../../src/admin/store/report.ts";
import type { Money } from "../../../src/core/inference/money.ts";
import { bare } from "../../../src/core/store/ids.ts";
import { plainSum } from "../../core/store/report-model.ts";
import { nanosOf } from "../../harness/money.ts";
import type { Books } from "./books.ts";
import type { Tab } from "./chromium.ts";

export const sums = ["requests", "input", "output", "nanos"] as const;
export type Sums = Record<(typeof sums)[number], number>;

export interface Report {
  rows: (Sums & { href: string | null })[];
  /** The sums in the table's footer. Null if nothing was used, because then there is no table. */
  foot: Sums | null;
}

/** Reads the sums that pages show. */
export interface Reader {
  report(address: string): Promise<Report>;
  requests(address: string): Promise<Sums>;
  /** The used nanos of each usage window of an organization. */
  windows(address: string): Promise<number[]>;
}

const nothing = (): Sums => ({ requests: 0, input: 0, output: 0, nanos: 0 });

export function sumOf(some: readonly Sums[]): Sums {
  const total = nothing();
  for (const one of some) for (const name of sums) total[name] += one[name];
  return total;
}

interface Listed {
  outcome: string;
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  cost: { charged: Money };
}
interface Row extends Omit<Listed, "outcome" | "cost"> {
  requests: number;
  cost: { total: Money };
}

const inputOf = (one: Omit<Row, "requests" | "cost" | "output_tokens">) =>
  one.input_tokens + one.cached_input_tokens + one.cache_write_tokens;

/**
 * Whether a listed request has a record in the ledger. Running and refused requests are listed, too, but have no
 * record.
 */
const isInBooks = ({ outcome }: { outcome: string }) => outcome !== "running" && outcome !== "refused";

const windowKinds = ["session", "week", "month"] as const;

export function interfaceReader({ read }: Books): Reader {
  return {
    async report(address) {
      const { searchParams } = new URL(address, "http://console");
      const by = searchParams.get("by") ?? "organization";
      searchParams.set("by", by);
      const answer = (await read(`/usage/report?${searchParams}`)) as unknown as {
        from: string;
        to: string;
        rows: Row[];
      };
      const filters = { organization: searchParams.get("organization") };
      const place = { by, filters, from: answer.from, to: answer.to };
      const rows = answer.rows.map((row) => ({
        requests: row.requests,
        input: inputOf(row),
        output: row.output_tokens,
        nanos: nanosOf(row.cost.total),
        href: wayDown(row as object, place),
      }));
      return { rows, foot: rows.length === 0 ? null : sumOf(rows) };
    },
    async requests(address) {
      const { searchParams } = new URL(address, "http://console");
      searchParams.set("limit", "100");
      const all: Listed[] = [];
      for (;;) {
        const part = (await read(`/requests?${searchParams}`)) as unknown as {
          data: Listed[];
          next_cursor: string | null;
        };
        all.push(...part.data);
        if (part.next_cursor === null) break;
        searchParams.set("cursor", part.next_cursor);
      }
      return sumOf(
        all.filter(isInBooks).map((one) => ({
          requests: 1,
          input: inputOf(one),
          output: one.output_tokens,
          nanos: nanosOf(one.cost.charged),
        })),
      );
    },
    async windows(address) {
      const usage = await read(`${address}/usage`);
      return windowKinds.map((kind) => nanosOf((usage[kind] as { used: Money }).used));
    },
  };
}

interface ShownRow {
  cells: Record<string, string>;
  href: string | null;
}

const numberIn = (text: string) => Number(text.replaceAll(/\D/g, ""));

export function pageReader(tab: Tab): Reader {
  /** The cells of each row, by the heading of their column. A shortened number is read in full from its title. */
  const rowsOf = (part: "tbody" | "tfoot", table = "main table"): Promise<ShownRow[]> =>
    tab.page.evaluate(`[...document.querySelectorAll("${table} ${part} tr")].map((row) => ({
      cells: Object.fromEntries([...row.cells].map((cell) =>
        [cell.dataset.head, cell.querySelector("[title]")?.title ?? cell.textContent])),
      href: row.querySelector("a")?.getAttribute("href") ?? null }))`);
  const sumsIn = ({ cells }: ShownRow): Sums => ({
    requests: numberIn(cells.Requests!),
    input: numberIn(cells["Input tokens"]!),
    output: numberIn(cells["Output tokens"]!),
    nanos: numberIn(cells.Cost!),
  });
  return {
    async report(address) {
      const zone = address.includes("zone=") ? "" : "&zone=UTC";
      await tab.visit(`${address}${address.includes("?") ? "&" : "?"}rows=1000${zone}`);
      const table = "[aria-label^='Usage by'] table";
      const rows = (await rowsOf("tbody", table)).map((row) => ({ ...sumsIn(row), href: row.href }));
      const [foot] = await rowsOf("tfoot", table);
      return { rows, foot: foot ? sumsIn(foot) : null };
    },
    async requests(address) {
      const all: Sums[] = [];
      await tab.visit(address);
      for (;;) {
        for (const { cells } of await rowsOf("tbody")) {
          const [outcome = ""] = cells.Outcome!.trim().split(" ");
          const [input = "", output = ""] = cells.Tokens!.split("tokens in,");
          const nanos = numberIn(cells.Cost!);
          if (isInBooks({ outcome }))
            all.push({ requests: 1, input: numberIn(input), output: numberIn(output), nanos });
        }
        const [next] = await tab.page
          .locator("a[rel=next]")
          .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
        if (!next) return sumOf(all);
        await tab.visit(next);
      }
    },
    async windows(address) {
      await tab.visit(address);
      const titles = await tab.page
        .locator(".windows .window-figure[title]")
        .evaluateAll((figures) => figures.map((figure) => figure.getAttribute("title")!));
      return titles.map((title) => numberIn(title.split(" used")[0]!));
    },
  };
}

/** The rows that a report must have, computed from the ledger's records alone. */
export async function bookedReport({ db, organizations }: Books, address: string): Promise<Sums[]> {
  const { searchParams } = new URL(address, "http://console");
  const today_ms = Date.parse(new Date().toISOString().slice(0, 10));
  const month = new Date().toISOString().slice(0, 7);
  const owner = organizations.find(({ slug }) => slug === searchParams.get("organization"));
  const plain = await plainSum(db, {
    from: new Date(searchParams.get("from") ?? `${month}-01T00:00:00Z`),
    to: new Date(searchParams.get("to") ?? today_ms + 86_400_000),
    by: [(searchParams.get("by") ?? "organization") as ReportGroup],
    organizationId: owner?.id ?? null,
    rows_max: 100_000,
  });
  return [...plain.values()].map((one) => ({
    requests: one.requests,
    input: one.inputTokens + one.cachedInputTokens + one.cacheWriteTokens,
    output: one.outputTokens,
    nanos: Number(one.nanos),
  }));
}

/** The sums of requests that have ended, without the adjustments by operators. */
export const bookedRequests = (books: Books, address: string) =>
  bookedRecords(books, address, "operation <> 'adjustment'");

/** The sums of the adjustments by operators, which are in reports, but not in lists of requests. */
export const bookedEntries = async (books: Books, address: string): Promise<Sums> => ({
  ...(await bookedRecords(books, address, "operation = 'adjustment' and month_starts_at is not null")),
  requests: 0,
});

async function bookedRecords({ db, organizations }: Books, address: string, condition: string): Promise<Sums> {
  const { searchParams } = new URL(address, "http://console");
  const asked = (name: string) => searchParams.get(name);
  const idIn = (name: string, prefix: "team_" | "key_") => (asked(name) === null ? null : bare(asked(name)!, prefix));
  const owner = organizations.find(({ slug }) => slug === asked("organization"));
  const [row] = await db.query<Sums>(
    `select count(*)::int as requests, coalesce(sum(charged), 0)::bigint as nanos,
       coalesce(sum(input_tokens + cached_input_tokens + cache_write_tokens), 0)::bigint as input,
       coalesce(sum(output_tokens), 0)::bigint as output
     from usage_record where ${condition} and ($1::uuid is null or organization_id = $1)
       and ($2::uuid is null or team_id = $2) and ($3::uuid is null or key_id = $3) and ($4::text is null or model = $4)
       and ($5::text is null or operation = $5) and ($6::text is null or outcome = $6)
       and ($7::text is null or upstream = $7) and ($8::timestamptz is null or admitted_at >= $8)
       and ($9::timestamptz is null or admitted_at < $9)`,
    [
      owner ? bare(owner.id, "org_") : null,
      idIn("team", "team_"),
      idIn("key", "key_"),
      ...["model", "operation", "outcome", "upstream", "from", "to"].map(asked),
    ],
  );
  const { requests, input, output, nanos } = row!;
  return { requests, input: Number(input), output: Number(output), nanos: Number(nanos) };
}

export async function bookedWindows({ db, organizations }: Books, address: string): Promise<number[]> {
  const owner = organizations.find(({ slug }) => address.endsWith(slug))!;
  const used = windowKinds.map(async (kind) => {
    const [row] = await db.query<{ used: number }>(
      `select coalesce(sum(charged), 0)::bigint as used from usage_record
       where organization_id = $1 and ${kind}_starts_at <= store_now() and ${kind}_ends_at > store_now()`,
      [bare(owner.id, "org_")],
    );
    return Number(row!.used);
  });
  return Promise.all(used);
}

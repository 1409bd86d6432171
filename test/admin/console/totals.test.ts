// For any view of the console: its sums equal those of the pages that it links to, and those of the ledger's records.
// Most views are read from the console's API, with the links that the page would make; some are read from the page in a
// browser.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Money } from "../../../src/core/inference/money.ts";
import { chanceOf } from "../../faults/chance.ts";
import { seed, times } from "../../harness/depth.ts";
import { nanosOf } from "../../harness/money.ts";
import { type Books, startBooks } from "./books.ts";
import { type Browser, describeInBrowser } from "./browser-group.ts";
import { launchBrowser, openTab, type Tab } from "./chromium.ts";
import {
  bookedEntries,
  bookedReport,
  bookedRequests,
  bookedWindows,
  interfaceReader,
  pageReader,
  type Reader,
  type Sums,
  sumOf,
} from "./totals.ts";
import { randomView, type View } from "./views.ts";

const views = times(20, 1000);
/** The number of views that are read from the page in a browser. */
const rendered = times(4, 60);
setDefaultTimeout(times(120_000, 1_200_000));

describe(`the totals of random views, seed ${seed}`, () => {
  const chance = chanceOf(seed);
  let books: Books;
  let byInterface: Reader;
  beforeAll(async () => {
    books = await startBooks(chance);
    byInterface = interfaceReader(books);
  });
  afterAll(() => books?.close());

  async function holds(view: View, reader: Reader): Promise<void> {
    const { kind, address } = view;
    if (kind === "windows") {
      expect({ address, is: await reader.windows(address) }).toEqual({
        address,
        is: await bookedWindows(books, address),
      });
    } else if (kind === "requests") {
      expect({ address, is: await reader.requests(address) }).toEqual({
        address,
        is: await bookedRequests(books, address),
      });
    } else await reportHolds(address, reader);
  }

  async function reportHolds(address: string, reader: Reader): Promise<void> {
    const { rows, foot } = await reader.report(address);
    const booked = await bookedReport(books, address);
    expect({ address, rows: ordered(rows.map(bareSums)) }).toEqual({ address, rows: ordered(booked) });
    if (rows.length > 0) expect({ address, foot }).toEqual({ address, foot: sumOf(booked) });
    for (const { href, ...row } of rows) {
      if (href === null) continue;
      expect({ address, href, is: await partsOf(href) }).toEqual({ address, href, is: row });
    }
    const [way] = rows.flatMap(({ href, ...row }) => (href === null ? [] : [{ href, row }]));
    if (!way || reader === byInterface) return;
    const shown = await partsOf(way.href, reader);
    expect({ address, shown: way.href, is: shown }).toEqual({ address, shown: way.href, is: way.row });
  }

  async function partsOf(href: string, reader = byInterface): Promise<Sums> {
    if (href.startsWith("/requests?")) return sumOf([await reader.requests(href), await bookedEntries(books, href)]);
    return sumOf((await reader.report(href)).rows.map(bareSums));
  }

  test(`${views} of them, by the interface`, async () => {
    for (let count = 0; count < views; count++) await holds(randomView(chance, books), byInterface);
  });

  test("the largest rows of a report, with the total of all", async () => {
    const path = "/usage/report?by=key&from=2026-01-01";
    type Cut = { rows: { cost: { total: Money } }[]; total: object; rows_left_out: number };
    const all = (await books.read(path)) as unknown as Cut;
    const some = (await books.read(`${path}&largest=3`)) as unknown as Cut;
    const most = all.rows.map(({ cost }) => nanosOf(cost.total)).toSorted((one, other) => other - one);
    expect(some.rows.map(({ cost }) => nanosOf(cost.total))).toEqual(most.slice(0, 3));
    expect([some.total, some.rows_left_out]).toEqual([all.total, all.rows.length - 3]);
  });

  describeInBrowser("in a browser", () => {
    let browser: Browser;
    let tab: Tab;
    beforeAll(async () => {
      browser = await launchBrowser();
      tab = await openTab(books.url, { theme: "light", width: 1440 }, browser);
      await tab.signIn(books.token);
    });
    afterAll(() => browser?.close());

    test(`${rendered} more, by the page`, async () => {
      const reader = pageReader(tab);
      for (let count = 0; count < rendered; count++) await holds(randomView(chance, books), reader);
      expect(tab.found).toEqual([]);
    });
  });
});

const bareSums = ({ requests, input, output, nanos }: Sums): Sums => ({ requests, input, output, nanos });

const ordered = (some: readonly Sums[]): string[] => some.map((one) => JSON.stringify(one)).toSorted();

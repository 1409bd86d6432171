// The spend page in a real browser, for a company of 30 people: for each grouping, its chart, table, totals and budgets
// equal the sums of the receipts, to the nano; and its URL contains the page's whole state.
import { expect, setDefaultTimeout, test } from "bun:test";
import { type Money, nanosOf } from "../../../src/core/inference/money.ts";
import { some, times } from "../../harness/depth.ts";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";
import { type Company, startQuietCompany } from "./company.ts";

setDefaultTimeout(times(180_000, 400_000));
const day_ms = 86_400_000;
const berlin = { timeZone: "Europe/Berlin" } as const;
const dateOf = (at_ms: number) => new Intl.DateTimeFormat("en-CA", berlin).format(at_ms);

/** A request as in the list of requests, which has no adjustments by operators. */
interface Receipt {
  id: string;
  created_at: string;
  model: string;
  team_id: string | null;
  person_id: string | null;
  key_id: string | null;
  cost: { charged: Money };
}

describeInBrowser("spend", () => {
  let company: Company;
  let tab: Tab;
  let receipts: Receipt[];
  /** Two weeks in the time zone of Berlin, up to and including yesterday. */
  const from = dateOf(Date.now() - 15 * day_ms);
  const to = dateOf(Date.now() - day_ms);
  const weeks = `from=${from}&to=${to}`;

  const newTab = browserForTests(startQuietCompany, async (started) => {
    company = started;
    tab = await newTab(company.url);
    await tab.signIn(company.token);
    receipts = await allReceipts();
  });

  /** Reads all receipts page by page from the list of requests. */
  async function allReceipts(): Promise<Receipt[]> {
    const all: Receipt[] = [];
    for (let cursor = ""; ; ) {
      const { data, next_cursor } = await company.read<{ data: Receipt[]; next_cursor: string | null }>(
        `/requests?organization=acme&limit=1000${cursor}`,
      );
      all.push(...data);
      if (next_cursor === null) return all;
      cursor = `&cursor=${next_cursor}`;
    }
  }

  const spanned = (first: string, end: string) =>
    receipts.filter(({ created_at }) => {
      const date = dateOf(Date.parse(created_at));
      return date >= first && date < end;
    });
  const sum = (of: readonly Receipt[]) => of.reduce((total, { cost }) => total + nanosOf(cost.charged), 0n);

  /** The exact amounts, which are the titles of the elements that a selector finds. */
  const amounts = (selector: string): Promise<string[]> =>
    tab.page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map((one) => one.title.split(" ")[0])`,
    );
  const nanosAt = async (selector: string) => (await amounts(selector)).map((amount) => nanosOf({ amount }));
  const total = (all: readonly bigint[]) => all.reduce((one, other) => one + other, 0n);
  const seriesOf = ".legend li:not(:has(.line-before, .tone-ahead)) > span:last-child [title]";
  const area = () => tab.page.locator(".plot-area").first();

  test("compares the rows that it adds up as one with what they were before, too", async () => {
    await tab.visit(`/usage?organization=acme&by=person&${weeks}&rows=5`);
    const changes = (part: string) => nanosAt(`table ${part} td:nth-last-child(2) [title]`);
    // The rows and their previous values come from two reports, and the second report may arrive later.
    await until(async () => {
      const [rows, all] = [await changes("tbody tr"), await changes("tfoot")];
      return rows.length === 6 && total(rows) === all[0];
    });
  });

  for (const by of some(2, ["model", "team", "person", "key", "organization"] as const))
    test(`by ${by}, the chart, its days, the table and the totals are the sum of the receipts`, async () => {
      await tab.visit(`/usage?organization=acme&by=${by}&${weeks}&rows=1000`);
      const own = spanned(from, to);
      const all = sum(own);
      expect(all).toBeGreaterThan(0n);
      expect(await nanosAt(".dial:first-child .figure")).toEqual([all]);
      expect(await nanosAt("table tfoot td[data-head=Cost] [title]")).toEqual([all]);
      // The table has the sum of each group, and the chart those of the largest groups.
      const groupOf = (one: Receipt) => (by === "model" ? one.model : by === "organization" ? "acme" : one[`${by}_id`]);
      const groups = [...Map.groupBy(own, groupOf).values()].map(sum).sort(largestFirst);
      expect((await nanosAt("table tbody td[data-head=Cost] [title]")).sort(largestFirst)).toEqual(groups);
      const series = await nanosAt(`.plot ${seriesOf}`);
      expect(total(series)).toBe(all);
      expect(series.slice(0, 7)).toEqual(groups.slice(0, 7));
      // The arrow keys show the sum of each day in the chart.
      await area().focus();
      const days: bigint[] = [];
      for (let date = 0; date < 14; date++) {
        await tab.page.keyboard.press(date === 0 ? "Home" : "ArrowRight");
        const [day] = await nanosAt(".plot-said [title]");
        expect(total(await nanosAt(`.plot ${seriesOf}`))).toBe(day!);
        days.push(day!);
      }
      const dates = Array.from({ length: 14 }, (_, at) => new Date(Date.parse(from) + at * day_ms).toISOString());
      expect(days).toEqual(
        dates.map((date) => sum(own.filter((one) => dateOf(Date.parse(one.created_at)) === date.slice(0, 10)))),
      );
      expect(tab.found).toEqual([]);
    });

  test("by the hour, one day has bars that add up to it, in a chart that leads on to each", async () => {
    const day = dateOf(Date.now() - 2 * day_ms);
    const next = dateOf(Date.now() - day_ms);
    await tab.visit(`/usage?organization=acme&by=model&from=${day}&to=${next}`);
    const all = sum(spanned(day, next));
    expect(total(await nanosAt(`.plot ${seriesOf}`))).toBe(all);
    expect(await tab.page.locator(".plot").first().locator("rect[class^=tone]").count()).toBeGreaterThan(1);
    await tab.visit(`/usage?organization=acme&by=model&${weeks}`);
    await area().focus();
    await tab.page.keyboard.press("End");
    await tab.page.keyboard.press("Enter");
    await tab.page.waitForURL(/from=/);
    await tab.settled();
    const last = new Date(Date.parse(to) - day_ms).toISOString().slice(0, 10);
    expect(new URL(tab.page.url()).searchParams.get("from")).toBe(last);
    expect(await nanosAt(".dial:first-child .figure")).toEqual([sum(spanned(last, to))]);
  });

  test("the budgets of teams are what the receipts of this month add up to", async () => {
    await tab.visit("/usage?organization=acme&by=team");
    const shown = await tab.page
      .locator(".budgets li")
      .evaluateAll((lines) =>
        lines.map((line) => [
          line.querySelector(".name")!.firstChild!.textContent,
          line.querySelector("[title]")!.getAttribute("title")!.split(" ")[0],
        ]),
      );
    const month = `${dateOf(Date.now()).slice(0, 7)}-01`;
    const expected = Object.entries(company.teams).map(([name, id]) => [
      name,
      sum(spanned(month, "9999").filter(({ team_id }) => team_id === id)),
    ]);
    expect(Object.fromEntries(shown.map(([name, amount]) => [name!.trim(), nanosOf({ amount: amount! })]))).toEqual(
      Object.fromEntries(expected),
    );
    expect(await tab.page.locator(".budgets .pace").allTextContents()).toEqual(
      Array(expected.length).fill(
        expect.stringMatching(/^(at this pace (full on|\d+ % on|less than 1 % on) |full until |resets on )/),
      ),
    );
  });

  test("narrowed to a person, all of it is hers, and the link shows a colleague elsewhere the same", async () => {
    const [{ id, name }] = company.employees as [Company["employees"][number]];
    const hers = sum(spanned(from, to).filter(({ person_id }) => person_id === id));
    await tab.visit(`/usage?organization=acme&by=person&${weeks}`);
    await tab.page.getByRole("link", { name: `only ${name}` }).click();
    await until(async () => (await nanosAt(".dial:first-child .figure"))[0] === hers);
    await tab.page.getByRole("button", { name: `person: ${name}` }).waitFor();
    await tab.page.evaluate(
      "Object.defineProperty(navigator, 'clipboard', { value: { writeText: (text) => { document.title = text; } } })",
    );
    await tab.page.getByRole("button", { name: "Copy link" }).click();
    const link = await tab.page.title();
    const theirs = await newTab(company.url, {}, { timezoneId: "America/New_York", locale: "en-US" });
    await theirs.signIn(company.token);
    await theirs.page.goto(link);
    const [amount] = (await theirs.page.locator(".dial .figure").first().getAttribute("title"))!.split(" ");
    expect(nanosOf({ amount: amount! })).toBe(hers);
  });

  test("what it grew by is told beside the same time before, and the days to come are forecast", async () => {
    await tab.visit(`/usage?organization=acme&by=model&${weeks}`);
    const before = sum(spanned(dateOf(Date.parse(from) - 14 * day_ms), from));
    const now = sum(spanned(from, to));
    const tenths = Number(((now - before) * 1000n) / before) / 10;
    const said = await tab.page.locator(".plot-said").first().textContent();
    expect(said).toContain(tenths >= 0 ? "+" : "−");
    // The page rounds to whole percents, while this value is truncated after the tenths.
    expect(Math.abs(Number(/[+−]([\d.]+) %/.exec(said!)![1]) - Math.abs(tenths))).toBeLessThanOrEqual(0.6);
    expect(said).not.toContain("Forecast");
    const line = await nanosAt(".plot li:has(.line-before) [title]:not(.name)");
    expect(line).toEqual([before]);
    await tab.visit(`/usage?organization=acme&by=model&from=${from}&to=${dateOf(Date.now() + 7 * day_ms)}`);
    expect(await tab.page.locator(".plot-said").first().textContent()).toMatch(/Forecast: \$[\d,]+\.\d\d$/);
  });

  test("the table is sorted by any column, and its order is in the address", async () => {
    await tab.visit(`/usage?organization=acme&by=person&${weeks}`);
    await tab.page.getByRole("button", { name: "Requests", exact: true }).click();
    const most = await personRows();
    expect(most).toEqual(most.toSorted((one, other) => other - one));
    expect(new URL(tab.page.url()).searchParams.get("sort")).toBe("-requests");
    await tab.page.reload();
    await tab.settled();
    expect(await personRows()).toEqual(most);
    await tab.page.getByRole("button", { name: "Requests", exact: true }).click();
    await until(async () => (await personRows())[0] === most.at(-1));
  });

  const personRows = () =>
    tab.page
      .getByRole("region", { name: "Usage by person" })
      .locator("tbody td[data-head=Requests]")
      .evaluateAll((cells) => cells.map((cell) => Number(cell.textContent!.replaceAll(",", ""))));

  test("a finger that touches a bar is told its day, and opens it with the next touch", async () => {
    const touched = await newTab(company.url, { width: 390 }, { hasTouch: true });
    await touched.signIn(company.token);
    await touched.visit(`/usage?organization=acme&by=model&${weeks}`);
    const phone = touched.page;
    const chart = phone.locator(".plot-area").first();
    await chart.locator("rect").first().waitFor();
    const touch = () => chart.tap({ position: { x: 200, y: 60 } });
    await touch();
    await until(async () => (await phone.locator(".plot-said strong").first().textContent())!.includes(","));
    expect(new URL(phone.url()).searchParams.get("from")).toBe(from);
    await touch();
    await until(() => new URL(phone.url()).searchParams.get("from") !== from);
  });

  test("an organization's overview adds up the month of the reader's zone, as the report does that it leads to", async () => {
    const other = await newTab(company.url, {}, { timezoneId: "America/Los_Angeles" });
    await other.signIn(company.token);
    const { page } = other;
    const first = new Date();
    first.setUTCDate(1);
    // At this time the month has begun in UTC, but not yet in Los Angeles.
    await page.clock.setFixedTime(`${first.toISOString().slice(0, 10)}T01:00:00Z`);
    const asked: (string | null)[] = [];
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname.endsWith("/usage/report") && searchParams.get("by") === "person")
        asked.push(searchParams.get("from"));
    });
    await other.visit("/organizations/acme");
    await until(() => asked.length > 0);
    const [overview] = asked.splice(0);
    expect(Date.parse(overview!)).toBeLessThan(Date.parse(`${first.toISOString().slice(0, 7)}-01T00:00:00Z`));
    await page.locator("a[href='/usage?organization=acme&by=person']").first().click();
    await until(() => asked.includes(overview!), 20_000, "the report of the same month");
  });

  test("says where a zone's days cannot be told, and shows those of UTC", async () => {
    const other = await newTab(company.url, {}, { timezoneId: "Asia/Kathmandu" });
    await other.signIn(company.token);
    await other.visit(`/usage?organization=acme&by=model&${weeks}`);
    const words = /^Days are those of UTC: in Asia\/Kath?mandu they do not begin at a full hour/;
    await other.page.getByText(words).waitFor();
    await other.page.locator(".dial .figure").first().waitFor();
    expect(await other.page.locator("main [role=alert]").count()).toBe(0);
  });

  test("nothing is cut off or overflows, and everybody can read it, narrow and wide, light and dark", async () => {
    for (const [theme, width] of some(1, [
      ["light", 390],
      ["dark", 1440],
      ["dark", 390],
      ["light", 1440],
    ] as const)) {
      const own = await newTab(company.url, { theme, width });
      await own.signIn(company.token);
      for (const path of [
        `/usage?organization=acme&by=person&${weeks}`,
        "/models",
        "/models/qwen/qwen3-coder",
        "/engines",
        "/engines/simulator",
      ]) {
        await own.visit(path);
        const cut: string[] = await own.page.evaluate(`[...document.querySelectorAll(".figure, .plot-said, td.number")]
          .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)`);
        expect({ theme, width, path, cut, over: await own.overflow_px(), axe: await own.axeProblems() }).toEqual({
          ...{ theme, width, path, cut: [], over: 0, axe: [] },
        });
      }
      expect(own.found).toEqual([]);
    }
  });

  test("what is pointed at is said, and an engine's failures are counted", async () => {
    await tab.visit("/engines/spare");
    const chart = tab.page.locator(".plot").nth(1);
    const box = (await chart.locator(".plot-area").boundingBox())!;
    await tab.page.mouse.move(box.x + box.width / 2, box.y + 40);
    await until(async () => /\d\d:00$/.test((await chart.locator(".plot-said").textContent())!));
    const report = await company.read<{ total: { requests: number } }>("/upstreams/report?upstream=spare");
    expect(report.total.requests).toBeGreaterThan(0);
    expect(tab.found).toEqual([]);
  });
});

const largestFirst = (one: bigint, other: bigint) => (one === other ? 0 : one < other ? 1 : -1);

// `sluice usage report`, run by an operator: its sums add up, it states the time up to which it is complete, and its
// error messages are clear.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { csvLine } from "../../../src/admin/management/report-csv.ts";
import { moneyOf } from "../../../src/core/inference/money.ts";
import { adjust, ledger } from "../../../src/stores/postgres/ledger.ts";
import { admitOf, newHex, settleOf } from "../../core/store/ledger-stores.ts";
import { dollars } from "../../harness/money.ts";
import { kindsFor, type Owned } from "../../stores/postgres/databases.ts";
import { expectMisuse, expectRefused, type Shell, shell, shellOn } from "./shell.ts";

setDefaultTimeout(60_000);

const always = { from: new Date("2026-01-01"), to: new Date("2100-01-01") };
const reports = { provider: "Example AI" };

describe("what is wrong", () => {
  test("in form is wrong use", async () => {
    const it = shell();
    await expectMisuse(it, ["usage report --json --csv", "usage report --csv --focus", "usage report now"]);
  });

  test("otherwise is refused in one line that says why", async () => {
    const it = shell();
    it.directory.clock.now_ms = Date.UTC(2026, 10, 22, 9, 30);
    await it.typed("org create acme");
    const rows = [
      ["--from 2026-11-20 --to 2026-11-20", "an end after its beginning"],
      ["--from 2026-11-20 --to 2026-11-19", "an end after its beginning"],
      ["--from 2026-11-23", "in the future"],
      ["--from 2026-11-22T09:15:00Z", "not the beginning of an hour"],
      // In a zone with an offset of half an hour, midnight is not the start of an hour in UTC.
      ["--from 2026-11-01T00:00:00+05:30", "not the beginning of an hour"],
      ["--from 2026-11-01T00:00:00", "with a time zone"],
      ["--from 2026-13", "not an instant"],
      ["--from 2026-02-30", "not an instant"],
      ["--from yesterday", "must be a date"],
      ["--from 1970-01-01", "between the years"],
      ["--by colour", "must be groups with commas between them: organization"],
      ["--by day,hour", "one period"],
      ["--org nobody", "no organization"],
      ["--focus --by key", "by hour, day, or month"],
    ] as const;
    await expectRefused(
      it,
      rows.map(([words, says]) => [`usage report ${words}`, says] as const),
    );
  });

  test("a report that would have too many rows is refused, and names what to change", async () => {
    const { services, typed } = shell();
    const store = await services.openStore(services.storage());
    services.openStore = async () => ({
      ...store,
      ledger: {
        ...store.ledger,
        report: async () => ({
          at: new Date(),
          rows: null,
          total: null,
          rowsLeftOut: 0,
          running: { requests: 0, heldNanos: 0n },
        }),
      },
    });
    expect((await typed("usage report --by key")).err).toContain("more than 100000 rows");
  });
});

test("without options, it is of this month, by organization, until the end of today", async () => {
  const { json, directory } = shell();
  directory.clock.now_ms = Date.UTC(2026, 10, 22, 9, 30);
  expect(await json("usage report --json")).toMatchObject({
    from: "2026-11-01T00:00:00.000Z",
    to: "2026-11-23T00:00:00.000Z",
    by: ["organization"],
    organization: null,
    rows: [],
    currency: "USD",
  });
  expect(await json("usage report --json --from 2026-10 --to 2026-11-01T02:00:00+02:00")).toMatchObject({
    from: "2026-10-01T00:00:00.000Z",
    to: "2026-11-01T00:00:00.000Z",
  });
});

test("a cell of CSV keeps what a name holds, and no spreadsheet computes it", () => {
  const names = ['say "hi"', "a,b", "two\nlines", "=SUM(A1)", "-5", "@x", "+1", "plain"];
  expect(csvLine(names)).toBe(`"say ""hi""","a,b","two\nlines",'=SUM(A1),-5,'@x,'+1,plain\r\n`);
  // Spreadsheets in some locales separate cells by semicolons, even within quotation marks, so each part after a
  // semicolon could be a formula.
  const parted = ["a;=1+1", "a; =1+1", "a\t@x", "a\n-1", "\t=1", "＝1+1", "a;b", "mail@x;y=1"];
  expect(csvLine(parted)).toBe(`"a;'=1+1","a; '=1+1","a\t'@x","a\n'-1","'\t'=1",'＝1+1,"a;b","mail@x;y=1"\r\n`);
});

for (const { kind, open } of kindsFor(import.meta.path)) {
  describe(`on ${kind}`, () => {
    let owned: Owned;
    let it: Shell;
    let slug: string;
    let key: string;
    let organizationId: string;
    beforeAll(async () => {
      owned = await open();
      const { db } = owned;
      const configuration = { ...(await shell().services.configuration()), reports };
      it = shellOn(db, { configuration: async () => configuration });
      slug = "acme";
      ({ id: organizationId } = (await it.json("org create acme --plan unlimited --json")) as { id: string });
      ({ id: key } = (await it.json("key create --org acme --name builder --label stage=test --json")) as {
        id: string;
      });
      await it.typed("org create idle");
      const book = ledger(db, { recovery: "checkpoint" });
      for (const model of ["acme/writer-1", "acme/painter-1"]) {
        const admit = admitOf(organizationId, { keyId: key, model });
        await book.run([admit]);
        const usage = { ...settleOf(admit, 0).usage, inputTokens: 12, outputTokens: 7 };
        await book.run([settleOf(admit, model === "acme/writer-1" ? 700 : 300, { usage })]);
        // The roll-ups contain the requests so far, but not the adjustment below.
        await book.rollUp();
      }
      await adjust(owned.db, `req_${newHex()}`, organizationId, "month", -100);
      await book.run([admitOf(organizationId, { keyId: key })]);
      await book.close();
    });
    afterAll(() => owned.drop());

    test("JSON has every measure, exact costs, the total, its moment, and what still runs", async () => {
      const report = await it.json(`usage report --org ${slug} --by key,model --json`);
      const measured = { requests: 1, input_tokens: 12, output_tokens: 7 };
      const costs = (total: number) => ({ total: dollars(total), extra_usage: dollars(0), uncharged: dollars(0) });
      expect(report).toMatchObject({
        organization: slug,
        by: ["key", "model"],
        as_of: expect.stringMatching(/^20.*Z$/),
        currency: "USD",
        provider: "Example AI",
        rows: [
          {
            key_id: key,
            key: "builder",
            labels: { stage: "test" },
            model: "acme/writer-1",
            ...measured,
            cost: { ...costs(700), input: dollars(12), output: dollars(70) },
          },
          { key_id: key, key: "builder", model: "acme/painter-1", ...measured, cost: costs(300) },
          { key_id: null, key: null, labels: {}, model: "", requests: 0, cost: costs(-100) },
        ],
        total: { requests: 2, input_tokens: 24, output_tokens: 14, cost: costs(900) },
        running: { requests: 1, held: dollars(1000) },
      });
      const shown = (await it.json(`usage show ${slug} --json`)) as { month: { used: object } };
      expect(shown.month.used).toEqual(dollars(900));
    });

    test("people get bars, the sum, and what is open, on every width of screen", async () => {
      for (const width of [40, 80, 200]) {
        Object.assign(it.services.terminal, { width });
        const { out } = await it.typed(`usage report --org ${slug} --by model`);
        expect(out).toContain("█".repeat(width < 110 ? 8 : 20));
        expect(out).toContain("In all: 2 requests, $0.0000009.");
        expect(out).toContain("Still running, and not counted yet: 1 request, which hold $0.000001.");
        if (width >= 80) {
          const table = out.split("\n\n")[1]!.split("\n");
          for (const line of table) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(width);
        }
      }
      Object.assign(it.services.terminal, { width: null });
    });

    test("CSV has a line of names, and a line for each row", async () => {
      const { out } = await it.typed(`usage report --org ${slug} --by day,operation --csv`);
      const [names, ...lines] = out.trimEnd().split("\r\n");
      expect(names).toBe(
        "day,operation,requests,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,reasoning_tokens,cost,cost_extra_usage,cost_uncharged,cost_input,cost_cached_input,cost_cache_write,cost_output,currency",
      );
      expect(lines).toHaveLength(2);
      expect(lines[0]).toMatch(
        /^20\d\d-\d\d-\d\d,chat\.completions,2,24,0,0,14,0,0\.000001000,0\.0{9},0\.0{9},0\.000000024,0\.0{9},0\.0{9},0\.000000140,USD$/,
      );
      expect(lines[1]).toMatch(
        /^20\d\d-\d\d-\d\d,adjustment,0,0,0,0,0,0,-0\.000000100,0\.0{9},0\.0{9},0\.0{9},0\.0{9},0\.0{9},0\.0{9},USD$/,
      );
    });

    test("until now, rows of keys say how much of their limits is used; the table has their labels", async () => {
      const { id: organization } = (await it.json("org create counted --plan unlimited --json")) as { id: string };
      const made = "key create --org counted --name capped --label stage=test --limit month=0.000001 --json";
      const { id: keyId } = (await it.json(made)) as { id: string };
      const book = ledger(owned.db, { recovery: "checkpoint" });
      const admits = [0, 1].map(() => admitOf(organization, { keyId, outputTokens: 20, outputTokens_min: 20 }));
      await book.run(admits);
      await book.run([settleOf(admits[0]!, 290)]);
      await book.close();
      const report = "usage report --org counted";
      const standing = {
        usage_percent: 29,
        month: { used: dollars(290), held: dollars(300), limit: dollars(1000), usage_percent: 29 },
      };
      const rows = async (words: string) =>
        ((await it.json(`${report} ${words} --json`)) as { rows: { cost: object; standing?: unknown }[] }).rows;
      for (const by of ["key", "organization,team,key"]) {
        expect(await rows(`--by ${by}`)).toMatchObject([{ cost: { total: dollars(290) }, standing }]);
      }
      // The key has a limit, but its team and its organization have none, so their rows have no `standing` (use of the
      // limit).
      for (const by of ["team", "organization"]) expect(await rows(`--by ${by}`)).toMatchObject([{ standing: null }]);
      for (const words of ["--by key,model", "--by key,day", "--by model", "--by key --from 2025-01 --to 2025-02"]) {
        expect((await rows(words)).every((row) => !("standing" in row))).toBe(true);
      }
      Object.assign(it.services.terminal, { width: 200 });
      const { out } = await it.typed(`${report} --by key`);
      expect(out).toMatch(/KEY +KEY ID +LABELS .* OF LIMIT +RESETS \(UTC\)\n/);
      expect(out).toMatch(/capped +key_\w+ +stage=test .* 29 % +20\d\d-\d\d-\d\d \d\d:\d\d\n/);
      Object.assign(it.services.terminal, { width: null });
    });

    test("a sum of 10^17 billionths is exact, and so is the total of a report that shows the largest", async () => {
      const book = ledger(owned.db, { recovery: "checkpoint" });
      const before = await book.report({ ...always, by: [], organizationId: null, rows_max: 10 });
      for (let count = 0; count < 12; count++) {
        const { id } = (await it.json(`org create large-${count} --plan unlimited --json`)) as { id: string };
        for (let entry = 0; entry < 9; entry++) await adjust(owned.db, `req_${newHex()}`, id, "extra", 1e15);
        await adjust(owned.db, `req_${newHex()}`, id, "extra", 7);
      }
      const whole = before.total!.nanos + 12n * (9n * 10n ** 15n + 7n);
      expect(whole).toBeGreaterThan(10n ** 17n);
      for (const largest of [undefined, 2]) {
        const { total, rows } = await book.report({
          ...{ ...always, by: ["organization"], organizationId: null, rows_max: 100, largest },
        });
        expect(total).toMatchObject({ nanos: whole, extraNanos: 12n * (9n * 10n ** 15n + 7n) });
        expect(rows!.filter(({ nanos }) => nanos === 9n * 10n ** 15n + 7n)).toHaveLength(largest ?? 12);
      }
      await book.close();
      const { total } = (await it.json("usage report --json")) as { total: object };
      expect(total).toMatchObject({ cost: { total: moneyOf(whole, "USD") } });
      const { out } = await it.typed("usage report --csv");
      expect(out.split(",9000000.000000007,9000000.000000007,")).toHaveLength(13);
    });

    test("an organization without usage, or one that is suspended, has a report too", async () => {
      expect((await it.typed("usage report --org idle")).out).toContain("Nothing was used.");
      await it.typed(`org suspend ${slug}`);
      expect(await it.json(`usage report --org ${slug} --json`)).toMatchObject({
        total: { cost: { total: dollars(900) } },
      });
      const past = "usage report --from 2020-01 --to 2020-02 --json";
      expect(await it.json(past)).toMatchObject({ rows: [], total: { requests: 0 }, running: { requests: 0 } });
    });
  });
}

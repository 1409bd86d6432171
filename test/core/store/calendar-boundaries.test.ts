// The beginnings of calendar days, weeks and months in the store's SQL, compared with two independent libraries: the
// Temporal polyfill with the zone data of this runtime, and moment-timezone with its own. Twelve zones, each with a
// peculiarity that is easily handled wrongly, from 2025 to 2035, and Apia, which skipped 30 December 2011.

import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { Temporal } from "@js-temporal/polyfill";
import moment from "moment-timezone";
import pglite from "../../../node_modules/@electric-sql/pglite/package.json" with { type: "json" };
import { databaseKinds, some } from "../../harness/depth.ts";
import { ledgerForTests } from "./ledger-stores.ts";

const zones = [
  "Europe/Berlin",
  "America/New_York",
  // Summer time is half an hour.
  "Australia/Lord_Howe",
  // Clocks go forward at midnight, and back to the day before.
  "Africa/Cairo",
  "Asia/Beirut",
  "America/Santiago",
  // Midnight does not exist in spring, and exists twice in autumn.
  "Atlantic/Azores",
  "America/Havana",
  // Offsets with half hours and quarters of hours.
  "America/St_Johns",
  "Asia/Kathmandu",
  // Clock changes follow the lunar calendar.
  "Africa/Casablanca",
  "Pacific/Apia",
];
const tried = some(5, zones);
const day_ms = 86_400_000;
const [from, to] = [Temporal.PlainDate.from("2025-01-01"), Temporal.PlainDate.from("2036-01-31")];

/** The first instant of a local date, by each library. */
const libraries = {
  temporal: (zone: string, date: Temporal.PlainDate) => date.toZonedDateTime(zone).epochMilliseconds,
  moment: (zone: string, { year, month, day }: Temporal.PlainDate) => moment.tz([year, month - 1, day], zone).valueOf(),
};

const dates = Array.from({ length: from.until(to).days }, (_, days) => from.add({ days }));

/** Every date on which a month begins if months start on day `starts`, clamped to the month's end. */
const monthDays = (starts: number) => dates.filter(({ day, daysInMonth }) => day === Math.min(starts, daysInMonth));
const weekDays = (starts: number) => dates.filter(({ dayOfWeek }) => dayOfWeek === starts);

function zoneDataOf(name: string): string {
  const file = "/usr/share/zoneinfo/tzdata.zi";
  const system = existsSync(file) ? readFileSync(file, "utf8").slice(2, 20).split("\n")[0] : "unknown";
  const store = name === "pglite" ? `of PGlite ${pglite.version}` : `of its system (here: ${system})`;
  return `zone data: the store's ${store}, Temporal's of ICU ${process.versions.icu}, moment's ${moment.tz.dataVersion}`;
}

describe.each(databaseKinds(import.meta.path))("calendars on %s", (name) => {
  const { store } = ledgerForTests(name, { isBalanced: false });
  const agreed = new Set<string>();
  beforeAll(() => console.log(zoneDataOf(name)));

  const daysBegin = async (zone: string, of: readonly Temporal.PlainDate[]) => {
    const rows = await store.db.query<{ ms: number }>(
      `select (extract(epoch from usage_day($1, d::timestamp)) * 1000)::float8 as ms
       from unnest($2::text[]) with ordinality u (d, n) order by n`,
      [zone, `{${of.map(String).join(",")}}`],
    );
    return rows.map(({ ms }) => ms);
  };

  /**
   * The windows that contain these instants, computed by the SQL function named `called`, for a zone and the day on
   * which windows begin.
   */
  const windowsOf = (called: string, zone: string, starts: number, instants: readonly number[]) =>
    store.db.query<{ from: number; to: number }>(
      `select (extract(epoch from w.starts_at) * 1000)::float8 as from, (extract(epoch from w.ends_at) * 1000)::float8 as to
       from unnest($3::bigint[]) with ordinality u (ms, n)
       cross join lateral ${called}($1, $2, 'epoch'::timestamptz + u.ms * interval '1 millisecond') w order by n`,
      [zone, starts, `{${instants.join(",")}}`],
    );

  for (const zone of tried) {
    test(`each day of ${zone} begins when both libraries say`, async () => {
      const found = await daysBegin(zone, dates);
      const said = dates.map((date) => Object.values(libraries).map((beginsAt) => beginsAt(zone, date)));
      const differing = dates.filter((_, index) => !said[index]!.includes(found[index]!));
      expect(differing.map(String)).toEqual([]);
      // Where a government has changed its rules, zone data of different releases disagree.
      const disputed = dates.filter((_, index) => said[index]!.some((one) => one !== found[index]));
      if (disputed.length === 0) agreed.add(zone);
      else console.log(`${zone}: by the rules of one library alone on ${disputed.length} days from ${disputed[0]} on`);
    }, 60_000);

    test(`weeks and months of ${zone} reach from one such day to the next, and are half-open`, async () => {
      const cases = [
        ...[1, 6, 7].map((starts) => ({ called: "usage_local_week", starts, days: weekDays(starts) })),
        ...[1, 26, 29, 31].map((starts) => ({ called: "usage_local_month", starts, days: monthDays(starts) })),
      ];
      for (const { called, starts, days } of cases) {
        const begin = await daysBegin(zone, days);
        const spans = begin.slice(0, -1).map((from, index) => ({ from, to: begin[index + 1]! }));
        expect(await windowsOf(called, zone, starts, begin.slice(0, -1))).toEqual(spans);
        const last = spans.map(({ to }) => to - 1);
        expect(await windowsOf(called, zone, starts, last)).toEqual(spans);
      }
    }, 60_000);
  }

  test("of most zones all three know the same rules", () => {
    expect(agreed.size).toBeGreaterThanOrEqual(tried.length - 3);
  });

  test("Apia skipped 30 December 2011: what begins on that day begins with the next, and that week has six days", async () => {
    const zone = "Pacific/Apia";
    const around = Array.from({ length: 12 }, (_, days) => Temporal.PlainDate.from("2011-12-25").add({ days }));
    const found = await daysBegin(zone, around);
    expect(found).toEqual(around.map((date) => libraries.temporal(zone, date)));
    // For a date that does not exist, moment moves forward by the gap: here, by a day.
    const existing = around.filter(({ day }) => day !== 30);
    expect(existing.map((date) => libraries.moment(zone, date))).toEqual(
      found.filter((_, index) => around[index]!.day !== 30),
    );
    const skipped_ms = Date.UTC(2011, 11, 30, 10);
    expect(found.filter((at_ms) => at_ms === skipped_ms)).toHaveLength(2);
    const [week] = await windowsOf("usage_local_week", zone, 1, [skipped_ms]);
    expect(week).toEqual({ from: Date.UTC(2011, 11, 26, 10), to: Date.UTC(2011, 11, 26, 10) + 6 * day_ms });
    const [friday] = await windowsOf("usage_local_week", zone, 5, [skipped_ms]);
    expect(friday).toEqual({ from: skipped_ms, to: Date.UTC(2012, 0, 5, 10) });
    const [month] = await windowsOf("usage_local_month", zone, 30, [skipped_ms - 1]);
    expect(month?.to).toBe(skipped_ms);
  });
});

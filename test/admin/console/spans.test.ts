// Tests of the time spans that pages show: the days of a zone, the bars of a chart, the previous span of the same
// length, the forecast for the rest of a span, and the time at which a budget will be used up.
import { describe, expect, test } from "bun:test";
import { Temporal } from "@js-temporal/polyfill";
import fc from "fast-check";
import { type Budget, paceOf, paceWords } from "../../../console/core/pace.ts";
import {
  bucketsOf,
  rangeBefore,
  rangeOf,
  rangeWords,
  sameSoFar,
  spanAsked,
  unitOf,
} from "../../../console/core/range.ts";
import { forecastOf, totalsOf } from "../../../console/core/spend.ts";
import { daysAfter, Zone } from "../../../console/core/zone.ts";
import { times } from "../../harness/depth.ts";

const zones = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Auckland"];
// In these zones, clocks are or were put forward at midnight, so that a day begins at 01:00.
const leaping = ["America/Santiago", "America/Havana", "America/Asuncion", "Africa/Cairo", "Asia/Beirut"];
const numRuns = times(200, 2000);
const hour_ms = 3_600_000;
const date = fc.integer({ min: 0, max: 3000 }).map((days) => daysAfter("2022-01-01", days));

describe("the days of a zone", () => {
  test("begin when clocks there say so, also where they are changed", () => {
    fc.assert(
      fc.property(date, fc.constantFrom(...zones), (day, name) => {
        const begins = Temporal.PlainDate.from(day).toZonedDateTime(name).epochMilliseconds;
        const zone = new Zone(name);
        expect({ day, name, at: zone.startOf(day) }).toEqual({ day, name, at: begins });
        expect([zone.dateOf(begins), zone.dateOf(begins - 1)]).toEqual([day, daysAfter(day, -1)]);
      }),
      { numRuns },
    );
  });

  test("begin at 01:00 where clocks are put forward at midnight, as Temporal says of each day of a year", () => {
    for (const name of leaping) {
      const zone = new Zone(name);
      for (let n = 0, day = "2024-01-01"; n < 366; n++, day = daysAfter(day, 1)) {
        const begins = Temporal.PlainDate.from(day).toZonedDateTime(name).epochMilliseconds;
        expect({ day, name, at: zone.startOf(day) }).toEqual({ day, name, at: begins });
      }
    }
  });

  test("are told where they begin at full hours in UTC", () => {
    const has = (name: string, from: string, to: string) =>
      new Zone(name).hasFullHours(Date.parse(from), Date.parse(to));
    expect(has("Europe/Berlin", "2026-01-01", "2026-12-31")).toBeTrue();
    expect(has("Asia/Kathmandu", "2026-01-01", "2026-01-02")).toBeFalse();
    expect(has("Australia/Lord_Howe", "2026-11-01", "2026-11-30")).toBeTrue();
    expect(has("Australia/Lord_Howe", "2026-05-01", "2026-11-30")).toBeFalse();
  });
});

describe("a span", () => {
  const berlin = new Zone("Europe/Berlin");
  const now_ms = Date.parse("2026-11-24T10:30:00Z");
  const spanOf = (from: string | null, to: string | null, zone = berlin) => rangeOf({ from, to, zone, now_ms });

  test("is covered by its bars without a gap, whatever it is", () => {
    fc.assert(
      fc.property(date, fc.integer({ min: 1, max: 400 }), fc.constantFrom(...zones), (from, days, name) => {
        const range = rangeOf({ from, to: daysAfter(from, days), zone: new Zone(name), now_ms });
        // If the reader's zone has an offset that is not in full hours, the page uses another zone.
        fc.pre(range.zone.hasFullHours(range.from_ms, range.to_ms));
        const buckets = bucketsOf(range);
        expect([buckets[0]!.from_ms, buckets.at(-1)!.to_ms]).toEqual([range.from_ms, range.to_ms]);
        expect(buckets.slice(1).map(({ from_ms }) => from_ms)).toEqual(buckets.slice(0, -1).map(({ to_ms }) => to_ms));
        expect(new Set(buckets.map(({ key }) => key)).size).toBe(buckets.length);
      }),
      { numRuns },
    );
  });

  test("is of hours up to two days, of days up to a hundred, and else of months", () => {
    const of = (from: string, to: string) => [unitOf(spanOf(from, to)), bucketsOf(spanOf(from, to)).length];
    expect(of("2026-11-24", "2026-11-25")).toEqual(["hour", 24]);
    // Daylight saving time ends within these two days, so they have 49 hours.
    expect(of("2026-10-24", "2026-10-26")).toEqual(["hour", 49]);
    const titles = bucketsOf(spanOf("2026-10-24", "2026-10-26")).map(({ title }) => title);
    expect(new Set(titles).size).toBe(49);
    expect(titles[27]).toBe("Sun, 25 Oct 2026, 02:00 again");
    expect(of("2026-11-01", "2026-12-01")).toEqual(["day", 30]);
    expect(of("2026-01", "2026-12")).toEqual(["month", 11]);
  });

  test("is this month where none is asked for, and where what is asked for is no date", () => {
    const asked = ({ from, to }: { from: string; to: string }) => [from, to];
    expect(asked(spanOf(null, null))).toEqual(["2026-11-01", "2026-12-01"]);
    expect(asked(spanOf("no date", "2026-13-77"))).toEqual(["2026-11-01", "2026-12-01"]);
    expect(spanAsked(spanOf(null, null), ["day"])).toEqual({
      from: "2026-11-01",
      to: "2026-12-01",
      zone: "Europe/Berlin",
    });
    expect(spanAsked(spanOf(null, null), ["model"])).toEqual({
      from: "2026-10-31T23:00:00.000Z",
      to: "2026-11-30T23:00:00.000Z",
    });
  });

  test("is compared with the one before: with the month before, or with as many days, until the same hour", () => {
    const before = (from: string | null, to: string | null) => {
      const one = rangeBefore(spanOf(from, to));
      return [one.from, one.to];
    };
    expect(before(null, null)).toEqual(["2026-10-01", "2026-11-01"]);
    expect(before("2026-01", "2026-04")).toEqual(["2025-10-01", "2026-01-01"]);
    expect(before("2026-11-10", "2026-11-24")).toEqual(["2026-10-27", "2026-11-10"]);
    expect(before("2026-11-24T08:00:00Z", "2026-11-24T10:00:00Z")).toEqual([
      "2026-11-24T06:00:00.000Z",
      "2026-11-24T08:00:00.000Z",
    ]);
    const range = spanOf(null, null);
    const soFar = sameSoFar(range, rangeBefore(range), now_ms);
    expect(new Date(soFar.to_ms).toISOString()).toBe("2026-10-24T09:00:00.000Z");
    const over = spanOf("2026-10", "2026-11");
    expect(sameSoFar(over, rangeBefore(over), now_ms)).toEqual(rangeBefore(over));
  });

  test("is said by its days, and by the hour where its last day is not over", () => {
    const said = (from: string | null, to: string | null) => rangeWords(spanOf(from, to)).replaceAll(/\s/g, " ");
    expect(said("2026-11-01", "2026-11-15")).toBe("1 – 14 Nov 2026");
    expect(said("2026-11-24", "2026-11-25")).toBe("24 Nov 2026");
    const range = spanOf(null, null);
    expect(rangeWords(sameSoFar(range, rangeBefore(range), now_ms))).toMatch(/^1\s–\s24 Oct 2026 until \d\d:00$/);
    expect(said("2026-11-24T08:00:00Z", "2026-11-24T10:00:00Z")).toMatch(/^24 Nov 2026, \d\d:00\s?–\s?\d\d:00$/);
  });

  test("goes on as in the last seven days that are over, and its forecast is what was and what is to come", () => {
    const buckets = bucketsOf(spanOf(null, null));
    const nanos = buckets.map((_, at) => (at < 23 ? BigInt(at) * 10n : at === 23 ? 50n : 0n));
    const totals = totalsOf([{ id: null, name: "all", isOthers: false, nanos, total: 0n }], buckets);
    const { total, ahead } = forecastOf(totals, buckets, "day", now_ms)!;
    // The totals of the last seven complete days are from 160 to 220, on average 190. Today's total is 50 so far, and
    // six days remain.
    expect(ahead.slice(22)).toEqual([0n, 140n, 190n, 190n, 190n, 190n, 190n, 190n]);
    const spent = totals.reduce((sum, one) => sum + one, 0n);
    expect(total).toBe(spent + ahead.reduce((sum, one) => sum + one, 0n));
    expect(forecastOf(totals, buckets, "day", Date.parse("2026-12-01T00:00:00Z"))).toBeNull();
    expect(forecastOf(totals, buckets, "day", Date.parse("2026-11-01T02:00:00Z"))).toBeNull();
    expect(forecastOf([], [], "day", now_ms)).toBeNull();
  });
});

describe("a budget", () => {
  const from_ms = Date.parse("2026-11-01T00:00:00Z");
  const to_ms = Date.parse("2026-12-01T00:00:00Z");
  const at = (day: number) => from_ms + day * 24 * hour_ms;
  const of = (used: number, limit = 100): Budget => ({ used, limit, from_ms, to_ms });
  const words = (budget: Budget, now_ms: number) => paceWords(paceOf(budget, now_ms), to_ms, now_ms);

  test("says when it is full at this pace, or how much of it will be used", () => {
    expect(words(of(50), at(11.6))).toBe("at this pace full on 24 November");
    expect(words(of(20), at(10))).toBe("at this pace 60 % on 1 December");
    expect(words(of(0), at(10))).toBe("at this pace 0 % on 1 December");
    expect(words(of(100), at(10))).toBe("full until 1 December");
    expect(words(of(0, 0), at(10))).toBe("full until 1 December");
    expect(words(of(1), at(0.1))).toBe("resets on 1 December");
  });

  test("is full before it begins anew exactly where even use would be less", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 99.9, noNaN: true }),
        fc.double({ min: 1, max: 29.9, noNaN: true }),
        (used, day) => {
          const { full_ms, end_percent } = paceOf(of(used), at(day));
          expect(full_ms !== null).toBe(used / (day / 30) > 100);
          if (full_ms !== null) expect(full_ms).toBeGreaterThanOrEqual(at(day));
          expect(end_percent!).toBeCloseTo((used * 30) / day, 6);
        },
      ),
      { numRuns },
    );
  });
});

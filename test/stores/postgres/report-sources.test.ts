// Tests which stored sums a report reads: roll-ups are used where possible. That the sums are right is tested in
// test/core/store/rollups.test.ts.

import { describe, expect, test } from "bun:test";
import type { ReportQuery } from "../../../src/admin/store/report.ts";
import {
  type Beginning,
  type Range,
  type Rolled,
  sourcesOf as sourcesWith,
  totalFor,
} from "../../../src/stores/postgres/report-sources.ts";

const at = (text: string) => new Date(`${text}Z`);
const range = (from: string, to: string): Range => ({ from: at(from), to: at(to) });
const days = (from: string, count: number, isTotalled = true): Rolled[] =>
  Array.from({ length: count }, (_, n) => ({ startsAt: new Date(at(from).getTime() + n * 86_400_000), isTotalled }));
const asked = (from: string, to: string, change: Partial<ReportQuery> = {}): ReportQuery => ({
  ...range(from, to),
  by: ["organization"],
  organizationId: null,
  rows_max: 10,
  ...change,
});
const sourcesOf = (query: ReportQuery, rolled: readonly Rolled[], months: number) => {
  const { moved, ...sources } = sourcesWith(query, rolled, months, []);
  expect(moved).toEqual([]);
  return sources;
};
const sources = (query: ReportQuery, rolled: readonly Rolled[]) => {
  const { total, rollUps } = sourcesOf(query, rolled, 1_000);
  return { total: total.ranges, ...rollUps };
};

test("the kind with the fewest rows that tells what the report is by; else none", () => {
  const kindOf = (by: ReportQuery["by"], change: Partial<ReportQuery> = {}) =>
    totalFor(asked("2026-01-01", "2026-02-01", { by, ...change }));
  const organizationId = "org_1";
  const personId = "per_1";
  expect(kindOf(["day"])).toBe("day");
  expect(kindOf(["model", "month"])).toBe("day");
  expect(kindOf(["model"], { organizationId })).toBe("organization");
  expect(kindOf(["organization", "outcome"])).toBe("organization");
  expect(kindOf(["organization", "person"])).toBe("key");
  expect(kindOf([], { personId })).toBe("key");
  expect(kindOf(["model"], { personId })).toBeNull();
  expect(kindOf(["day"], { organizationId })).toBeNull();
  expect(kindOf(["key", "model"])).toBeNull();
  expect(kindOf(["day"], { model: "acme/writer-1" })).toBe("day");
  expect(kindOf(["organization"], { model: "acme/writer-1" })).toBe("organization");
  expect(kindOf(["organization"], { teamId: "team_1" })).toBe("key");
  expect(kindOf(["model"], { keyId: "key_1" })).toBeNull();
  expect(kindOf(["key"], { model: "acme/writer-1" })).toBeNull();
  expect(kindOf(["hour"])).toBeNull();
});

describe("a report by organization reads", () => {
  test("of this month and of past ones totals alone, although the month goes on", () => {
    const rolled = days("2026-01-05", 40);
    expect(sources(asked("2026-01-01", "2026-02-14"), rolled)).toEqual({
      total: [range("2026-01-01", "2026-03-01")],
      usage_day: [],
      usage_hour: [],
    });
  });

  test("days of a month that has others outside of its span", () => {
    const rolled = days("2026-01-01", 80);
    expect(sources(asked("2026-01-15", "2026-03-05"), rolled)).toEqual({
      total: [range("2026-02-01", "2026-03-01")],
      usage_day: [range("2026-01-15", "2026-02-01"), range("2026-03-01", "2026-03-05")],
      usage_hour: [],
    });
  });

  test("hours of the days that are partly in its span, and the days between them", () => {
    const rolled = days("2026-01-01", 40);
    expect(sources(asked("2026-01-01T05:00", "2026-01-31T22:00"), rolled)).toEqual({
      total: [],
      usage_day: [range("2026-01-02", "2026-01-31")],
      usage_hour: [range("2026-01-01T05:00", "2026-01-02"), range("2026-01-31", "2026-01-31T22:00")],
    });
    expect(sources(asked("2026-01-05T05:00", "2026-01-05T09:00"), rolled)).toEqual({
      total: [],
      usage_day: [],
      usage_hour: [range("2026-01-05T05:00", "2026-01-05T09:00")],
    });
  });

  test("hours alone, by the hour", () => {
    expect(sources(asked("2026-01-01", "2026-02-01", { by: ["hour"] }), days("2026-01-01", 31))).toEqual({
      total: [],
      usage_day: [],
      usage_hour: [range("2026-01-01", "2026-02-01")],
    });
  });

  test("days of a month of which totals lack a day", () => {
    const rolled = [...days("2026-01-01", 30), ...days("2026-01-31", 1, false), ...days("2026-02-01", 28)];
    expect(sources(asked("2026-01-01", "2026-03-01"), rolled)).toEqual({
      total: [range("2026-02-01", "2026-03-01")],
      usage_day: [range("2026-01-01", "2026-02-01")],
      usage_hour: [],
    });
  });
});

describe("a report by key reads", () => {
  const byKey = (from: string, to: string, by: ReportQuery["by"] = ["key"]) => asked(from, to, { by });
  const rolled = days("2025-03-01", 245);

  test("what all months add up to, less the others, where those are fewer", () => {
    const { total } = sourcesOf(byKey("2025-04-01", "2025-11-01"), rolled, 8);
    expect(total.others).toEqual([
      { from: new Date(0), to: at("2025-04-01") },
      { from: at("2025-11-01"), to: at("9999-01-01") },
    ]);
    const gap = days("2025-03-01", 92).concat(days("2025-06-01", 1, false), days("2025-07-01", 123));
    expect(sourcesOf(byKey("2025-03-01", "2025-11-01"), gap, 8)).toEqual({
      total: {
        kind: "key",
        ranges: [range("2025-03-01", "2025-06-01"), range("2025-07-01", "2025-11-01")],
        others: [
          { from: new Date(0), to: at("2025-03-01") },
          range("2025-06-01", "2025-07-01"),
          { from: at("2025-11-01"), to: at("9999-01-01") },
        ],
      },
      rollUps: { usage_day: [range("2025-06-01", "2025-06-02")], usage_hour: [] },
    });
  });

  test("its months where they are fewer, and by month", () => {
    const othersOf = (query: ReportQuery) =>
      sourcesOf(
        query,
        rolled.filter(({ startsAt }) => startsAt >= query.from),
        8,
      ).total.others;
    expect(othersOf(byKey("2025-07-01", "2025-11-01"))).toBeNull();
    expect(othersOf(byKey("2025-06-01", "2025-11-01"))).not.toBeNull();
    expect(othersOf(byKey("2025-03-01", "2025-11-01", ["key", "month"]))).toBeNull();
    expect(othersOf(asked("2025-03-01", "2025-11-01"))).toBeNull();
  });
});

test("a report by day reads totals of the days that have them", () => {
  const rolled = [...days("2026-01-01", 3, false), ...days("2026-01-04", 2), ...days("2026-01-09", 1)];
  expect(sources(asked("2026-01-02", "2026-01-20", { by: ["day"] }), rolled)).toEqual({
    total: [range("2026-01-04", "2026-01-10")],
    usage_day: [range("2026-01-02", "2026-01-04")],
    usage_hour: [],
  });
});

describe("a report by the days or months of a zone reads what one of UTC reads, and moves", () => {
  const rolled = days("2025-12-01", 100);
  const beginning = (utc: string, zone: string): Beginning => ({ inUtc: at(utc), inZone: at(zone) });

  test("the hours between the midnights of both, in the totals and days that it reads", () => {
    // Three days of Berlin's time zone, which start an hour before the days of UTC.
    const berlin = asked("2026-01-09T23:00", "2026-01-12T23:00", { by: ["key", "day"], zone: "Europe/Berlin" });
    const midnights = ["09", "10", "11", "12", "13"].map((day) =>
      beginning(`2026-01-${day}`, `2026-01-${String(Number(day) - 1).padStart(2, "0")}T23:00`),
    );
    expect(sourcesWith(berlin, [], 4, midnights)).toEqual({
      total: { kind: "day", ranges: [], others: null },
      rollUps: {
        usage_day: [range("2026-01-10", "2026-01-12")],
        usage_hour: [range("2026-01-09T23:00", "2026-01-10"), range("2026-01-12", "2026-01-12T23:00")],
      },
      // The hour before a midnight of UTC belongs to Berlin's next day. It moves within days that are read whole. Of the
      // first and the last day of UTC, single hours are read.
      moved: [range("2026-01-10T23:00", "2026-01-11"), range("2026-01-11T23:00", "2026-01-12")],
    });
  });

  test("a few hours for each month, though it has totals of all others", () => {
    const asked13 = asked("2025-12-01T08:00", "2026-03-01T08:00", {
      by: ["organization", "month"],
      zone: "America/Los_Angeles",
    });
    const firsts = ["2025-12", "2026-01", "2026-02", "2026-03"].map((month) =>
      beginning(`${month}-01`, `${month}-01T08:00`),
    );
    const { total, rollUps, moved } = sourcesWith(asked13, rolled, 4, firsts);
    expect(total.ranges).toEqual([range("2026-01-01", "2026-03-01")]);
    expect(rollUps).toEqual({
      usage_day: [range("2025-12-02", "2026-01-01")],
      usage_hour: [range("2025-12-01T08:00", "2025-12-02"), range("2026-03-01", "2026-03-01T08:00")],
    });
    expect(moved).toEqual([range("2026-01-01", "2026-01-01T08:00"), range("2026-02-01", "2026-02-01T08:00")]);
  });
});

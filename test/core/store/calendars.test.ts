// Guarantees for an organization with a calendar: a request at each boundary of summer time belongs to the window of
// its local day, and a change of the calendar in mid-month is followed by one shorter window with its share of the
// limit.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { uuidOf } from "../../../src/core/store/ids.ts";
import type { AdmitAnswer } from "../../../src/core/store/ledger.ts";
import { setCalendar } from "../../../src/stores/postgres/ledger.ts";
import { standings } from "../../../src/stores/postgres/standing.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, expectBalanced, growOf, ledgerForTests, settleOf, unlimited } from "./ledger-stores.ts";

setDefaultTimeout(60_000);
const monday = { weekStarts: "monday", monthStarts: 1 } as const;
const hour_ms = 3_600_000;

/**
 * Days on which a zone's clocks change, each with the instant at which the day begins and its length in hours. Comments
 * say which midnights are missing or come twice.
 */
const changes = [
  { zone: "Europe/Berlin", day: "2026-03-29", begins: "2026-03-28T23:00:00Z", hours: 23 },
  { zone: "Europe/Berlin", day: "2026-10-25", begins: "2026-10-24T22:00:00Z", hours: 25 },
  { zone: "Australia/Lord_Howe", day: "2026-04-05", begins: "2026-04-04T13:00:00Z", hours: 24.5 },
  { zone: "Australia/Lord_Howe", day: "2026-10-04", begins: "2026-10-03T13:30:00Z", hours: 23.5 },
  // There is no midnight: the day begins at one o'clock.
  { zone: "Africa/Cairo", day: "2026-04-24", begins: "2026-04-23T22:00:00Z", hours: 23 },
  { zone: "Africa/Cairo", day: "2026-10-29", begins: "2026-10-28T21:00:00Z", hours: 25 },
  { zone: "Atlantic/Azores", day: "2026-03-29", begins: "2026-03-29T01:00:00Z", hours: 23 },
  // Midnight comes twice: the day begins with the first.
  { zone: "Atlantic/Azores", day: "2026-10-25", begins: "2026-10-25T00:00:00Z", hours: 25 },
];

describe.each(databaseKinds(import.meta.path))("calendars on %s", (name) => {
  const { store, book, run, serve } = ledgerForTests(name, { isBalanced: false });
  const at = (instant: string | number) => store.setClock(new Date(instant));
  const monthStarts = (day: string) => Number(day.slice(8));

  for (const { zone, day, begins, hours } of changes) {
    test(`a request belongs to ${day} in ${zone} from the first instant of that day on, and no later than its last`, async () => {
      const begins_ms = Date.parse(begins);
      const organization = await store.newOrganization();
      await setCalendar(store.db, organization, { ...monday, zone, monthStarts: monthStarts(day) });
      // A second organization's month begins on the day after, when this day has ended.
      const other = await store.newOrganization();
      await setCalendar(store.db, other, { ...monday, zone, monthStarts: monthStarts(day) + 1 });
      const month = async (of: string, instant_ms: number) => {
        await at(instant_ms);
        const admit = admitOf(of);
        const [answer] = (await book.run([admit])) as AdmitAnswer[];
        await book.run([settleOf(admit, 10)]);
        if (answer?.answer !== "granted") throw new Error(`the ledger answered ${JSON.stringify(answer)}`);
        const { startsAt, resetAt, used } = answer.windows.month;
        return { starts: startsAt.getTime(), resets: resetAt.getTime(), used };
      };
      expect(await month(organization, begins_ms - 1)).toMatchObject({ resets: begins_ms, used: 0 });
      expect(await month(organization, begins_ms)).toMatchObject({ starts: begins_ms, used: 0 });
      const ends_ms = begins_ms + hours * hour_ms;
      expect(await month(other, ends_ms - 1)).toMatchObject({ resets: ends_ms, used: 0 });
      expect(await month(other, ends_ms)).toMatchObject({ starts: ends_ms, used: 0 });
      await expectBalanced(book);
    });
  }

  test("a change in mid-month lets the running month end, and one window with its share of the limit follows", async () => {
    // The organization's months begin on the 31st at 10:00, as without a calendar.
    const organization = await store.newOrganization({ extra: { enabled: true, capNanos: 3_000_000 } });
    const limits = { ...unlimited, month: 30_000_000 };
    await at("2026-11-10T08:00:00Z");
    const first = admitOf(organization, { limits, inputNanos: 30_000_000 - 900, outputTokens: 90 });
    expect(await book.run([first])).toMatchObject([{ answer: "granted" }]);
    await book.run([settleOf(first, 29_000_000)]);
    await at("2026-11-15T08:00:00Z");
    const berlin = { zone: "Europe/Berlin", weekStarts: "monday", monthStarts: 1 } as const;
    const from = new Date("2026-11-30T10:00:00Z");
    expect(await setCalendar(store.db, organization, berlin)).toEqual(from);
    expect((await book.reading(organization, limits)).windows.month).toMatchObject({
      used: 29_000_000,
      resetAt: from,
    });
    // Only one change of the calendar may be pending in a month.
    expect(await setCalendar(store.db, organization, null)).toBeNull();
    await at(from.getTime() - 1);
    expect((await book.reading(organization, limits)).windows.month).toMatchObject({
      limit: 30_000_000,
      resetAt: from,
    });

    // From 30 November 10:00 to 30 November 23:00 UTC: thirteen of the 720 hours of November in Berlin.
    await at(from.getTime());
    const to = new Date("2026-11-30T23:00:00Z");
    const share = Math.ceil((30_000_000 * 13) / 720);
    const bridge = { startsAt: from, resetAt: to, limit: share, isShort: true } as const;
    const reading = await book.reading(organization, limits);
    expect(reading.windows.month).toMatchObject({ ...bridge, used: 0 });
    expect(reading.extra.capNanos).toBe(Math.ceil((3_000_000 * 13) / 720));
    // Extra usage is turned off, because it would pay for what the plan has no room for.
    await store.db.query("update organization set extra_usage_enabled = false where id = $1", [
      uuidOf(organization, "org_"),
    ]);
    await store.db.query(
      "insert into plan (name, source, version, month_nanos, changed_at) values ('test', 'file', 1, $1, now()) on conflict do nothing",
      [limits.month],
    );

    const over = admitOf(organization, { limits, inputNanos: share - 899, outputTokens: 90, outputTokens_min: 90 });
    expect(await book.run([over])).toMatchObject([
      { answer: "exhausted", kinds: ["month"], windows: { month: bridge } },
    ]);
    const fits = admitOf(organization, { limits, inputNanos: share - 2000, outputTokens: 100, outputTokens_min: 90 });
    expect(await book.run([fits])).toMatchObject([
      { answer: "granted", nanos: share - 1000, windows: { month: bridge } },
    ]);
    expect(await run(growOf(fits, share + 500, 1))).toEqual({ answer: "granted", nanos: share });
    expect(await run(settleOf(fits, share + 700))).toEqual({ answer: "settled", charged: share, uncharged: 700 });
    const receipt = await book.receipt(organization, fits.requestId);
    expect(receipt?.windows?.month).toMatchObject({ limit: share, usedAfter: share, resetAt: to });
    const standing = (await standings(store.db).standings([organization])).get(organization);
    expect(standing?.windows.month).toMatchObject({ ...bridge, used: share });

    await at(to.getTime());
    const whole = (await book.reading(organization, limits)).windows.month;
    expect(whole).toMatchObject({
      limit: 30_000_000,
      used: 0,
      startsAt: to,
      resetAt: new Date("2026-12-31T23:00:00Z"),
    });
    expect(whole.isShort).toBeUndefined();
    await expectBalanced(book);
  });

  test("what was admitted in a whole month is charged by that one's limit, also while a shorter one runs, and the other way", async () => {
    const organization = await store.newOrganization();
    const limits = { ...unlimited, month: 30_000_000 };
    await at("2026-11-30T09:59:00Z");
    const early = admitOf(organization, { limits, inputNanos: 20_000_000 });
    await book.run([early]);
    await setCalendar(store.db, organization, { ...monday, zone: "Europe/Berlin" });
    await at("2026-11-30T22:59:00Z");
    const late = admitOf(organization, { limits, inputNanos: 400_000 });
    expect(await book.run([late])).toMatchObject([{ answer: "granted", windows: { month: { isShort: true } } }]);
    expect(await book.run([settleOf(early, 20_000_000)])).toMatchObject([{ charged: 20_000_000 }]);
    await at("2026-11-30T23:01:00Z");
    const share = Math.ceil((30_000_000 * 13) / 720);
    expect(await book.run([settleOf(late, 1_000_000)])).toMatchObject([
      { charged: share, uncharged: 1_000_000 - share },
    ]);
    await expectBalanced(book);
  });

  test("a limited key has its share, too", async () => {
    const organization = await store.newOrganization();
    await at("2026-11-20T08:00:00Z");
    const admit = admitOf(organization);
    await serve(admit, 10);
    await setCalendar(store.db, organization, { ...monday, zone: "Europe/Berlin" });
    const key = uuidOf(admit.keyId, "key_");
    await store.db.query("select usage_set_subject($1, $2, null, null, $3)", [
      key,
      uuidOf(organization, "org_"),
      "{null,null,72000,null}",
    ]);
    await at("2026-11-30T12:00:00Z");
    const over = admitOf(organization, { inputNanos: 1000 });
    const limit = (72_000 * 13) / 720;
    const month = { limit, isShort: true } as const;
    expect(await book.run([over])).toMatchObject([
      { answer: "exhausted", subjects: [{ subject: "key", windows: { month } }] },
    ]);
    expect(await book.budgets(organization, admit.keyId)).toMatchObject([{ windows: { month } }]);
    await store.db.query("delete from usage_subject where subject_id = $1", [key]);
  });

  test("before anything was used, a calendar counts at once, and may be changed again", async () => {
    const organization = await store.newOrganization();
    await at("2026-11-15T08:00:00Z");
    await setCalendar(store.db, organization, { ...monday, zone: "Europe/Berlin" });
    await setCalendar(store.db, organization, { ...monday, zone: "Asia/Tokyo" });
    expect((await book.windows(organization, unlimited)).month).toMatchObject({
      startsAt: new Date("2026-10-31T15:00:00Z"),
      resetAt: new Date("2026-11-30T15:00:00Z"),
    });
  });

  test("new rules of a zone move no window that is open", async () => {
    const organization = await store.newOrganization();
    await at("2026-11-15T08:00:00Z");
    await setCalendar(store.db, organization, { ...monday, zone: "Europe/Berlin" });
    await serve(admitOf(organization), 10);
    const before = await book.windows(organization, unlimited);
    // A changed zone stands for new rules by which Berlin has another offset.
    await store.db.query("update usage_anchor set zone = 'Europe/Kyiv' where organization_id = $1", [
      uuidOf(organization, "org_"),
    ]);
    await at("2026-11-15T20:00:00Z");
    const { week, month } = await book.windows(organization, unlimited);
    expect([week, month]).toEqual([before.week, before.month]);
    // The next window begins where the previous one ended.
    await at(month.resetAt.getTime());
    expect((await book.windows(organization, unlimited)).month).toMatchObject({
      startsAt: month.resetAt,
      resetAt: new Date("2026-12-31T22:00:00Z"),
    });
  });
});

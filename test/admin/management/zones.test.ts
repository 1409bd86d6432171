/** Time zones in an organization's calendar, and in the days of a report. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { offsetsIn, zonesSay } from "../../../src/admin/cli/zones-check.ts";
import { client } from "../../../src/admin/management/client.ts";
import type { Management } from "../../../src/admin/management/verbs.ts";
import type { Book } from "../../../src/stores/postgres/ledger.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { admitOf, openLedger, type Store, settleOf, unlimited } from "../../core/store/ledger-stores.ts";
import { whileLocked } from "../../harness/acts-waiting.ts";
import { plansNamed } from "./empty-ledger.ts";
import { nodeOn } from "./world.ts";

let store: Store;
let book: Book;
let manage: Management;
beforeAll(async () => {
  ({ store, book } = await openLedger("postgres"));
  await plans(store.db).publish([...plansNamed("starter", "pro").values()], null);
  manage = client(nodeOn(store.db).actAs("cli:test"));
}, 60_000);
afterAll(() => store.close(), 30_000);

const at = (instant: string) => store.setClock(new Date(instant));

async function use(organizationId: string, instant: string): Promise<void> {
  await at(instant);
  const admit = admitOf(organizationId);
  await book.run([admit]);
  await book.run([settleOf(admit, 10)]);
}

describe("the calendar of an organization", () => {
  const berlin = { zone: "Europe/Berlin", weekStarts: "monday", monthStarts: 1 } as const;

  test("is given at its creation, in any case of letters, and counts at once", async () => {
    await at("2026-11-15T08:00:00Z");
    const made = await manage.createOrganization({ slug: "first", zone: "europe/berlin" });
    expect(made).toMatchObject({ calendar: berlin, nextCalendar: null });
    expect((await book.windows(made.id, unlimited)).month).toMatchObject({
      resetAt: new Date("2026-11-30T23:00:00Z"),
    });
  });

  test("has both of two changes at once that name different members", async () => {
    const { id } = await manage.createOrganization({ slug: "at-once", zone: "Europe/Berlin" });
    await whileLocked(store.db, id, [
      () => manage.updateCalendar({ organization: "at-once", weekStarts: "sunday" }),
      () => manage.updateCalendar({ organization: "at-once", monthStarts: 15 }),
    ]);
    const calendar = { zone: "Europe/Berlin", weekStarts: "sunday", monthStarts: 15 };
    expect(await manage.findOrganization({ organization: "at-once" })).toMatchObject({ calendar });
  });

  test("changes once the running month has ended, once a month, and goes back to the anchor", async () => {
    const { id } = await manage.createOrganization({ slug: "second" });
    await use(id, "2026-11-16T08:00:00Z");
    const changed = await manage.updateCalendar({ organization: "second", zone: "Europe/Berlin", monthStarts: 15 });
    const countsFrom = new Date("2026-12-15T08:00:00Z");
    expect(changed).toMatchObject({
      calendar: null,
      nextCalendar: { calendar: { ...berlin, monthStarts: 15 }, countsFrom },
    });
    const again = manage.updateCalendar({ organization: "second", weekStarts: "sunday" });
    expect(again).rejects.toMatchObject({
      code: "wrong_state",
      message: `The calendar of 'second' was already changed this month, and can be changed again when the month ends, on 2026-12-15 08:00:00 UTC.`,
    });
    await again.catch(() => {});
    const anchored = manage.setAnchor({ organization: "second", anchor: "2026-12-01" });
    expect(anchored).rejects.toMatchObject({ code: "wrong_state", message: expect.stringContaining("--no-zone") });
    await anchored.catch(() => {});
    // A repeated change has no effect.
    const same = await manage.updateCalendar({ organization: "second", monthStarts: 15 });
    expect(same.version).toBe(changed.version);
    await at("2026-12-16T00:00:00Z");
    expect(await manage.findOrganization({ organization: "second" })).toMatchObject({
      calendar: { ...berlin, monthStarts: 15 },
      nextCalendar: null,
    });
    expect(await manage.updateCalendar({ organization: "second", zone: null })).toMatchObject({
      calendar: { ...berlin, monthStarts: 15 },
      nextCalendar: { calendar: null },
    });
  });

  test("is refused in words where its zone is not known, or missing", async () => {
    expect((await manage.createOrganization({ slug: "none" })).calendar).toBeNull();
    const unknown =
      "There is no time zone 'Europe/Berln'. Use a name of the IANA time zone database, such as Europe/Berlin.";
    for (const act of [
      () => manage.createOrganization({ slug: "third", zone: "Europe/Berln" }),
      () => manage.updateCalendar({ organization: "none", zone: "Europe/Berln" }),
      () => manage.reportUsage({ zone: "Europe/Berln" }),
    ])
      expect(await act().catch(({ message }: Error) => message)).toBe(unknown);
    for (const zone of ["+01:00", "UTC+3", "posixrules"])
      expect(manage.createOrganization({ slug: "third", zone })).rejects.toMatchObject({ code: "invalid_value" });
    expect(manage.updateCalendar({ organization: "none", monthStarts: 3 })).rejects.toMatchObject({
      message: "Specify the time zone, too, such as Europe/Berlin.",
    });
  });
});

test("the start of a billing cycle that is set again changes nothing, and nobody's version", async () => {
  const organization = "cyclic";
  await manage.createOrganization({ slug: organization });
  const set = await manage.setAnchor({ organization, anchor: "2026-12-01" });
  const { number } = await manage.auditHead();
  expect(await manage.setAnchor({ organization, anchor: "2026-12-01T00:00:00Z" })).toEqual(set);
  expect((await manage.auditHead()).number).toBe(number);
  const { version } = await manage.setAnchor({ organization, anchor: "2026-12-02" });
  expect(version).toBe(set.version + 1);
});

describe("doctor", () => {
  test("an instant of an hour that comes twice is told from the other by its offset", () => {
    const offset_ms = offsetsIn("Europe/Berlin");
    expect(offset_ms(new Date("2026-10-25T00:30:00Z"))).toBe(7_200_000);
    expect(offset_ms(new Date("2026-10-25T01:30:00Z"))).toBe(3_600_000);
    expect(offsetsIn("America/St_Johns")(new Date("2026-01-01T00:00:00.999Z"))).toBe(-12_600_000);
  });

  test("compares the database's rules of the zones of organizations with this program's, for a year", async () => {
    const { data } = await manage.listZones();
    const found = data.find(({ zone }) => zone === "Europe/Berlin")!;
    expect(found.offsets.map(({ seconds }) => seconds).toSorted()).toEqual([3600, 3600, 7200]);
    const [first, summer] = found.offsets;
    expect(summer).toMatchObject({ from: first!.to, seconds: 7200 });
    const says = await zonesSay(manage);
    expect(says).toBe(
      `the database and this program know the same rules for the coming year of ${data.map(({ zone }) => zone).join(", ")}`,
    );
  });

  test("warns of the first hour at which they differ", async () => {
    const { data } = await manage.listZones();
    const [winter, ...rest] = data.find(({ zone }) => zone === "Europe/Berlin")!.offsets;
    // The offsets that the database would report if it did not know the zone's summer time.
    const offsets = [winter!, ...rest.map((one) => ({ ...one, seconds: 3600 }))];
    const listZones = async () => ({ data: [{ zone: "Europe/Berlin", offsets }] });
    expect(zonesSay({ ...manage, listZones })).rejects.toThrow(
      /^the database and this program know different rules for Europe\/Berlin from \d{4}-03-\d\d 01:00:00 UTC on\. Windows begin by those of the database\. Update the older ones/,
    );
    expect(await zonesSay({ ...manage, listZones: async () => ({ data: [] }) })).toBeNull();
  });
});

describe("a report with a zone", () => {
  const month = { from: "2026-10", to: "2026-12", zone: "Europe/Berlin" };

  test("has the days and months of that zone, from records and from roll-ups", async () => {
    const { id } = await manage.createOrganization({ slug: "reported" });
    for (const instant of [
      "2026-10-31T22:30:00Z",
      "2026-10-31T23:30:00Z",
      "2026-11-30T22:59:00Z",
      "2026-11-30T23:00:00Z",
    ])
      await use(id, instant);
    const seen = async () => {
      const of = { organization: "reported", ...month };
      const days = await manage.reportUsage({ ...of, by: "day" });
      const months = await manage.reportUsage({ ...of, by: "month" });
      return {
        zone: days.zone,
        from: days.from.toISOString(),
        to: days.to.toISOString(),
        days: days.rows.map(({ day, requests }) => [day, requests]),
        months: months.rows.map(({ month, requests }) => [month, requests]),
      };
    };
    const expected = {
      zone: "Europe/Berlin",
      from: "2026-09-30T22:00:00.000Z",
      to: "2026-11-30T23:00:00.000Z",
      days: [
        ["2026-10-31", 1],
        ["2026-11-01", 1],
        ["2026-11-30", 1],
      ],
      months: [
        ["2026-10", 1],
        ["2026-11", 2],
      ],
    };
    expect(await seen()).toEqual(expected);
    await book.rollUp();
    expect(await seen()).toEqual(expected);
  });

  test("goes from the first of the zone's month to the end of its day, unless it is said", async () => {
    await at("2026-11-30T23:30:00Z");
    const { from, to } = await manage.reportUsage({ zone: "Europe/Berlin" });
    expect([from, to]).toEqual([new Date("2026-11-30T23:00:00Z"), new Date("2026-12-01T23:00:00Z")]);
  });

  test("is refused where the zone's days do not begin at full hours, and as FOCUS", async () => {
    const refusal = async (asked: object) =>
      manage.reportUsage({ ...month, ...asked }).then(
        () => null,
        ({ message }: Error) => message,
      );
    expect(await refusal({ zone: "Asia/Kathmandu" })).toContain(
      "Days in Asia/Kathmandu do not all begin at a full hour",
    );
    expect(await refusal({ zone: "Australia/Lord_Howe" })).toContain("do not all begin at a full hour");
    // Lord Howe's offset in summer time, which applies on that day, is eleven hours.
    expect(await refusal({ zone: "Australia/Lord_Howe", from: "2026-11-01" })).toBeNull();
  });
});

/** The commands for plans, calendars, extra usage, usage and requests, run by an operator. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { bar } from "../../../src/admin/cli/table.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import type { Admit } from "../../../src/core/store/ledger.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { admitOf, settleOf } from "../../core/store/ledger-stores.ts";
import { dollars, typed } from "../../harness/money.ts";
import { kindsFor, type Owned } from "../../stores/postgres/databases.ts";
import { expectMisuse, expectRefused, type Shell, shell, shellOn } from "./shell.ts";

setDefaultTimeout(60_000);

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("what is wrong", () => {
  test("in form is wrong use, and nothing is done", async () => {
    const it = shell();
    await it.typed("org create acme");
    await expectMisuse(it, [
      "org plan acme",
      "org plan acme pro --none",
      "org anchor acme",
      "org extra-usage acme",
      "org extra-usage acme on",
      "org extra-usage acme off --cap 5",
      "org extra-usage acme maybe --cap 5",
      "usage",
      "usage show",
      "usage adjust acme --window week --amount 5",
      "usage adjust acme --window week --reason x",
      "usage adjust acme --amount 5 --reason x",
      "usage adjust acme --window year --amount 5 --reason x",
      "usage adjust acme --window week --amount --reason x",
      "request",
      "request show",
    ]);
    expect(await it.directory.listAudit({ limit: 10 })).toHaveLength(1);
  });

  test("otherwise is refused in one line that says why", async () => {
    const it = shell();
    await it.typed("org create acme");
    await expectRefused(it, [
      ["org plan acme gold", "starter, pro, unlimited"],
      ["org plan nobody pro", "no organization"],
      ["org anchor acme tomorrow", "must be an instant"],
      ["org anchor acme 2026-02-30", "not an instant"],
      ["org anchor acme 1970-01-01", "between the years"],
      ["org extra-usage nobody off", "no organization"],
      ["usage show nobody", "no organization"],
      ["org extra-usage acme on --cap 0", "must be above 0"],
      ["org extra-usage acme on --cap 1000001", "at most a million"],
      ["org extra-usage acme on --cap 0.0000000001", "nine decimals at most"],
      ["org extra-usage acme on --cap 5EUR", "is in EUR, and this service counts in USD"],
      ["usage adjust acme --window week --amount many --reason x", "an amount of money, such as 50 or 0.25"],
      ["usage adjust acme --window week --amount 0 --reason x", "other than 0"],
      ["usage adjust nobody --window week --amount 5 --reason x", "no organization"],
      ["request show org_1", "begins with 'req_'"],
      [`request show req_${"0".repeat(32)}`, "no request"],
    ]);
  });
});

test("a bar shows what is used at all, what is held, and never more than it has room for", () => {
  const drawn = (used: number, held: number, limit: number | null) => bar(8, { used, held, limit });
  expect(drawn(0, 0, 100)).toBe("░░░░░░░░");
  expect(drawn(1, 0, 1_000)).toBe("█░░░░░░░");
  expect(drawn(50, 25, 100)).toBe("████▒▒░░");
  expect(drawn(99, 0, 100)).toBe("███████░");
  expect(drawn(100, 0, 100)).toBe("████████");
  expect(drawn(500, 500, 100)).toBe("████████");
  expect(drawn(5, 5, null)).toBe("········");
});

for (const { kind, open } of kindsFor(import.meta.path)) {
  describe(`on ${kind}`, () => {
    let owned: Owned;
    let it: Shell;
    beforeAll(async () => {
      owned = await open();
      it = shellOn(owned.db);
    });
    afterAll(() => owned.drop());

    let made = 0;
    async function organization(plan = "starter"): Promise<{ id: string; slug: string }> {
      const slug = `org-${++made}`;
      return it.json(`org create ${slug} --plan ${plan} --json`) as Promise<{ id: string; slug: string }>;
    }
    /**
     * Admits a request with a hold of 1,000 nanos, and settles it with a cost of `nanos`. If `nanos` is 0, the request
     * stays running.
     */
    async function used(organizationId: string, nanos: number, change: Partial<Admit> = {}): Promise<Admit> {
      const book = ledger(owned.db, { recovery: "checkpoint" });
      const admit = admitOf(organizationId, change);
      expect((await book.run([admit]))[0]).toMatchObject({ answer: "granted" });
      if (nanos > 0) await book.run([settleOf(admit, nanos)]);
      await book.close();
      return admit;
    }

    test("a plan, an anchor and extra usage are what show says, and each is in the audit log", async () => {
      const { id, slug } = await organization();
      expect(await it.json(`org plan ${slug} pro --json`)).toMatchObject({ id, plan: "pro" });
      expect((await it.typed(`org plan ${slug} --none`)).out).toContain("has no plan");
      expect(await it.json(`org show ${slug} --json`)).toMatchObject({ plan: null });
      const anchored = await it.json(`org anchor ${slug} 2026-01-31T10:00:00+01:00 --json`);
      expect(anchored.next_anchor).toEqual({
        anchor_at: "2026-01-31T09:00:00.000Z",
        counts_from: expect.stringMatching(instant),
      });
      expect((await it.typed(`org anchor ${slug} 2026-01-30`)).out).toContain("will start on 2026-01-30 00:00:00 UTC");
      const on = await it.json(`org extra-usage ${slug} on --cap 0.02 --json`);
      expect(on.extra_usage).toEqual({ enabled: true, cap: dollars(20_000_000) });
      const shown = (await it.typed(`org show ${slug}`)).out;
      expect(shown).toContain("on, up to $0.02 a billing month");
      expect(shown).toMatch(/next billing cycle +2026-01-30 00:00:00 UTC, from 20/);
      expect((await it.typed(`org extra-usage ${slug} off`)).out).toBe(`Extra usage of ${slug} is off.\n`);
      const acts = (await it.json(`audit list --org ${slug} --json`)) as unknown as { action: string }[];
      expect(acts.map(({ action }) => action).toReversed()).toEqual([
        "organization.create",
        ...["organization.plan", "organization.plan", "organization.anchor", "organization.anchor"],
        ...["organization.extra_usage", "organization.extra_usage"],
      ]);
    });

    test("usage is shown as bars for people, as numbers for scripts, on every width of screen", async () => {
      const { id, slug } = await organization();
      await used(id, 250_000, { inputNanos: 300_000 });
      await used(id, 0, { inputNanos: 99_100 });
      const shown = await it.json(`usage show ${slug} --json`);
      const window = { usage_percent: 25, used: dollars(250_000), held: dollars(100_000), limit: dollars(1_000_000) };
      const bounds = { starts_at: expect.stringMatching(instant), reset_at: expect.stringMatching(instant) };
      expect(shown).toEqual({
        organization_id: id,
        organization: slug,
        plan: "starter",
        at: expect.stringMatching(instant),
        session: { ...window, ...bounds },
        week: { ...window, ...bounds },
        month: { ...window, ...bounds },
        extra_usage: { enabled: false, cap: null, used: dollars(0), held: dollars(0) },
        running_requests: 1,
        concurrent_requests: null,
      });
      for (const width of [40, 80, 200]) {
        Object.assign(it.services.terminal, { width });
        const { out } = await it.typed(`usage show ${slug}`);
        expect(out).toContain("session");
        expect(out).toContain("25.00");
        expect(out).toContain(width < 110 ? "████▒░░░░░░░░░░░" : `${"█".repeat(8)}▒▒▒${"░".repeat(21)}`);
        if (width >= 80) for (const line of out.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(width);
      }
      Object.assign(it.services.terminal, { width: null });
      const bare = await organization("unlimited");
      expect((await it.typed(`usage show ${bare.slug}`)).out).toContain("none");
    });

    test("adjusting appends an entry with its reason, takes no window below 0, and the book still balances", async () => {
      const { id, slug } = await organization();
      const adjust = (words: string[]) =>
        it.json([...["usage", "adjust", slug, "--reason", "outage of 3 May", "--json"], ...words]);
      const early = await it.typed(["usage", "adjust", slug, "--window", "session", "--amount", "5", "--reason", "x"]);
      expect([early.code, early.err]).toEqual([1, expect.stringContaining("No session")]);
      await used(id, 700);
      expect(await adjust(["--window", "week", "--amount", typed(-200)])).toEqual({
        organization_id: id,
        organization: slug,
        reason: "outage of 3 May",
        entries: [{ id: expect.stringMatching(/^req_/), window: "week", amount: dollars(-200) }],
      });
      const all = await adjust(["--window", "all", `--amount=${typed(-600)}`]);
      expect(all.entries).toMatchObject([
        { window: "session", amount: dollars(-600) },
        { window: "week", amount: dollars(-500) },
        { window: "month", amount: dollars(-600) },
      ]);
      expect(
        (await it.typed(["usage", "adjust", slug, "--window", "month", "--amount", typed(7), "--reason", "x"])).out,
      ).toBe(`${slug}, month: +$0.000000007.\n`);
      expect(await it.json(`usage show ${slug} --json`)).toMatchObject({
        session: { used: dollars(100) },
        week: { used: dollars(0) },
        month: { used: dollars(107) },
      });
      expect(await it.typed("usage check --json")).toEqual({ code: 0, out: "[]\n", err: "" });
      const [entry] = (await it.json(`audit list --org ${slug} --limit 1 --json`)) as unknown as object[];
      expect(entry).toMatchObject({
        actor: "cli:ann",
        action: "usage.adjust",
        details: { window: "month", amount: "0.000000007", added: "0.000000007", reason: "x" },
      });
      // The adjustment is in the ledger, but is not a request.
      const { subject } = entry as { subject: string };
      expect((await it.typed(`request show ${subject}`)).code).toBe(1);
    });

    test("check names each total that is not the sum of its records, and ends with 1", async () => {
      const { id, slug } = await organization();
      await used(id, 700);
      expect((await it.typed("usage check")).code).toBe(0);
      const change = (by: string) =>
        owned.db.query(`update usage_now set used[2] = used[2] ${by} where subject_id = $1`, [uuidOf(id, "org_")]);
      await change("+ 5");
      const scripts = await it.typed("usage check --json");
      expect([scripts.code, scripts.err]).toEqual([1, "sluice: 1 total differs from its sum.\n"]);
      expect(JSON.parse(scripts.out)).toEqual([
        {
          organization_id: id,
          organization: slug,
          subject_id: null,
          window: "week",
          starts_at: expect.stringMatching(instant),
          audit_entry: null,
          ...{ used: dollars(705), recorded: dollars(700), held: dollars(0), holding: dollars(0) },
        },
      ]);
      const people = await it.typed("usage check");
      expect([people.code, people.out.split("\n")[1]]).toEqual([
        1,
        expect.stringMatching(new RegExp(`^${slug} +week .*0\\.000000705 +0\\.000000700`)),
      ]);
      await change("- 5");
      expect((await it.typed("usage check")).code).toBe(0);
    });

    test("check says what it takes on trust; a full one takes nothing", async () => {
      const { id } = await organization();
      await owned.db.query(
        "insert into usage_seal values ($1, 'session', now() - interval '1 day', now(), 0, 2, now())",
        [uuidOf(id, "org_")],
      );
      const agreed = "Every total equals the sum of its records.\n";
      const trusting = await it.typed("usage check");
      expect([trusting.code, trusting.out]).toEqual([
        0,
        `${agreed}Taken on trust: the seals of 1 windows, of 2 records in all. --full reads their records.\n`,
      ]);
      expect(await it.typed("usage check --full")).toEqual({ code: 0, out: agreed, err: "" });
      await owned.db.query("update usage_seal set recorded = 9 where subject_id = $1", [uuidOf(id, "org_")]);
      expect((await it.typed("usage check")).code).toBe(1);
      expect((await it.typed("usage check --full")).code).toBe(0);
      await owned.db.query("delete from usage_seal");
    });

    test("a request is shown while it runs, when it has ended, and when it was refused", async () => {
      const { id, slug } = await organization();
      const running = await used(id, 0);
      const ended = await used(id, 700);
      expect(await it.json(`request show ${running.requestId} --json`)).toMatchObject({
        ...{ outcome: "running", ended_at: null, duration_ms: null, route: null, organization: slug },
      });
      expect(await it.json(`request show ${ended.requestId} --json`)).toMatchObject({
        id: ended.requestId,
        outcome: "completed",
        cost: { held: dollars(1_000), charged: dollars(700), uncharged: dollars(0) },
        route: { upstream: "main", attempts: 1, first_part_ms: 12, tried: [] },
        duration_ms: expect.any(Number),
      });
      const shown = (await it.typed(`request show ${ended.requestId}`)).out;
      for (const part of ["main, 1 attempt", "12 ms", "$0.0000007 (0.000000700 USD) charged", "0 % → 0 %", slug]) {
        expect(shown).toContain(part);
      }
      const requestId = `req_${Bun.randomUUIDv7().replaceAll("-", "")}`;
      const by = { organizationId: id, keyId: ended.keyId, operation: "messages" as const };
      const how = {
        model: null,
        stream: null,
        errorCode: "invalid_json",
        message: "The body ends too early.",
        age_ms: 0,
      };
      await refusedRequests(owned.db).keep([{ requestId, ...by, ...how }]);
      expect(await it.json(`request show ${requestId} --json`)).toMatchObject({
        ...{ outcome: "refused", error_code: "invalid_json", organization_id: id, organization: slug, windows: null },
      });
      expect((await it.typed(`request show ${requestId}`)).out).toMatch(/refused: invalid_json\n.*ends too early/);
    });
  });
}

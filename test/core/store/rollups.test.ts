// Roll-ups and reports compared with a plain sum over the records, under random loads on two nodes: late settlements,
// recoveries, operators' entries and clock steps, while passes (runs over the new records) of any size go on, two of
// them at once, and some of them crash (docs/design/metering.md, Roll-ups).

import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import {
  type ReportGroup,
  type ReportMeasures,
  type ReportQuery,
  type ReportRow,
  totalOf,
  type UsageReport,
} from "../../../src/admin/store/report.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { Admit, Settle } from "../../../src/core/store/ledger.ts";
import { onOneNode } from "../../../src/stores/postgres/fleet.ts";
import { adjust, type Book, ledger } from "../../../src/stores/postgres/ledger.ts";
import { batchCall, encodeBatch } from "../../../src/stores/postgres/ledger-batch.ts";
import { databaseKinds, holds, times } from "../../harness/depth.ts";
import { until } from "../../harness/until.ts";
import { lockAwaited } from "../../stores/postgres/databases.ts";
import { allRead, emptyBooks, isAllRead, onOldServer, restoredElsewhere } from "./books.ts";
import { admitOf, expectChecked, ledgerForTests, newHex, settleOf } from "./ledger-stores.ts";
import { always, type Plain, recordsIn, sumOf } from "./report-model.ts";
import { setBudget } from "./subject-limits.ts";

setDefaultTimeout(120_000);

const hour_ms = 3_600_000;
const start_ms = Date.UTC(2026, 1, 27, 22, 30);
/** Two keys for each of the two organizations. */
const keys = [1, 2, 3, 4].map((one) => `key_0000000000007000800000000000000${one}`);
const teams = [5, 6].map((one) => `00000000-0000-7000-8000-00000000000${one}`);
const models = ["acme/writer-1", "acme/painter-1"];

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("serve" as const),
      organization: fc.nat(1),
      key: fc.nat(1),
      model: fc.nat(1),
      nanos: fc.integer({ min: 0, max: 2000 }),
      // The tokens' price may be less than the charged nanos, or more.
      usage: fc.record({
        inputTokens: fc.nat(200),
        cachedInputTokens: fc.nat(200),
        cacheWriteTokens: fc.nat(50),
        outputTokens: fc.nat(40),
        reasoningTokens: fc.nat(10),
      }),
      prices: fc.record({
        ...{ input: fc.nat(4000), cachedInput: fc.nat(2000), cacheWrite: fc.nat(5000), output: fc.nat(30_000) },
      }),
      // Whether the request is settled now; otherwise it is settled later, or recovered.
      now: fc.boolean(),
      outcome: fc.constantFrom("completed" as const, "cancelled" as const, "failed" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("late" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("move" as const), key: fc.nat(1), team: fc.option(fc.nat(1)) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("recover" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("adjust" as const),
      window: fc.constantFrom("session" as const, "week" as const, "month" as const, "extra" as const),
      nanos: fc.integer({ min: -500, max: 500 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("time" as const),
      by_ms: fc.integer({ min: -hour_ms, max: 9 * hour_ms }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("read" as const), transactions: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("crash" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("both" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("audit" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const groups: ReportGroup[][] = [
  [],
  ["organization"],
  ["key", "model", "day"],
  ["hour", "operation", "outcome"],
  ["organization", "month"],
  ["team", "key", "day"],
  ["day"],
  ["model", "outcome"],
  ["organization", "model", "operation"],
  ["team", "month"],
  ["key"],
];
/** Zones behind UTC, ahead of it, and so far ahead that their date is another than UTC's for most hours. */
const zones = ["America/Los_Angeles", "Europe/Berlin", "Pacific/Kiritimati"];

/** Filters for a single key, team or model. */
const filters: Pick<ReportQuery, "keyId" | "teamId" | "model">[] = [
  { keyId: keys[0]! },
  { teamId: `team_${teams[0]!.replaceAll("-", "")}` },
  { model: models[1]! },
  { keyId: keys[2]!, model: models[0]! },
];
/**
 * The start and the length of a report's span in hours, from the day before the start of the load: whole days and
 * months, parts of them, and more than there are records for.
 */
const span = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: -60, max: 10 }).map((days) => days * 24),
      fc.constant(48),
      fc.integer({ min: 0, max: 90 }),
    ),
    fc.oneof(
      fc.integer({ min: 1, max: 60 }).map((days) => days * 24),
      fc.integer({ min: 1, max: 90 }),
    ),
  )
  .map(([first, length]) => {
    const from = new Date(Date.UTC(2026, 1, 26) + first * hour_ms);
    return { from, to: new Date(from.getTime() + length * hour_ms) };
  });

const runs = { postgres: times(3, 40), pglite: times(1, 20) };

describe.each(databaseKinds(import.meta.path))("roll-ups on %s", (name) => {
  // Closes the second node's ledger; registered first, so that it runs before `ledgerForTests` closes the store.
  afterAll(() => nodes[1]!.close());
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  let nodes: Book[];
  let owners: string[];
  let now_ms: number;
  let open: Admit[];
  beforeAll(async () => {
    nodes = [book, ledger(await store.another(), { recovery: "checkpoint" })];
  });
  beforeEach(() => begin());

  async function begin(): Promise<void> {
    await emptyBooks(store);
    await at(start_ms);
    owners = [await owner(), await owner()];
    open = [];
  }
  const owner = () => store.newOrganization({ extra: { enabled: true, capNanos: 1e9 } });
  async function at(ms: number): Promise<void> {
    now_ms = ms;
    await store.setClock(new Date(ms));
  }
  const node = () => nodes[open.length % 2]!;
  const limits = { session: 30_000, week: 60_000, month: 90_000, concurrentRequests: null };

  async function served(change: Partial<Admit> & { nanos: number }, settle: Partial<Settle> = {}): Promise<void> {
    const admit = admitOf(owners[0]!, { limits, lease_ms: 2 * hour_ms, ...change });
    const [answer] = await node().run([admit]);
    if (answer!.answer === "granted") await node().run([settleOf(admit, change.nanos, settle)]);
  }

  /** Moves a key of the first organization into a team, or out of one; neither has limits. */
  async function moved(key: number, team: number | null): Promise<void> {
    await setBudget(store.db, owners[0]!, keys[key]!, {}, team === null ? null : teams[team]!);
  }

  async function act(one: Step): Promise<void> {
    switch (one.kind) {
      case "serve": {
        const { nanos, outcome, prices } = one;
        const usage = { ...one.usage, source: "reported" as const };
        const keyId = keys[one.organization * 2 + one.key]!;
        const facts = { organizationId: owners[one.organization]!, keyId, model: models[one.model]!, prices };
        const admit = admitOf(facts.organizationId, { limits, lease_ms: 2 * hour_ms, ...facts });
        if (!one.now) open.push(admit);
        const [answer] = await node().run([admit]);
        // A request that is given up before it is admitted leaves a record too.
        if (one.now || answer!.answer !== "granted") await node().run([settleOf(admit, nanos, { outcome, usage })]);
        break;
      }
      case "late": {
        const admit = open.shift();
        if (admit) await node().run([settleOf(admit, 77)]);
        break;
      }
      case "move":
        await moved(one.key, one.team);
        break;
      case "recover":
        await node().recover(100);
        break;
      case "adjust":
        await adjust(store.db, `req_${newHex()}`, owners[0]!, one.window, one.nanos);
        break;
      case "time":
        await at(now_ms + one.by_ms);
        break;
      case "read":
        await store.db.query("select usage_audit_read($1)", [one.transactions]);
        break;
      case "crash":
        await store.db
          .transaction(async (tx) => {
            await tx.query("select usage_audit_read(1000)");
            throw new Error("crashed");
          })
          .catch(() => {});
        break;
      case "both":
        await Promise.all(nodes.map((each) => each.rollUp()));
        break;
      case "audit":
        await store.db.query("update usage_audit set looked_at = null");
        expect((await node().audit()).differing).toBe(0);
        break;
    }
  }

  /** Checks that reports equal the sums of the records, however far the passes have come. */
  async function equalsRecords(part: Pick<ReportQuery, "from" | "to">): Promise<void> {
    const records = await recordsIn(store.db);
    for (const by of groups) {
      for (const time of [always, part]) {
        for (const organizationId of by.length > 1 ? [null] : [null, owners[0]!]) {
          const query = { ...time, by, organizationId, rows_max: 100_000 };
          const report = await node().report(query);
          const plain = sumOf(records, query);
          expect(summed(report.rows!)).toEqual(plain);
          expect(report).toMatchObject({ total: totalOf([...plain.values()]), rowsLeftOut: 0 });
          const some = await node().report({ ...query, largest: 2 });
          expect(some).toMatchObject({ total: report.total!, rowsLeftOut: Math.max(0, plain.size - 2) });
          const nanos = [...plain.values()].map((one) => one.nanos).toSorted((one, other) => Number(other - one));
          expect(some.rows!.map((one) => one.nanos)).toEqual(nanos.slice(0, 2));
          foldsTo(await node().report({ ...query, groups_max: 1 }), query, plain);
        }
      }
    }
    for (const zone of zones) {
      for (const by of [["day"], ["organization", "month"], ["key", "day"], ["model", "month"]] as ReportGroup[][]) {
        for (const time of [always, part]) {
          await tellsPlainly(records, { ...time, by, zone });
        }
      }
    }
    for (const filter of filters) {
      for (const by of [[], ["month"], ["organization"], ["key", "day"], ["hour", "model"]] as ReportGroup[][]) {
        await tellsPlainly(records, { ...always, by, ...filter });
      }
    }
  }

  async function tellsPlainly(
    records: Awaited<ReturnType<typeof recordsIn>>,
    asked: Omit<ReportQuery, "organizationId" | "rows_max">,
  ): Promise<void> {
    const query = { ...asked, organizationId: null, rows_max: 100_000 };
    const { rows } = await node().report(query);
    expect({ query, rows: summed(rows!) }).toEqual({ query, rows: sumOf(records, query) });
  }

  /** Checks a report from each table of sums: of hours, of days, and of months by organization and by key. */
  async function addsUp(span = always): Promise<void> {
    const records = await recordsIn(store.db);
    const tables: ReportGroup[][] = [["hour", "operation"], ["model", "day"], ["organization", "month"], ["key"]];
    for (const by of tables) await tellsPlainly(records, { ...span, by });
  }

  /**
   * Checks that, in a folded report, the group that used most has the same rows as in a whole report, and all others
   * are one row per period.
   */
  function foldsTo({ rows, total }: UsageReport, { by }: ReportQuery, plain: Plain): void {
    const told = by.filter((group) => !["hour", "day", "month"].includes(group));
    if (told.length === 0) {
      expect(summed(rows!)).toEqual(plain);
      return;
    }
    const groupOf = (key: string) => JSON.stringify((JSON.parse(key) as unknown[]).slice(1));
    const periodOf = (key: string) => (JSON.parse(key) as (string | null)[])[0]!;
    const used = [...Map.groupBy(plain, ([key]) => groupOf(key)).values()].map((some) =>
      some.reduce((sum, [, { nanos }]) => sum + nanos, 0n),
    );
    const first = summed(rows!.filter(({ isOthers }) => !isOthers));
    const groups = new Set([...first.keys()].map(groupOf));
    expect(groups.size).toBe(Math.min(1, used.length));
    const most = used.toSorted((one, other) => Number(other - one))[0];
    if (most !== undefined) expect(totalOf([...first.values()]).nanos).toBe(most);
    const part = (isFirst: boolean) => [...plain].filter(([key]) => groups.has(groupOf(key)) === isFirst);
    expect(first).toEqual(new Map(part(true)));
    const periods = Map.groupBy(part(false), ([key]) => periodOf(key));
    expect(new Map(rows!.flatMap(otherMeasures))).toEqual(
      new Map([...periods].map(([period, some]) => [period, totalOf(some.map(([, one]) => one))])),
    );
    expect(total).toEqual(totalOf([...plain.values()]));
  }
  const readAll = () => allRead(store, node());
  const agrees = () => expectChecked(node());
  const days = () =>
    store.db.query<{ day: Date; records: number; sealed: boolean }>(
      "select starts_at as day, records, sealed_at is not null as sealed from usage_rolled order by 1",
    );
  const day = (date: string, records: number, sealed: boolean) => ({
    day: new Date(`${date}T00:00:00Z`),
    records,
    sealed,
  });

  test("any load adds up to its records, at every moment, and when all of it is rolled up", async () => {
    await holds(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), span, async (steps, asked) => {
        await begin();
        for (const one of steps) await act(one);
        await equalsRecords(asked);
        await agrees();
        await readAll();
        await equalsRecords(asked);
        await agrees();
      }),
      runs[name],
    );
  });

  test("a day is sealed once it has ended, no hold points to it, and its roll-ups are its records", async () => {
    const late = admitOf(owners[0]!, { lease_ms: 99 * hour_ms });
    await node().run([late]);
    await served({ nanos: 5 });
    await readAll();
    await node().audit();
    expect(await days()).toEqual([day("2026-02-27", 1, false)]);
    await at(start_ms + 2 * hour_ms);
    await node().audit();
    expect(await days()).toEqual([day("2026-02-27", 1, false)]);
    await node().run([settleOf(late, 40)]);
    await readAll();
    await at(start_ms + 3 * hour_ms);
    expect(await node().audit()).toMatchObject({ differing: 0 });
    expect(await days()).toEqual([day("2026-02-27", 2, true)]);
    expect(await node().sealed()).toMatchObject({ days: 1, dayRecords: 2 });

    // If usage is recorded for the day later, because a clock stepped back, the day loses its seal (the mark that it
    // was checked) until it agrees again.
    await at(start_ms);
    await served({ nanos: 7 });
    await readAll();
    expect(await days()).toEqual([day("2026-02-27", 3, false)]);
    await at(start_ms + 5 * hour_ms);
    await node().audit();
    expect(await days()).toEqual([day("2026-02-27", 3, true)]);
    await agrees();
  });

  test("a roll-up that is changed is found: of an open day by every check, and of a sealed one by a full check", async () => {
    const usage = { ...noUsage, inputTokens: 1, cachedInputTokens: 20, cacheWriteTokens: 300, outputTokens: 4000 };
    await served({ nanos: 5 }, { usage });
    await readAll();
    for (const [table, column] of [
      ["usage_hour", "output_tokens"],
      ["usage_day", "nanos"],
      ["usage_day", "requests"],
      ["usage_hour", "extra_nanos"],
      ["usage_total", "cached_input_tokens"],
    ] as const) {
      await store.db.exec(`update ${table} set ${column} = ${column} + 1`);
      // The three totals with which the sums of days disagree: of the day, of the organization's month and of the key's
      // month.
      const totals = ["total", "total", "total"];
      const kinds = { usage_hour: ["hour"], usage_day: ["day", ...totals], usage_total: totals };
      expect((await node().check()).map(({ kind }) => kind)).toEqual(kinds[table] as never);
      await store.db.exec(`update ${table} set ${column} = ${column} - 1`);
    }
    await store.db.exec("update usage_day set nanos = 9");
    await at(start_ms + 2 * hour_ms);
    const wrong = { kind: "day", used: 9, recorded: 5, startsAt: new Date("2026-02-27T00:00:00Z") } as const;
    const total = { kind: "total", used: 5, recorded: 9, startsAt: new Date("2026-02-01T00:00:00Z") } as const;
    const tokens = { held: 4321, holding: 4321 };
    const all = [wrong, { ...total, organizationId: null }, total, total].map((one) => ({ ...one, ...tokens }));
    expect(await node().audit()).toMatchObject({ differences: all, differing: 4 });
    expect(await days()).toEqual([day("2026-02-27", 1, false)]);
    await store.db.exec("update usage_day set nanos = 5; update usage_audit set looked_at = null");
    expect(await node().audit()).toMatchObject({ differing: 0 });
    await store.db.exec("update usage_day set nanos = 9");
    expect(await node().check()).toEqual([]);
    expect(await node().check(true)).toMatchObject(all);
  });

  test("records that were read and stand in no roll-up are found by a full check", async () => {
    await served({ nanos: 5 });
    await readAll();
    await store.db.exec("delete from usage_rolled; delete from usage_hour; delete from usage_day");
    expect(await node().check()).toEqual([]);
    expect(await node().check(true)).toMatchObject([{ kind: "day", used: 0, recorded: 5 }]);
  });

  test("one full check runs at a time, and leaves nothing behind", async () => {
    await served({ nanos: 5 });
    await readAll();
    await onOneNode(await store.another(), "usage_recount", async () => {
      await expect(node().check(true)).rejects.toThrow("another full check");
    });
    await store.db.exec(
      `insert into usage_recount select organization_id, 'month', month_starts_at, month_ends_at, 3, 1 from usage_record`,
    );
    expect(await node().check(true)).toEqual([]);
    expect(await store.db.query("select 1 from usage_recount")).toEqual([]);
  });

  test("an operator's entry for the month counts, and is no request; one for a session or a week doesn't count", async () => {
    await served({ nanos: 500 });
    for (const kind of ["session", "week", "month"] as const)
      await adjust(store.db, `req_${newHex()}`, owners[0]!, kind, -100);
    for (const pass of [async () => {}, readAll]) {
      await pass();
      const { rows } = await node().report({ ...always, by: ["operation"], organizationId: null, rows_max: 10 });
      expect(byOperation(rows)).toMatchObject([
        { operation: "adjustment", requests: 0, nanos: -100n },
        { operation: "chat.completions", requests: 1, nanos: 500n },
      ]);
    }
    const { month } = await node().windows(owners[0]!, limits);
    expect(month.used).toBe(400);
    await agrees();
  });

  test("running requests stand beside the rows, and extra usage within them", async () => {
    await served({ nanos: 90_000, inputNanos: 29_000 });
    await served({ nanos: 600, limits: { ...limits, session: 1 } });
    await node().run([admitOf(owners[0]!, {})]);
    const query = { ...always, by: [], organizationId: owners[0]!, rows_max: 10 };
    const { rows, running } = await node().report(query);
    expect(rows).toMatchObject([{ requests: 2, extraNanos: 600n }]);
    expect(running).toEqual({ requests: 1, heldNanos: 1000n });
    expect(await node().report({ ...query, organizationId: owners[1]! })).toMatchObject({
      rows: [],
      running: { requests: 0, heldNanos: 0n },
    });
    expect((await node().report({ ...query, by: ["hour"], rows_max: 0 })).rows).toBeNull();
  });

  if (name === "postgres") {
    test("two passes at once add each record once", async () => {
      await served({ nanos: 5 });
      // A pass reads no record that comes after an open transaction, which may belong to another database of this
      // server.
      const readable = `select bool_and(xact - ahead < pg_snapshot_xmin(pg_current_snapshot())::text::bigint) as ok
        from usage_record, usage_audit`;
      await until(async () => (await store.db.query<{ ok: boolean }>(readable))[0]!.ok);
      const [first, second] = await Promise.all(
        [store.db, await store.another()].map((db) => db.lane({ synchronous_commit: "off" })),
      );
      await first!.query("begin");
      await first!.query("select usage_audit_read(1000000)");
      const waiting = second!.query("select usage_audit_read(1000000)");
      await Promise.race([waiting, lockAwaited(store.db, "usage_audit_read")]);
      await first!.query("commit");
      await waiting;
      await Promise.all([first!.close(), second!.close()]);
      await readAll();
      await addsUp();
      await agrees();
    });

    test("a settlement that is under way during a pass is added by the next, and once", async () => {
      const slow = admitOf(owners[0]!, { lease_ms: 99 * hour_ms });
      await node().run([slow]);
      const lane = await (await store.another()).lane({});
      await lane.query("begin");
      await lane.query(batchCall, encodeBatch([settleOf(slow, 40)]));
      owners = [owners[1]!, owners[0]!];
      await served({ nanos: 1 });
      await node().rollUp();
      await addsUp();
      await lane.query("commit");
      await lane.close();
      await addsUp();
      await readAll();
      await addsUp();
      expect(await days()).toEqual([day("2026-02-27", 2, false)]);
    });
  }

  test("a book that was restored on another server is rolled up on from where it was", async () => {
    await onOldServer(store);
    await served({ nanos: 5 });
    await readAll();
    await served({ nanos: 30 });
    await restoredElsewhere(store);
    await addsUp();
    await served({ nanos: 7 });
    await addsUp();
    await readAll();
    // All records are in roll-ups by now, so the report reads almost nothing else.
    expect(await isAllRead(store)).toBeTrue();
    await addsUp();
    await agrees();
  });

  test("a charge pays the input first and the output last, and what is no token's is no kind's", async () => {
    const prices = { input: 3000, cachedInput: 1000, cacheWrite: 4000, output: 10_000 };
    const usage = {
      inputTokens: 10,
      cachedInputTokens: 20,
      cacheWriteTokens: 5,
      outputTokens: 9,
      reasoningTokens: 2,
    };
    const kinds = async (nanos: number) => {
      await begin();
      await served({ nanos, prices }, { usage: { ...usage, source: "reported" } });
      for (const change of [7, -3]) await adjust(store.db, `req_${newHex()}`, owners[0]!, "month", change);
      const { rows } = await node().report({ ...always, by: ["operation"], organizationId: null, rows_max: 10 });
      return byOperation(rows).map(({ nanos, inputNanos, cachedInputNanos, cacheWriteNanos, outputNanos }) => [
        Number(nanos),
        [inputNanos, cachedInputNanos, cacheWriteNanos, outputNanos].map(Number),
      ]);
    };
    const entry = [4, [0, 0, 0, 0]];
    for (const [nanos, split] of [
      [160, [30, 20, 20, 90]],
      [81, [30, 20, 20, 11]],
      [31, [30, 1, 0, 0]],
      [0, [0, 0, 0, 0]],
      [200, [30, 20, 20, 90]],
    ] as const) {
      expect(await kinds(nanos)).toEqual([entry, [nanos, [...split]]] as never);
    }
    await readAll();
    await store.db.exec("update usage_day set output_nanos = output_nanos + 1");
    expect(new Set((await node().check()).map(({ kind }) => kind))).toEqual(new Set(["day", "total"]));
  });

  test("what all months of a key add up to, less other months, is what its requests were", async () => {
    await readAll();
    const spanOf = (first: number, end: number) => ({
      from: new Date(Date.UTC(2026, first)),
      to: new Date(Date.UTC(2026, end)),
    });
    for (const [number, month_ms] of [start_ms, ...[2, 3, 4, 5].map((month) => Date.UTC(2026, month, 10))].entries()) {
      await at(month_ms);
      await served({ nanos: 5 + number, keyId: keys[number % 2]! });
      await served({ nanos: 500, keyId: keys[2]!, organizationId: owners[1]! });
      await readAll();
    }
    // One span without the first month, and one without the last.
    for (const span of [spanOf(2, 6), spanOf(1, 5)]) await addsUp(span);
    await agrees();

    const nanos = async () => {
      const query = { ...spanOf(2, 6), by: ["key" as const], organizationId: null, rows_max: 10 };
      return (await node().report(query)).total!.nanos;
    };
    const before = await nanos();
    await store.db.exec("update usage_total set nanos = nanos + 1 where kind = 'key_all'");
    expect((await nanos()) - before).toBe(3n);
    const wrong = (await node().check(true)).map(({ kind, used, recorded }) => [kind, used - recorded]);
    // One difference in the total of the organization with one key, two in that of the organization with two keys.
    expect(wrong.sort()).toEqual([
      ["total", 1],
      ["total", 2],
    ]);
    await store.db.exec("update usage_total set nanos = nanos - 1 where kind = 'key_all'");
    await agrees();
  });

  test("what all months of a key add up to loses those that are deleted, and ends with the last", async () => {
    await served({ nanos: 5 });
    await readAll();
    await at(Date.UTC(2026, 3, 10));
    await served({ nanos: 70 });
    await readAll();
    await served({ nanos: 400, keyId: keys[1]! });
    await readAll();
    const all = async () =>
      (
        await store.db.query<{ nanos: number }>("select nanos from usage_total where kind = 'key_all' order by nanos")
      ).map(({ nanos }) => nanos);
    expect(await all()).toEqual([75, 400]);
    await store.db.exec("delete from usage_total where kind = 'key' and starts_at < '2026-03-01Z'");
    expect(await all()).toEqual([70, 400]);
    await served({ nanos: 900 });
    await readAll();
    expect(await all()).toEqual([400, 970]);
    await store.db.query("delete from usage_total where kind = 'key' and nanos = 400");
    expect(await all()).toEqual([970]);
    await store.db.exec("delete from usage_total");
    expect(await all()).toEqual([]);
  });
});

const byOperation = (rows: ReportRow[] | null) =>
  rows!.toSorted((one, other) => (one.operation! < other.operation! ? -1 : 1));

/**
 * The measures and the period of the row that sums up all groups beyond the listed ones; an empty list for any other
 * row.
 */
function otherMeasures(row: ReportRow): [string | null, ReportMeasures][] {
  const { startsAt, organization, team, person, key, model, operation, outcome, isOthers, ...measures } = row;
  if (!isOthers) return [];
  expect([organization, team, person, key, model, operation, outcome]).toEqual(Array(7).fill(null));
  return [[startsAt?.toISOString() ?? null, measures]];
}

/** The measures of rows by the ids of their groups, without names. */
function summed(rows: readonly object[]): Plain {
  return new Map(
    rows.map((row) => {
      const {
        startsAt,
        organization,
        team,
        person: _,
        key,
        model,
        operation,
        outcome,
        ...measures
      } = row as Record<string, unknown>;
      const idIn = (one: unknown) => (one as { id: string | null } | null)?.id;
      const at = startsAt instanceof Date ? startsAt.toISOString() : null;
      return [JSON.stringify([at, idIn(organization), idIn(team), idIn(key), model, operation, outcome]), measures];
    }),
  ) as unknown as Plain;
}

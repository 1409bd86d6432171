// The audit reads the ledger in pieces: a window that has ended and whose total agrees with its records is sealed
// (marked as checked) and not read again, even if a clock steps back. No error in the ledger's tables escapes the audit
// (docs/design/metering.md, Audit).
import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { bare } from "../../../src/core/store/ids.ts";
import type { Admit } from "../../../src/core/store/ledger.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { batchCall, encodeBatch } from "../../../src/stores/postgres/ledger-batch.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { allRead, emptyBooks, isAllRead, onOldServer, restoredElsewhere } from "./books.ts";
import { admitOf, expectChecked, hours, ledgerForTests, noon, requestIdAt, settleOf } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

describe.each(databaseKinds(import.meta.path))("the audit on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  let organization: string;
  beforeEach(async () => {
    await emptyBooks(store);
    await store.setClock(noon);
    organization = await store.newOrganization();
  });

  const admitted = async (change: Partial<Admit> = {}) => {
    const command = admitOf(organization, { lease_ms: 100 * 3_600_000, ...change });
    await book.run([command]);
    return command;
  };
  const served = async (nanos: number, change: Partial<Admit> = {}) =>
    book.run([settleOf(await admitted(change), nanos)]);
  /**
   * Sets the clock to `count` hours after noon and serves a request, whose batch moves an ended window to `usage_past`.
   */
  const moveOn = async (count: number) => {
    await store.setClock(hours(count));
    await served(0);
  };
  const audited = async () => {
    await allRead(store, book);
    return book.audit();
  };
  const seals = async () =>
    store.db.query<{ kind: string; recorded: number; records: number }>(
      "select kind, recorded, records from usage_seal where subject_id = $1 order by kind, starts_at",
      [bare(organization, "org_")],
    );
  const tamper = (change: string) =>
    store.db.query(`update usage_past set used = used + 1 where kind = 'session' and ${change}`);
  const agrees = () => expectChecked(book);
  const sessionSeal = (recorded: number, records: number) => ({ kind: "session", recorded, records });

  test("an ended window is summed once and sealed with its sum and count; its records are not read again", async () => {
    await served(700);
    await served(30);
    expect(await audited()).toEqual({ differences: [], differing: 0, sealsBehind: 0 });
    expect(await seals()).toEqual([]);
    await moveOn(30);
    expect(await audited()).toEqual({ differences: [], differing: 0, sealsBehind: 0 });
    expect(await seals()).toEqual([sessionSeal(730, 2)]);
    expect(await book.sealed()).toEqual({ windows: 1, records: 2, days: 1, dayRecords: 2 });
    await agrees();

    await store.db.query("delete from usage_record where charged = 700");
    await store.setClock(hours(31));
    expect((await audited()).differences).toEqual([]);
    expect(await book.check()).toEqual([]);
    expect((await book.check(true)).map(({ kind, used, recorded }) => [kind, used, recorded])).toContainEqual([
      "session",
      730,
      30,
    ]);
  });

  test("a window to which a hold points is not sealed before that is settled", async () => {
    await served(5);
    const late = await admitted();
    await moveOn(6);
    expect(await audited()).toEqual({ differences: [], differing: 0, sealsBehind: 1 });
    expect(await seals()).toEqual([]);
    await book.run([settleOf(late, 40)]);
    await store.setClock(hours(7));
    expect(await audited()).toEqual({ differences: [], differing: 0, sealsBehind: 0 });
    expect(await seals()).toEqual([sessionSeal(45, 2)]);
    await agrees();
  });

  test("a request that ran for days is settled into a window that nobody looks at any more, and raises no alarm", async () => {
    const late = await admitted();
    await moveOn(50);
    await audited();
    await book.run([settleOf(late, 40)]);
    await store.setClock(hours(51));
    expect(await audited()).toEqual({ differences: [], differing: 0, sealsBehind: 0 });
    await agrees();
  });

  test("a total that is changed is found: of an ended window by the next look, of a sealed one by every check", async () => {
    await served(5);
    await moveOn(6);
    await tamper("true");
    const wrong = { kind: "session", used: 6, recorded: 5 } as const;
    expect(await audited()).toMatchObject({ differences: [wrong], differing: 1, sealsBehind: 1 });
    expect(await seals()).toEqual([]);
    await store.db.query("update usage_past set used = used - 1 where kind = 'session'");
    await store.setClock(hours(7));
    expect(await audited()).toMatchObject({ differing: 0, sealsBehind: 0 });
    await moveOn(80);
    await tamper("used = 5");
    expect(await audited()).toMatchObject({ differing: 0 });
    expect(await book.check()).toMatchObject([wrong]);
    expect(await book.check(true)).toMatchObject([wrong]);
  });

  test("a count of running requests that is not that of their holds is found, also where it is missing", async () => {
    await admitted();
    for (const [change, held] of [
      ["update usage_now set running = running + 1", 2],
      ["delete from usage_now", 0],
    ] as const) {
      await store.db.query(`${change} where subject_id = $1`, [bare(organization, "org_")]);
      const wrong = { organizationId: organization, subjectId: null, kind: "running" as const, startsAt: null };
      const found = { ...wrong, used: 0, recorded: 0, held, holding: 1 };
      expect(await book.check()).toContainEqual(found);
      expect((await audited()).differences).toContainEqual(found);
      await store.db.exec("update usage_audit set looked_at = null");
    }
  });

  test("what is recorded of a sealed window, because the clock stepped back, stands beside the seal and is sealed too", async () => {
    const weekSeal = async () => (await seals()).find(({ kind }) => kind === "week");
    await served(5);
    await moveOn(8 * 24);
    await audited();
    expect(await weekSeal()).toMatchObject({ recorded: 5, records: 1 });
    await store.setClock(hours(1));
    await served(30);
    await agrees();
    expect(await audited()).toMatchObject({ differing: 0 });
    expect(await weekSeal()).toMatchObject({ recorded: 5, records: 1 });
    await agrees();
    await moveOn(8 * 24 + 6);
    expect(await audited()).toEqual({ differences: [], differing: 0, sealsBehind: 0 });
    expect(await weekSeal()).toMatchObject({ recorded: 35, records: 2 });
    await agrees();
  });

  test("a node whose clock is two hours slow, or years off, raises no alarm", async () => {
    for (const shift of [-2, 2, -24 * 365 * 20]) {
      await served(5, { requestId: requestIdAt(new Date(Date.now() + shift * 3_600_000)) });
    }
    await audited();
    await moveOn(6);
    expect(await audited()).toEqual({ differences: [], differing: 0, sealsBehind: 0 });
    expect(await seals()).toEqual([sessionSeal(15, 3)]);
    await agrees();
  });

  test("a roll-up that is under way delays a look, and does not take its place", async () => {
    await served(5);
    await moveOn(6);
    await audited();
    await tamper("true");
    await store.db.exec("update usage_audit set looked_at = null");
    const rolling = await store.db.lane({});
    await rolling.query("select pg_advisory_lock(hashtextextended('usage_audit', 0))");
    const looking = book.audit();
    await Bun.sleep(300);
    await rolling.query("select pg_advisory_unlock(hashtextextended('usage_audit', 0))");
    expect((await looking).differences).toHaveLength(1);
    await rolling.close();
  });

  test("one node looks in an hour, and the others learn what it found", async () => {
    await served(5);
    await moveOn(6);
    await tamper("true");
    expect((await audited()).differences).toHaveLength(1);
    const other = ledger(store.db, { recovery: "checkpoint" });
    expect(await other.audit()).toEqual({ differences: [], differing: 1, sealsBehind: 1 });
    await store.setClock(hours(7));
    expect((await other.audit()).differences).toHaveLength(1);
    // A clock that was ahead prevents no audit.
    await store.setClock(hours(2));
    await store.db.query("update usage_past set used = used - 1 where kind = 'session'");
    expect(await other.audit()).toMatchObject({ differing: 0 });
    await other.close();
  });

  test("a book that was restored on another server is read on from where it was", async () => {
    await onOldServer(store);
    await served(5);
    await moveOn(6);
    await audited();
    await served(30);
    await restoredElsewhere(store);
    // On the new server, the audit reads the records of the dump that were not read yet, and those written before its
    // first pass there.
    await served(7);
    await book.rollUp();
    await served(1);
    await store.setClock(hours(12));
    expect(await audited()).toMatchObject({ differing: 0 });
    expect(await isAllRead(store)).toBeTrue();
    expect(await seals()).toEqual([sessionSeal(5, 1)]);
    await agrees();
  });

  test("records are read once each, however small the pieces are", async () => {
    await audited();
    for (const nanos of [1, 20, 300]) await served(nanos);
    while (!(await isAllRead(store))) await store.db.query("select usage_audit_read(1)");
    await moveOn(6);
    expect(await audited()).toMatchObject({ differing: 0 });
    expect(await seals()).toEqual([sessionSeal(321, 3)]);
  });

  if (name === "postgres") {
    test("a settlement that is under way during a look is read by the next, whatever its clock said", async () => {
      const slow = await admitted();
      const lane = await (await store.another()).lane({});
      await lane.query("begin");
      await lane.query(batchCall, encodeBatch([settleOf(slow, 40)]));
      // Another organization's settlement comes later than this one, and the audit reads it first.
      const elsewhere = organization;
      organization = await store.newOrganization();
      await served(1);
      await store.setClock(hours(6));
      expect(await book.audit()).toMatchObject({ differing: 0 });
      await lane.query("commit");
      await lane.close();
      organization = elsewhere;
      await moveOn(7);
      expect(await audited()).toMatchObject({ differing: 0 });
      expect(await seals()).toEqual([sessionSeal(40, 1)]);
      await agrees();
    });
  }
});

// Protection of the ledger's tables against an administrator of the database: each hourly pass of the audit (a run over
// the new records) writes a hash of the records into the chain of the audit log. So a forgery is found even if it is
// consistent everywhere else (docs/design/metering.md, Passes in the chain).
import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type AuditLine, auditShown, chainBeginning, chainBreak } from "../../../src/admin/store/audit-chain.ts";
import { bare } from "../../../src/core/store/ids.ts";
import type { LedgerDifference } from "../../../src/features/upkeep/store/books.ts";
import { readAuditHead } from "../../../src/stores/postgres/acts.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { allRead, emptyBooks, onOldServer, restoredElsewhere } from "./books.ts";
import { admitOf, hours, ledgerForTests, noon } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

/**
 * SQL that recomputes the nanos by kind of token in a table of roll-ups (sums of records) from the charges that the
 * records have now.
 */
function asRecorded(table: string, span: string): string {
  const kinds = ["input_nanos", "cached_input_nanos", "cache_write_nanos", "output_nanos"];
  const sums = kinds.map((kind) => `sum(h.${kind})::bigint as ${kind}`).join(", ");
  return (
    `update ${table} u set ${kinds.map((kind) => `${kind} = r.${kind}`).join(", ")} from (` +
    `select date_bin('${span}', h.starts_at, '2000-01-01Z') as starts_at, ${sums} ` +
    "from usage_recorded_hours(0, 9223372036854775807, '-infinity', 'infinity') h where h.organization_id = $3 group by 1" +
    ") r where u.organization_id = $3 and u.starts_at = r.starts_at"
  );
}

describe.each(databaseKinds(import.meta.path))("passes in the chain on %s", (name) => {
  const { store, book, serve } = ledgerForTests(name, { isBalanced: false });
  let organization: string;
  beforeEach(async () => {
    await emptyBooks(store);
    await store.setClock(noon);
    organization = await store.newOrganization();
  });

  const served = async (nanos: number) => {
    const command = admitOf(organization, { lease_ms: 100 * 3_600_000 });
    await serve(command, nanos);
    return command.requestId;
  };
  let looks = 0;
  const pass = async () => {
    await allRead(store, book);
    looks += 1;
    await store.setClock(hours(looks));
    await book.audit();
  };
  const entries = async () =>
    (await administration(store.db).listAudit({ order: "oldest", limit: 1_000 })).filter(
      ({ action }) => action === "usage.seal",
    );
  const passes = (differences: readonly LedgerDifference[]) =>
    differences.flatMap(({ kind, entry, used, recorded, held, holding }) =>
      kind === "pass" || kind === "chain" ? [[kind, entry, used, recorded, held, holding]] : [],
    );
  /** Changes a request's charge consistently, in every table where it counts. */
  const forge = async (requestId: string, by: number) => {
    const id = bare(requestId, "req_");
    const subject = bare(organization, "org_");
    const changes = [
      "update usage_record set charged = charged + $1, session_used_after = session_used_after + $1, " +
        "week_used_after = week_used_after + $1, month_used_after = month_used_after + $1 where request_id = $2",
      "update usage_now set used = array[used[1] + $1, used[2] + $1, used[3] + $1, used[4]] where subject_id = $3",
      "update usage_tally set recorded = recorded + $1 where subject_id = $3 and kind <> 'extra'",
      "update usage_hour set nanos = nanos + $1 where organization_id = $3 and " +
        "starts_at = (select date_bin('1 hour', admitted_at, '2000-01-01Z') from usage_record where request_id = $2)",
      "update usage_day set nanos = nanos + $1 where organization_id = $3",
      asRecorded("usage_hour", "1 hour"),
      asRecorded("usage_day", "1 day"),
      "delete from usage_total",
      "insert into usage_total select * from usage_totals_of('-infinity', 'infinity')",
    ];
    await store.db.transaction(async (tx) => {
      for (const change of changes)
        await tx.query(
          change.replaceAll("$1", `(${by})`).replaceAll("$2", `'${id}'::uuid`).replaceAll("$3", `'${subject}'::uuid`),
        );
    });
  };

  test("each pass is one entry, with what its records were; a pass without any is none", async () => {
    await served(700);
    await served(30);
    await pass();
    await pass();
    await served(5);
    await pass();
    const said = (await entries()).map(({ details }) => details as { from: number; until: number; months: object });
    expect(said.map(({ months }) => Object.values(months))).toEqual([
      [{ records: 2, nanos: 730, hash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      [{ records: 1, nanos: 5, hash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    ]);
    expect(said[1]!.from).toBe(said[0]!.until);
    expect(await book.check(true)).toEqual([]);
  });

  test("a charge that is changed consistently everywhere is found, and the pass is named", async () => {
    await served(3);
    await pass();
    const forged = await served(700);
    await served(30);
    await pass();
    const [, second] = await entries();
    await forge(forged, -690);
    expect(await book.check()).toEqual([]);
    expect(await book.check(true)).toMatchObject([
      ...[{ kind: "pass", entry: second!.number, startsAt: second!.at, organizationId: null }],
    ]);
    expect(passes(await book.check(true))).toEqual([["pass", second!.number, 730, 40, 2, 2]]);
    await forge(forged, 690);
    expect(await book.check(true)).toEqual([]);
  });

  test("every column counts, a record that is gone or was put in, and a pass that is left out", async () => {
    const id = bare(await served(5), "req_");
    await pass();
    const isFound = async (change: string, back: string) => {
      await store.db.exec(change);
      expect([change, passes(await book.check(true)).length > 0]).toEqual([change, true]);
      await store.db.exec(back);
      expect(passes(await book.check(true))).toEqual([]);
    };
    const columns = await store.db.query<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = 'usage_record'::regclass and attnum > 0 and not attisdropped and attname <> 'request_id'`,
    );
    const others: Record<string, string> = {
      ...{ uuid: "gen_random_uuid()", text: "'other'", boolean: "not stream", bigint: "1000003", integer: "77" },
      ...{ "timestamp with time zone": "'2026-01-01T00:00:00Z'", jsonb: `'{"other": 1}'` },
      ...{ usage_billing: "'extra'", "uuid[]": "array[gen_random_uuid()]" },
    };
    const other = id.slice(0, -1) + (id.endsWith("0") ? "1" : "0");
    await store.db.exec("create table kept as select * from usage_record");
    const back = "delete from usage_record; insert into usage_record select * from kept";
    const digest = async () => (await store.db.query("select digests from usage_digests(0, 4000000000)"))[0];
    const was = await digest();
    for (const { name, type } of columns) {
      await store.db.exec(`update usage_record set ${name} = ${name === "recovered" ? "true" : others[type]}`);
      expect([name, await digest()]).not.toEqual([name, was]);
      await store.db.exec(back);
    }
    expect(await digest()).toEqual(was);
    await isFound("update usage_record set model = 'other'", back);
    await isFound("delete from usage_record", back);
    const another =
      "insert into usage_record select * from jsonb_populate_record(null::usage_record, (select to_jsonb(k)";
    await isFound(`${another} || jsonb_build_object('request_id', '${other}') from kept k))`, back);
    await isFound(`${another} || jsonb_build_object('request_id', '${other}', 'xact', 1) from kept k))`, back);
    await store.db.exec("drop table kept");

    // An administrator of the database marks records as sealed that were not checked.
    await served(9);
    await allRead(store, book);
    await isFound("update usage_audit set sealed_until = read_until", "update usage_audit set sealed_until = 0");
  });

  test("an entry that was rewritten breaks the chain, and a chain that was rewritten breaks the head that was kept", async () => {
    const forged = await served(700);
    await pass();
    const kept = await readAuditHead(store.db);
    await served(1);
    await pass();
    await forge(forged, -690);
    await store.db.exec("update audit_entry set details = jsonb_set(details, '{months}', '{}') where number = 1");
    expect(passes(await book.check(true))).toEqual([["chain", 1, 0, 0, 0, 0]]);
    // The whole chain is rewritten, by somebody who has every right on the database.
    await store.db.exec(
      "truncate audit_entry; update audit_head set number = 0, hash = decode(repeat('00', 32), 'hex');" +
        "update usage_audit set looked_at = null, sealed_until = 0",
    );
    await pass();
    expect(passes(await book.check(true))).toEqual([]);
    const lines: AuditLine[] = (await administration(store.db).listAudit({ order: "oldest", limit: 9 })).map(
      auditShown,
    );
    expect(chainBreak({ number: 0, hash: chainBeginning }, lines)).toHaveProperty("head");
    expect(lines.map(({ hash }) => hash)).not.toContain(kept.hash);
  });

  test("records that are no longer kept are no difference, unless a part of their month is", async () => {
    await served(5);
    const gone = await served(7);
    await pass();
    // A month's records are kept until 13 months after its end.
    const now = new Date();
    const end_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 14);
    const checkedAt = async (ms: number) => {
      await store.setClock(new Date(ms));
      return passes(await book.check(true));
    };
    await store.db.query(`delete from usage_record where request_id = '${bare(gone, "req_")}'`);
    expect(await checkedAt(end_ms)).toHaveLength(1);
    await store.db.exec("delete from usage_record");
    expect(await checkedAt(end_ms - 1)).toHaveLength(1);
    expect(await checkedAt(end_ms)).toEqual([]);
    expect(await checkedAt(noon.getTime())).toHaveLength(1);
  });

  test("a book that was restored elsewhere agrees with its chain, whatever is recorded there since", async () => {
    await onOldServer(store);
    await served(5);
    await pass();
    await restoredElsewhere(store);
    await served(6);
    await pass();
    expect((await entries()).length).toBeGreaterThan(1);
    expect(await book.check(true)).toEqual([]);
  });
});

/** Operations on one key, team or person read only the rows of these, however many others the organization has. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { rollUp } from "../../../src/stores/postgres/audit.ts";
import type { Transaction } from "../../../src/stores/postgres/database.ts";
import { limits } from "../../../src/stores/postgres/limits.ts";
import { until } from "../../harness/until.ts";
import { type Owned, openDatabase } from "./databases.ts";

setDefaultTimeout(60_000);

const others = 3_000;
const rows_max = 40;
let owned: Owned;
let key: string;
let organization: string;

beforeAll(async () => {
  owned = await openDatabase();
  const { db } = owned;
  const [made] = await db.query<{ id: string }>(
    "insert into organization (id, slug, name, anchor_at, has_subjects) values (gen_random_uuid(), 'many', 'Many', '2026-01-31Z', true) returning id",
  );
  organization = made!.id;
  await db.query(
    `with made as (
      insert into api_key (id, organization_id, name, scopes, created_at, created_by)
      select gen_random_uuid(), $1::uuid, 'key ' || n, '{inference:create}', now(), 'test' from generate_series(1, $2::int) n
      returning id
    ), counted as (
      insert into usage_subject (subject_id, organization_id, month_nanos, counted_from, summed_at)
      select id, $1, 5, now(), now() from made
    ), noted as (
      insert into limit_change (subject_id, number) select id, row_number() over () from made
    )
    insert into limit_value (subject_id, organization_id, kind, month_nanos, set_at, set_by)
    select id, $1, 'own', 5, now(), 'test' from made`,
    [organization, others],
  );
  await db.query("update limit_change_head set number = $1", [others]);
  await db.query(
    `with made as (
      insert into person (id, kind, issuer, subject, subject_hash, created_at, confirmed_at)
      select gen_random_uuid(), 'person', 'https://issuer.example', n::text, sha256(n::text::bytea), now(), now()
      from generate_series(1, $2::int) n returning id
    )
    insert into membership (person_id, organization_id, role, scopes, source, created_at, created_by)
    select id, $1, 'member', '{inference:create}', 'hand', now(), 'test' from made`,
    [organization, others],
  );
  await db.query("analyze");
  [{ id: key }] = (await db.query<{ id: string }>("select id from api_key limit 1")) as [{ id: string }];
});
afterAll(() => owned.drop());

/** The number of rows of all tables that the work reads, with the query plans of a long-lived session. */
function rowsRead(work: (tx: Transaction) => Promise<unknown>): Promise<number> {
  return owned.db.transaction(async (tx) => {
    await tx.query("set local plan_cache_mode = force_generic_plan");
    const before = await rowsOf(tx);
    await work(tx);
    return (await rowsOf(tx)) - before;
  });
}

/** The number of rows that the session has read so far, including those of earlier work. */
async function rowsOf(tx: Transaction): Promise<number> {
  const [read] = await tx.query<{ rows: number }>(
    "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int as rows from pg_stat_xact_user_tables",
  );
  return read!.rows;
}

test.each([
  ["a key", () => key],
  [
    "a person",
    async () =>
      (
        await owned.db.query<{ id: string }>("select usage_member($1, person_id) as id from membership limit 1", [
          organization,
        ])
      )[0]!.id,
  ],
] as const)("the limits of %s are given to the ledger", async (_, subject) => {
  const id = await subject();
  await owned.db.query("update limit_value set month_nanos = 6 where subject_id = $1", [id]);
  const rows = await rowsRead((tx) => tx.query("select limits_refresh($1, array[$2::uuid])", [organization, id]));
  expect(rows).toBeGreaterThan(0);
  expect(rows).toBeLessThanOrEqual(rows_max);
});

test("the limits in force of each of a page are read", async () => {
  const page =
    "select f.limits from (select id from api_key limit 2) s, lateral (select * from limits_in_force($1, s.id)) f";
  expect(await rowsRead((tx) => tx.query(page, [organization]))).toBeLessThanOrEqual(rows_max);
});

test("a node hears whose limits have changed", async () => {
  const [head] = await owned.db.query<{ number: number }>("select number from limit_change_head");
  const rows = await rowsRead(async (tx) => {
    const changes = await limits({ ...owned.db, query: tx.query }).changes(head!.number - 1);
    expect(changes.subjects).toHaveLength(1);
  });
  expect(rows).toBeLessThanOrEqual(rows_max);
});

/** The number of rows that this transaction has written so far. */
async function rowsWritten(tx: Transaction): Promise<number> {
  const [written] = await tx.query<{ rows: number }>(
    "select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int as rows from pg_stat_xact_user_tables",
  );
  return written!.rows;
}

test("a default for keys that were never limited is one change, and writes three rows for each key", async () => {
  const { db } = owned;
  const keys = 500;
  const [made] = await db.query<{ id: string }>(
    `insert into organization (id, slug, name, anchor_at)
     values (gen_random_uuid(), 'new', 'New', '2026-01-31Z') returning id`,
  );
  await db.query(
    `with made as (
      insert into api_key (id, organization_id, name, scopes, created_at, created_by)
      select gen_random_uuid(), $1::uuid, 'key ' || n, '{inference:create}', now(), 'test' from generate_series(1, $2::int) n
    )
    insert into limit_value (subject_id, organization_id, kind, month_nanos, set_at, set_by)
    values ($1, $1, 'keys', 5, now(), 'test')`,
    [made!.id, keys],
  );
  await db.transaction(async (tx) => {
    const numberOf = async () =>
      (await tx.query<{ number: number }>("select number from limit_change_head"))[0]!.number;
    const [number, before] = [await numberOf(), await rowsWritten(tx)];
    const unsummed = await tx.query("select limits_refresh($1, null)", [made!.id]);
    expect(unsummed).toHaveLength(keys);
    // Three rows for each key: the subject, the time from which its usage is counted, and the change that notifies
    // nodes. The organization has a few more.
    expect((await rowsWritten(tx)) - before).toBeLessThanOrEqual(3 * keys + 5);
    expect(await numberOf()).toBe(number + 1);
    const told = await tx.query(
      "select from limit_change c join api_key k on k.id = c.subject_id where k.organization_id = $1 and c.number = $2",
      [made!.id, number + 1],
    );
    expect(told).toHaveLength(keys);
  });
});

/** Records an ended request of each key that many days ago. Each day is a separate transaction. */
function used(keys: readonly string[], daysAgo: number): Promise<unknown> {
  return owned.db.query(
    `insert into usage_record (request_id, organization_id, key_id, operation, model, stream, price_input,
       price_cached_input, price_cache_write, price_output, source, held, charged, uncharged, admitted_at, ended_at,
       outcome, recovered, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
       usage_source, month_starts_at, month_ends_at)
     select gen_random_uuid(), $1, key::uuid, 'chat.completions', 'm', false, 0, 0, 0, 0, 'plan', 0, 5, 0, at, at,
       'completed', false, 0, 0, 0, 0, 0, 'counted', date_trunc('day', now()) - interval '29 days', date_trunc('day', now()) + interval '1 day'
     from unnest($2::text[]) key, (select now() - make_interval(days => $3::int) as at) t`,
    [organization, keys, daysAgo],
  );
}

test("a first limit reads the records of days on which what it limits was used, and no others", async () => {
  const { db } = owned;
  await db.exec(`create table usage_record_of_test partition of usage_record default;
    alter index usage_record_of_test_xact_idx set (pages_per_range = 1);
    reindex index usage_record_of_test_xact_idx`);
  const [busy, rare, unused] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
  for (let day = 28; day >= 0; day--)
    await used([...Array<string>(100).fill(busy), ...(day === 14 ? [rare, rare] : [])], day);
  await until(async () => {
    await rollUp(db);
    return (await db.query("select 1 from usage_audit a join usage_record r on r.xact >= a.read_until")).length === 0;
  });
  await db.exec("vacuum (analyze) usage_record_of_test");
  for (const [key, nanos, records_max] of [
    [busy, 14_500, 4_000],
    [rare, 10, 400],
    [unused, null, 100],
  ] as const) {
    await db.query(
      "insert into usage_subject (subject_id, organization_id, month_nanos, counted_from) values ($1, $2, 5, now())",
      [key, organization],
    );
    const rows = await rowsRead((tx) => tx.query("select usage_sum_earlier($1)", [key]));
    expect(rows).toBeLessThanOrEqual(records_max);
    const summed = await db.query<{ nanos: number }>("select nanos from usage_opening where subject_id = $1", [key]);
    expect(summed[0]?.nanos ?? null).toBe(nanos);
  }
});

/**
 * Each key is looked up about once a second, so Postgres plans the look-up a few times per session, and then keeps the
 * plan.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";

setDefaultTimeout(60_000);

const keys = 1_000;
let db: Database;
let drop: () => Promise<void>;
let hashes: Uint8Array[];

beforeAll(async () => {
  const fresh = await migratedDatabase();
  ({ drop } = fresh);
  // The connection pool has one session, so that the test sees all prepared statements.
  db = await serverDatabase(fresh.url, { connections_max: 1 });
  const [organization] = await db.query<{ id: string }>(
    "insert into organization (id, slug, name, anchor_at) values (gen_random_uuid(), 'many', 'Many', '2026-01-31Z') returning id",
  );
  await db.query(
    `with made as (
      insert into api_key (id, organization_id, name, scopes, created_at, created_by)
      select gen_random_uuid(), $1::uuid, 'key ' || n, '{inference:create}', now(), 'test' from generate_series(1, $2::int) n
      returning id
    )
    insert into key_secret (hash, key_id, number, prefix, suffix, created_at)
    select sha256(id::text::bytea), id, 1, 'slk_1234', '5678', now() from made`,
    [organization!.id, keys],
  );
  hashes = (await db.query<{ hash: Uint8Array }>("select hash from key_secret limit 200")).map(({ hash }) => hash);
});
afterAll(() => db.close().finally(drop));

async function planned(): Promise<{ anew: number; kept: number }> {
  const [counts] = await db.query<{ anew: number; kept: number }>(
    `select coalesce(max(custom_plans), 0)::int as anew, coalesce(sum(generic_plans), 0)::int as kept
     from pg_prepared_statements where statement ~ '"key_secret"."hash" (in|= any) '`,
  );
  return counts!;
}

for (const when of ["without statistics", "with statistics"])
  test(`${when}, look-ups of one, a few and many keys keep their plans`, async () => {
    if (when === "with statistics") await db.query("analyze");
    const { credential } = directory(db);
    for (let round = 0; round < 20; round++)
      for (const count of [1, 2, 3, 7, 11, 70]) {
        const some = hashes.slice(round, round + count);
        const found = await Promise.all(some.map((hash) => credential(hash)));
        expect(found.filter((one) => one?.organization.slug === "many")).toHaveLength(count);
      }
    const { anew, kept } = await planned();
    // Postgres plans a statement for its actual parameters five times before it considers a generic plan.
    expect(anew).toBeLessThanOrEqual(5);
    expect(kept).toBeGreaterThan(60);
  });

test("a look-up of many keys finds each of them, and none that does not exist", async () => {
  const { credential } = directory(db);
  const found = await Promise.all([...hashes, new Uint8Array(32)].map((hash) => credential(hash)));
  expect(found.filter((one) => one !== null)).toHaveLength(hashes.length);
  expect(found.at(-1)).toBeNull();
});

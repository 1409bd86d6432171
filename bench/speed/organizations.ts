// Creates the organizations of a bench in the database, in one statement.

import type { Sql } from "postgres";
import { hashKey, key_random_bytes, newKey } from "../../src/core/auth/credential.ts";

/** Creates organizations on the plan `on` with one key each, and returns the keys. */
export async function organizations(sql: Sql, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, () => newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes))));
  const hashes = keys.map((key) => hashKey(key).toHex());
  await sql`
    with made as (
      select gen_random_uuid() as org, gen_random_uuid() as key, hash, n
      from unnest(${hashes}::text[]) with ordinality h (hash, n)
    ), owners as (
      insert into organization (id, slug, name, plan, anchor_at)
      select org, 'many-' || n, 'Bench', 'on', '2026-01-31Z' from made
    ), owned as (
      insert into api_key (id, organization_id, name, scopes) select key, org, 'bench', '{inference:create}' from made
    )
    insert into key_secret (key_id, number, hash, prefix, suffix)
    select key, 1, decode(hash, 'hex'), 'slk_abcd', 'wxyz' from made`;
  return keys;
}

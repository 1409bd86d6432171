/**
 * Reads the secrets of keys that may be used. The secrets of thousands of keys come as one value, because a row for
 * each key would take ten times as long.
 */
import { uuid_max } from "../../core/store/ids.ts";
import { type ExistingSecretsStore, fingerprint_bytes } from "../../features/secrets/store/existing-secrets.ts";
import type { Querying } from "./database.ts";

const piece_keys_max = 5_000;

export function existingSecretsIn(db: Querying, keys_max = piece_keys_max): ExistingSecretsStore {
  return {
    async piece(from) {
      const [row] = await db.query<{ fingerprints: Uint8Array | null; next: string | null }>(reading, [
        from ?? uuid_max,
        keys_max,
        fingerprint_bytes,
      ]);
      return { fingerprints: row!.fingerprints ?? new Uint8Array(), next: row!.next };
    },
  };
}

/**
 * Reads keys and their secrets in pieces of a few thousand keys, the newest first, backwards along the index of each
 * table. Key ids rise with time, so the secrets of a piece are near each other. The planner does not know this: with a
 * plain join it would read all secrets for each piece.
 */
const reading = `
  with piece as materialized (
    select id from api_key where id < $1::uuid and revoked_at is null order by id desc limit $2::integer
  ), oldest as materialized (
    select id from piece order by id limit 1
  )
  select
    (select id from oldest) as next,
    (
      select string_agg(substring(hash for $3::integer), ''::bytea)
      from key_secret
      where key_id >= (select id from oldest) and key_id < $1::uuid and key_id in (select id from piece)
        and revoked_at is null and (expires_at is null or expires_at > store_now())
    ) as fingerprints`;

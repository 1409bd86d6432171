/**
 * How long keys live: one definition for authentication and for lists (docs/design/keys.md, Keys end by policy). The
 * expressions are for queries that join `api_key` with its `organization`. A day has 24 hours.
 */
import { type SQL, sql } from "drizzle-orm";
import type { KeyState } from "../../admin/store/key.ts";
import { useNoted_ms } from "../../core/store/directory.ts";

/**
 * SQL for an organization's policy in days. Null for a device's sign-in and for a key of identity tokens: these
 * policies do not end them, since their tokens end by themselves.
 */
const days = (column: string) => `case api_key.kind when 'key' then organization.${column} * interval '24 hours' end`;
const lifetimeAfter = (made: string) => `(${made} + ${days("key_lifetime_max_days")})`;
/**
 * SQL for the end of an unused key. A new secret counts as a use, so that a rotated key stays alive. `greatest` ignores
 * null.
 */
const unusedAfter = (made: string) =>
  `(greatest(api_key.last_used_at, ${made}) + ${days("key_unused_max_days")} + interval '${useNoted_ms} ms')`;

/** SQL for when the secret that is looked up ends because of its age, and when because it is not used. */
export const secretEnds = {
  lifetimeAt: sql.raw(lifetimeAfter("key_secret.created_at")) as SQL<Date | null>,
  unusedAt: sql.raw(unusedAfter("key_secret.created_at")) as SQL<Date | null>,
};

const newest = "(select max(s.created_at) from key_secret s where s.key_id = api_key.id)";
const lifetimeAt = lifetimeAfter(newest);
const unusedAt = unusedAfter(newest);

/** SQL for when a device's sign-in ends because the issuer cannot be asked again. Null for other keys. */
const signInEndsAt =
  "case api_key.kind when 'sign-in' then (select s.ends_at from sign_in s where s.key_id = api_key.id) end";
const endsByAge = `least(api_key.expires_at, ${lifetimeAt}, ${signInEndsAt})`;

/** SQL for the state and the end of a key, by its newest secret. `least` ignores null. */
export const keyLife = {
  state: sql.raw(
    `case when api_key.revoked_at is not null then 'revoked'
       when ${endsByAge} <= store_now() then 'expired'
       when ${unusedAt} <= store_now() then 'unused' else 'active' end`,
  ) as SQL<KeyState>,
  endsAt: sql.raw(`coalesce(api_key.revoked_at, least(${endsByAge}, ${unusedAt}))`) as SQL<Date | null>,
};

/**
 * SQL for when a key expires, by its own date or its newest secret's age; null: never. For queries that join `api_key`
 * with its `organization`.
 */
export const expiresAt = `least(api_key.expires_at, ${lifetimeAt})`;

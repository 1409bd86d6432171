/** Refresh tokens over SQL: each is used once, by one caller at a time, and a second use is recognised. */
import { idOf } from "../../core/store/ids.ts";
import type { RefreshBegun, Refreshed } from "../../features/identity/store/sign-ins.ts";
import { storeNow } from "./acts.ts";
import type { Transaction } from "./database.ts";

interface Times {
  claim: string;
  claim_ms: number;
  repeat_ms: number;
}

interface Row {
  keyId: string;
  personId: string;
  organizationId: string;
  issuer: string;
  tokens: Uint8Array | null;
  isOver: boolean;
  isClaimed: boolean;
}

type Begun = Exclude<RefreshBegun, { is: "reused" }> | { is: "reused"; keyId: string };

/**
 * Begins the use of a token. If the token was used before, `keyId` is the bare UUID of its sign-in, which the caller
 * has to end.
 */
export async function beginRefresh(tx: Transaction, hash: Uint8Array, times: Times): Promise<Begun> {
  // The sign-in is locked before the token is read, so that a caller who waited for the lock sees what the caller
  // before has done.
  const [row] = await tx.query<Row>(
    `select s.key_id as "keyId", s.person_id as "personId", k.organization_id as "organizationId", s.issuer, s.tokens,
       s.ended_at is not null or k.revoked_at is not null or coalesce(s.ends_at <= store_now(), false)
         or p.suspended_at is not null or p.forgotten_at is not null
         or coalesce(p.not_before >= s.created_at, false) as "isOver",
       coalesce(s.refreshing_until > store_now(), false) as "isClaimed"
     from sign_in s join api_key k on k.id = s.key_id join person p on p.id = s.person_id
     where s.key_id = (select key_id from refresh_token where hash = $1) for update of s`,
    [hash],
  );
  if (!row || row.isOver) return { is: "unknown" };
  const [token] = await tx.query<{ usedAt: Date | null; successor: Uint8Array | null }>(
    `select used_at as "usedAt", successor from refresh_token where hash = $1`,
    [hash],
  );
  if (!token) return { is: "unknown" };
  const keyId = idOf(row.keyId, "key_");
  if (token.usedAt) {
    const age_ms = (await storeNow(tx)).getTime() - token.usedAt.getTime();
    return age_ms <= times.repeat_ms && token.successor
      ? { is: "repeated", keyId, successor: token.successor }
      : { is: "reused", keyId: row.keyId };
  }
  if (row.isClaimed) return { is: "busy" };
  await tx.query(
    `update sign_in set refreshing_by = $2, refreshing_until = store_now() + $3::bigint * interval '1 ms'
     where key_id = $1`,
    [row.keyId, times.claim, times.claim_ms],
  );
  const { issuer, tokens } = row;
  return {
    is: "begun",
    claim: times.claim,
    keyId,
    personId: idOf(row.personId, "per_"),
    organizationId: idOf(row.organizationId, "org_"),
    issuer,
    tokens,
  };
}

/** Marks the token as used and adds its successor. Returns false if the token was used before. */
export async function addSuccessor(
  tx: Transaction,
  id: string,
  { usedHash, nextHash, successor }: Pick<Refreshed, "usedHash" | "nextHash" | "successor">,
  at: Date,
): Promise<boolean> {
  const used = await tx.query(
    "update refresh_token set used_at = $2, successor = $3 where hash = $1 and used_at is null returning key_id",
    [usedHash, at, successor],
  );
  if (used.length === 0) return false;
  await addRefreshToken(tx, id, nextHash, at);
  return true;
}

export async function addRefreshToken(tx: Transaction, id: string, hash: Uint8Array, at: Date): Promise<void> {
  await tx.query("insert into refresh_token (hash, key_id, created_at) values ($1, $2, $3)", [hash, id, at]);
}

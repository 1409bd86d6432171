/**
 * Secrets of keys and of operators, stored as their hashes, with rotation and revocation. For both kinds the code is the
 * same except for the table of the secrets and the word in the audit log. Which port accepts which kind is decided by
 * the look-ups (directory.ts, operators.ts). Before changing secrets, a caller must lock the row of their owner.
 */
import { sql } from "drizzle-orm";
import { type Revocation, type Rotation, secretOfRow } from "../../admin/store/credential.ts";
import type { NewSecret } from "../../core/store/directory.ts";
import { bare } from "../../core/store/ids.ts";
import { type Changeable, changeAnyVersion } from "./change.ts";
import type { Database, Querying, Transaction } from "./database.ts";

export const keySecrets = secretsIn("key_secret", "key_id", "api_key.id");
export const operatorSecrets = secretsIn("operator_secret", "operator_id", "operator.id");

/** The hash of the newest working secret of a key; null if there is none. */
export async function newestSecret(tx: Querying, keyId: string): Promise<Uint8Array | null> {
  const [row] = await tx.query<{ hash: Uint8Array }>(
    `select hash from key_secret where key_id = $1 and revoked_at is null
       and (expires_at is null or expires_at > store_now())
     order by number desc limit 1`,
    [bare(keyId, "key_")],
  );
  return row?.hash ?? null;
}

/**
 * The operations on one table of secrets. `owner`: its column with the owner's id. `of`: SQL for that id in a query of
 * owners.
 */
function secretsIn(table: string, owner: string, of: string) {
  return {
    /** Adds a secret, with the next number. */
    async add(
      tx: Querying,
      id: string,
      { hash, prefix, suffix }: NewSecret,
      at: Date,
      expiresAt: Date | null = null,
    ): Promise<void> {
      await tx.query(
        `insert into ${table} (${owner}, number, hash, prefix, suffix, created_at, expires_at)
         select $1::uuid, coalesce(max(number), 0) + 1, $2::bytea, $3::text, $4::text, $5::timestamptz, $6::timestamptz
         from ${table} where ${owner} = $1::uuid`,
        [id, hash, prefix, suffix, at, expiresAt],
      );
    },

    /** Sets the end of the secrets. A secret that ends sooner, because of an earlier rotation, keeps that end. */
    async endAt(tx: Querying, id: string, at: Date): Promise<void> {
      const ending = `update ${table} set expires_at = least(expires_at, $2::timestamptz)`;
      await tx.query(`${ending} where ${owner} = $1::uuid and revoked_at is null`, [id, at]);
    },

    /** Revokes all secrets but the newest. Returns how many it revoked. */
    async revokeReplaced(tx: Querying, id: string, at: Date): Promise<number> {
      const rows = await tx.query(
        `update ${table} set revoked_at = $2::timestamptz where ${owner} = $1::uuid and revoked_at is null
           and number < (select max(number) from ${table} where ${owner} = $1::uuid) returning number`,
        [id, at],
      );
      return rows.length;
    },

    /** SQL for the secrets of the row that a query selects, the newest first. */
    listed: sql
      .raw(
        `(select coalesce(json_agg(json_build_object('prefix', s.prefix, 'suffix', s.suffix, 'created_at', s.created_at,
            'expires_at', s.expires_at, 'revoked_at', s.revoked_at) order by s.number desc), '[]')
          from ${table} s where s.${owner} = ${of})`,
      )
      .mapWith((rows: unknown[]) => rows.map(secretOfRow)),
  };
}

interface SecretOwner {
  id: string;
  revokedAt: Date | null;
}

/** The part of a secret that the audit log may show. */
export const masked = ({ prefix, suffix }: NewSecret): string => `${prefix}…${suffix}`;

/** The operations on credentials of one kind. `end` revokes the whole owner: a key or an operator. */
export function credentialsOf<Row extends SecretOwner>(
  word: "key" | "operator",
  secrets: ReturnType<typeof secretsIn>,
  end: (tx: Transaction, row: Row, at: Date) => Promise<void>,
) {
  return {
    rotate: <Thing extends object, Refused extends string>(
      db: Database,
      kind: Changeable<Row, Thing, Refused>,
      { id, actor, secret, graceEndsAt }: Rotation,
    ) =>
      changeAnyVersion(db, kind, { id, actor }, async (tx, row, at) => {
        if (row.revokedAt) return "revoked" as const;
        if (graceEndsAt) await secrets.endAt(tx, row.id, graceEndsAt);
        await secrets.add(tx, row.id, secret, at);
        const details = { grace_ends_at: graceEndsAt, secret: masked(secret) };
        return { action: `${word}.rotate`, details, secretHash: secret.hash };
      }),

    revoke: <Thing extends object, Refused extends string>(
      db: Database,
      kind: Changeable<Row, Thing, Refused>,
      { id, actor, old }: Revocation,
    ) =>
      changeAnyVersion(db, kind, { id, actor }, async (tx, row, at) => {
        if (old) {
          const count = await secrets.revokeReplaced(tx, row.id, at);
          return count === 0 ? null : { action: `${word}.revoke_old`, details: { secrets: count } };
        }
        if (row.revokedAt) return null;
        await end(tx, row, at);
        return { action: `${word}.revoke`, details: {} };
      }),
  };
}

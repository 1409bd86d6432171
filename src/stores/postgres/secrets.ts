/** Secrets of keys and of operators. A caller that changes them has locked the row of their owner. */
import type { NewSecret, Secret } from "../../core/store/directory.ts";
import { bare } from "../../core/store/ids.ts";
import type { Transaction } from "./database.ts";

type Statements = Pick<Transaction, "query">;
type SecretRow = Secret & { owner: string };

export const keySecrets = secretsIn("key_secret", "key_id");
export const operatorSecrets = secretsIn("operator_secret", "operator_id");

/** The hash of the newest secret of a key that works; null: there is none. */
export async function newestSecret(tx: Statements, keyId: string): Promise<Uint8Array | null> {
  const [row] = await tx.query<{ hash: Uint8Array }>(
    `select hash from key_secret where key_id = $1 and revoked_at is null
       and (expires_at is null or expires_at > store_now())
     order by number desc limit 1`,
    [bare(keyId, "key_")],
  );
  return row?.hash ?? null;
}

function secretsIn(table: string, owner: string) {
  return {
    /** Adds a secret with the next number. */
    async add(
      tx: Statements,
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

    /** Ends the secrets at an instant. One that an earlier rotation ends sooner still ends then. */
    async endAt(tx: Statements, id: string, at: Date): Promise<void> {
      const ending = `update ${table} set expires_at = least(expires_at, $2::timestamptz)`;
      await tx.query(`${ending} where ${owner} = $1::uuid and revoked_at is null`, [id, at]);
    },

    /** Revokes every secret but the newest, and returns how many it revoked. */
    async revokeReplaced(tx: Statements, id: string, at: Date): Promise<number> {
      const rows = await tx.query(
        `update ${table} set revoked_at = $2::timestamptz where ${owner} = $1::uuid and revoked_at is null
           and number < (select max(number) from ${table} where ${owner} = $1::uuid) returning number`,
        [id, at],
      );
      return rows.length;
    },

    /** Reads the secrets of several owners, the newest of each first. */
    async of(db: Statements, ids: readonly string[]): Promise<Map<string, Secret[]>> {
      const rows = await db.query<SecretRow>(
        `select ${owner} as owner, prefix, suffix, created_at as "createdAt", expires_at as "expiresAt",
           revoked_at as "revokedAt"
         from ${table} where ${owner} = any ($1::uuid[]) order by ${owner}, number desc`,
        [ids],
      );
      const secrets = new Map(ids.map((id): [string, Secret[]] => [id, []]));
      for (const { owner: id, ...secret } of rows) secrets.get(id)!.push(secret);
      return secrets;
    },
  };
}

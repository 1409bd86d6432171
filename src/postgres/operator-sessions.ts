/** Sessions of operators in the console, over SQL. */
import type { OperatorSessions } from "../store/operator-sessions.ts";
import { isYoung, noted_ms } from "./browser-sessions.ts";
import type { Database } from "./database.ts";

interface Row {
  hash: Uint8Array;
  secretHash: Uint8Array;
  tokenHash: Uint8Array | null;
  localUser: string | null;
  usedAt: Date;
  readAt: Date;
}

export function operatorSessions(db: Database): OperatorSessions {
  return {
    async begin({ hash, secretHash, of }) {
      const [tokenHash, localUser] = "tokenHash" in of ? [of.tokenHash, null] : [null, of.localUser];
      await db.query(
        `insert into operator_session (hash, secret_hash, token_hash, local_user, created_at, used_at)
         values ($1, $2, $3, $4, store_now(), store_now())`,
        [hash, secretHash, tokenHash, localUser],
      );
    },

    async find(hash, { idle_ms, whole_ms }) {
      const [row] = await db.query<Row>(
        `select hash, secret_hash as "secretHash", token_hash as "tokenHash", local_user as "localUser",
           used_at as "usedAt", store_now() as "readAt"
         from operator_session where hash = $1 and ${isYoung("$2", "$3")}`,
        [hash, idle_ms, whole_ms],
      );
      if (!row) return null;
      const { secretHash, tokenHash, localUser, usedAt, readAt } = row;
      if (readAt.getTime() - usedAt.getTime() >= Math.min(noted_ms, idle_ms / 2))
        await db.query("update operator_session set used_at = store_now() where hash = $1", [hash]);
      return { hash: row.hash, secretHash, of: tokenHash ? { tokenHash } : { localUser: localUser! } };
    },

    async end(hash) {
      return (await db.query("delete from operator_session where hash = $1 returning hash", [hash])).length > 0;
    },

    async forget({ idle_ms, whole_ms }) {
      const rows = await db.query(
        `delete from operator_session where hash in (
           select hash from operator_session where not (${isYoung("$1", "$2")}) limit 1000) returning hash`,
        [idle_ms, whole_ms],
      );
      return rows.length;
    },
  };
}

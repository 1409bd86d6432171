/** Sessions of operators in the console, over SQL. */

import type { SessionLife } from "../../features/identity/store/browser-sessions.ts";
import type { OperatorSession, OperatorSessions } from "../../features/identity/store/operator-sessions.ts";
import { batched } from "./batched.ts";
import { isYoung, noteUse } from "./browser-sessions.ts";
import type { Database } from "./database.ts";

interface Row {
  hash: Uint8Array;
  secretHash: Uint8Array;
  tokenHash: Uint8Array | null;
  localUser: string | null;
  usedAt: Date;
  readAt: Date;
  idle_ms: number;
}

interface Lookup extends SessionLife {
  hash: Uint8Array;
}

/** Finds the sessions that are not too old. */
async function findAll(db: Database, lookups: readonly Lookup[]): Promise<ReadonlyMap<string, OperatorSession>> {
  const rows = await db.query<Row>(
    `select s.hash, s.secret_hash as "secretHash", s.token_hash as "tokenHash", s.local_user as "localUser",
       s.used_at as "usedAt", store_now() as "readAt", a.idle as idle_ms
     from unnest($1::bytea[], $2::bigint[], $3::bigint[]) a (hash, idle, whole)
     join operator_session s on s.hash = a.hash and ${isYoung("a.idle", "a.whole")}`,
    [lookups.map(({ hash }) => hash), lookups.map(({ idle_ms }) => idle_ms), lookups.map(({ whole_ms }) => whole_ms)],
  );
  await noteUse(db, "operator_session", rows);
  return new Map(
    rows.map(({ hash, secretHash, tokenHash, localUser }) => [
      hash.toHex(),
      { hash, secretHash, of: tokenHash ? { tokenHash } : { localUser: localUser! } },
    ]),
  );
}

export function operatorSessions(db: Database): OperatorSessions {
  const find = batched<Lookup, OperatorSession>(
    ({ hash }) => hash.toHex(),
    (lookups) => findAll(db, lookups),
  );
  return {
    async begin({ hash, secretHash, of }) {
      const [tokenHash, localUser] = "tokenHash" in of ? [of.tokenHash, null] : [null, of.localUser];
      await db.query(
        `insert into operator_session (hash, secret_hash, token_hash, local_user, created_at, used_at)
         values ($1, $2, $3, $4, store_now(), store_now())`,
        [hash, secretHash, tokenHash, localUser],
      );
    },

    find: (hash, life) => find({ hash, ...life }),

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

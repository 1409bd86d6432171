/** The Directory over SQL. `credential` is one statement, prepared once: an indexed look-up by the secret's hash. */
import { eq, sql } from "drizzle-orm";
import { apiKey, keySecret, organization } from "../../db/schema.ts";
import type { Directory, Scope } from "../store/directory.ts";
import { idOf, uuidOf } from "../store/ids.ts";
import type { Database } from "./database.ts";
import { callerOf, plainly } from "./rows.ts";

export function directory(db: Database): Directory {
  const find = db.drizzle
    .select({
      key: {
        id: apiKey.id,
        name: apiKey.name,
        scopes: apiKey.scopes,
        allowedModels: apiKey.allowedModels,
        expiresAt: apiKey.expiresAt,
        revokedAt: apiKey.revokedAt,
      },
      secret: { expiresAt: keySecret.expiresAt, revokedAt: keySecret.revokedAt },
      organization,
      readAt: sql<Date>`store_now()`,
    })
    .from(keySecret)
    .innerJoin(apiKey, eq(apiKey.id, keySecret.keyId))
    .innerJoin(organization, eq(organization.id, apiKey.organizationId))
    .where(eq(keySecret.hash, sql.placeholder("hash")))
    .prepare("credential");

  return {
    async credential(keyHash) {
      const [row] = await plainly(find.execute({ hash: keyHash }));
      if (!row) return null;
      const { key, secret, readAt } = row;
      return {
        key: { ...key, id: idOf(key.id, "key_"), scopes: key.scopes as Scope[] },
        secret,
        organization: callerOf(row.organization),
        readAt,
      };
    },

    async touch(keyIds) {
      const ids = keyIds.map((id) => uuidOf(id, "key_")).filter((id) => id !== null);
      if (ids.length === 0) return;
      // Nodes write the same keys at the same moment: whoever comes second leaves the row to the first, and nobody waits.
      await db.query(touching, [ids]);
    },
  };
}

const touching = `
  update api_key set last_used_at = store_now()
  from (select id from api_key where id = any($1::uuid[]) for no key update skip locked) as used
  where api_key.id = used.id`;

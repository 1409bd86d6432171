/**
 * A CREDENTIAL: a secret of a key or of an operator, stored as its hash, with rotation and revocation. For both kinds
 * the code is the same except for the table of the secrets and the word in the audit log. Which port accepts which kind
 * is decided by the look-ups (directory.ts, operators.ts).
 */
import type { Revocation, Rotation } from "../../admin/store/credential.ts";
import type { NewSecret } from "../../core/store/directory.ts";
import { type Changeable, changeAnyVersion } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import type { Secrets } from "./secrets.ts";

interface SecretOwner {
  id: string;
  revokedAt: Date | null;
}

/** The part of a secret that the audit log may show. */
export const masked = ({ prefix, suffix }: NewSecret): string => `${prefix}…${suffix}`;

/** The operations on credentials of one kind. `end` revokes the whole owner: a key or an operator. */
export function credentialsOf<Row extends SecretOwner>(
  word: "key" | "operator",
  secrets: Secrets,
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

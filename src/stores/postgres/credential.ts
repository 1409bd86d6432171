/**
 * A CREDENTIAL: a secret that is kept as its hash, of a key or of an operator, through rotation and revocation. Both are the
 * same here but for the table of the secrets and the word of the audit log; which port takes which is for the look-ups to
 * say (directory.ts, operators.ts). A caller has locked the row of the owner.
 */
import type { NewSecret } from "../../core/store/directory.ts";
import type { Made } from "./change.ts";
import type { Transaction } from "./database.ts";
import type { Secrets } from "./secrets.ts";

export interface Rotation {
  secret: NewSecret;
  graceEndsAt: Date | null;
}

interface Owner {
  id: string;
  revokedAt: Date | null;
}

/** The part of a secret that the audit log shows. */
export const masked = ({ prefix, suffix }: NewSecret): string => `${prefix}…${suffix}`;

/** `end`: revokes the owner, whole. */
export function credentialsOf<Row extends Owner>(
  word: "key" | "operator",
  secrets: Secrets,
  end: (tx: Transaction, row: Row, at: Date) => Promise<void>,
) {
  return {
    /** Adds a secret; the ones before it end with the grace at the latest. */
    async rotated(tx: Transaction, row: Row, at: Date, { secret, graceEndsAt }: Rotation) {
      if (row.revokedAt) return "revoked" as const;
      if (graceEndsAt) await secrets.endAt(tx, row.id, graceEndsAt);
      await secrets.add(tx, row.id, secret, at);
      const details = { grace_ends_at: graceEndsAt, secret: masked(secret) };
      return { action: `${word}.rotate`, details, secretHash: secret.hash } satisfies Made<never>;
    },

    /** Revokes the owner, or with `old` only the secrets that the newest one replaced. */
    async revoked(tx: Transaction, row: Row, at: Date, old: boolean) {
      if (old) {
        const count = await secrets.revokeReplaced(tx, row.id, at);
        return count === 0 ? null : { action: `${word}.revoke_old`, details: { secrets: count } };
      }
      if (row.revokedAt) return null;
      await end(tx, row, at);
      return { action: `${word}.revoke`, details: {} };
    },
  };
}

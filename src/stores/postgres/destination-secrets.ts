/**
 * The stored form of the secrets of notice destinations: encrypted if there is a secret key. Without a key, the secret
 * that signs JSON is stored in plain text, and an address that is a secret is not stored at all. The next round of
 * `sealSecrets` encrypts a secret that was stored without a key, or with an older one.
 */
import type { Sealing } from "../../core/store/sealing.ts";
import type { NoticeForm } from "../../features/notices/store/notice.ts";
import type { Querying } from "./database.ts";

/**
 * The beginning of an encrypted secret. A secret in plain text begins with `whsec_`, and no address begins with this
 * mark.
 */
const mark = "sealed:";
const columns = ["secret", "address"] as const;
export type SecretColumn = (typeof columns)[number];
const aboutOf = (column: SecretColumn, id: string) => `notice_destination.${column} of ${id}`;

/**
 * Whether the destination's address is a secret: anybody who knows the URL of a Slack or Teams channel may write to the
 * channel.
 */
export const hasSecretAddress = (form: NoticeForm) => form === "slack" || form === "teams";

/** The secret in its stored form. `id`: the UUID of the destination. */
export function storedSecret(sealing: Sealing | null, column: SecretColumn, id: string, secret: string): string {
  if (sealing === null) return secret;
  return mark + Buffer.from(sealing.seal(secret, aboutOf(column, id))).toString("base64");
}

/** The secret in plain text. Null if the key that encrypted it is not configured. */
export function openedSecret(sealing: Sealing | null, column: SecretColumn, id: string, stored: string): string | null {
  const sealed = sealedIn(stored);
  return sealed === null ? stored : (sealing?.open(sealed, aboutOf(column, id)) ?? null);
}

const sealedIn = (stored: string) =>
  stored.startsWith(mark) ? new Uint8Array(Buffer.from(stored.slice(mark.length), "base64")) : null;

/**
 * Encrypts the stored secrets that are in plain text or encrypted with an older key. A secret that was replaced
 * meanwhile is left alone.
 */
export async function sealSecrets(db: Querying, sealing: Sealing | null): Promise<void> {
  if (sealing === null) return;
  for (const column of columns) {
    const rows = await db.query<{ id: string; form: NoticeForm; stored: string }>(
      `select id, form, ${column} as stored from notice_destination where ${column} is not null`,
    );
    for (const { id, form, stored } of rows) {
      if (column === "address" && !hasSecretAddress(form)) continue;
      const sealed = sealedIn(stored);
      const plain = sealed === null || sealing.isOutdated(sealed) ? openedSecret(sealing, column, id, stored) : null;
      if (plain === null) continue;
      const again = storedSecret(sealing, column, id, plain);
      await db.query(`update notice_destination set ${column} = $3 where id = $1 and ${column} = $2`, [
        id,
        stored,
        again,
      ]);
    }
  }
}

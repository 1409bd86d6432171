/**
 * Secrets of the destinations of notices as they are stored: sealed where there is a key. The secret that signs JSON is in plain
 * text without one; an address that is a secret is not stored without one. What was stored without a key, or under an older one,
 * is sealed by the next round.
 */
import type { Sealing } from "../../core/store/sealing.ts";
import type { NoticeForm } from "../../features/notices/store/notice.ts";
import type { Database } from "./database.ts";

/** The beginning of a sealed secret. A secret in plain text begins with `whsec_`, and an address never with this. */
const mark = "sealed:";
const columns = ["secret", "address"] as const;
export type SecretColumn = (typeof columns)[number];
const aboutOf = (column: SecretColumn, id: string) => `notice_destination.${column} of ${id}`;

/** Anybody who knows the URL may write to the channel, so the URL is a secret by itself. */
export const hasSecretAddress = (form: NoticeForm) => form === "slack" || form === "teams";

/** `id`: the UUID of the destination. */
export function storedSecret(sealing: Sealing | null, column: SecretColumn, id: string, secret: string): string {
  if (sealing === null) return secret;
  return mark + Buffer.from(sealing.seal(secret, aboutOf(column, id))).toString("base64");
}

/** Null: the key with which it was sealed is not here. */
export function openedSecret(sealing: Sealing | null, column: SecretColumn, id: string, stored: string): string | null {
  const sealed = sealedIn(stored);
  return sealed === null ? stored : (sealing?.open(sealed, aboutOf(column, id)) ?? null);
}

const sealedIn = (stored: string) =>
  stored.startsWith(mark) ? new Uint8Array(Buffer.from(stored.slice(mark.length), "base64")) : null;

/** Seals those that are in plain text or sealed with an older key. One that was replaced meanwhile stays as it is. */
export async function sealSecrets(db: Pick<Database, "query">, sealing: Sealing | null): Promise<void> {
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

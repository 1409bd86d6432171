/**
 * Secrets of webhooks as they are stored: encrypted if there is a key, else in plain text. One that was stored without
 * a key, or with an older one, is encrypted by the next round.
 */
import type { Sealing } from "../../core/store/sealing.ts";
import type { Database } from "./database.ts";

/** Begins an encrypted secret. One in plain text begins with `whsec_`. */
const mark = "sealed:";
const aboutOf = (owner: string) => `secret of the webhook of ${owner}`;

/** The secret in its stored form. `owner`: the UUID of the organization. */
export function storedSecret(sealing: Sealing | null, owner: string, secret: string): string {
  return sealing === null ? secret : mark + Buffer.from(sealing.seal(secret, aboutOf(owner))).toString("base64");
}

/** The secret from its stored form; null: the key that encrypted it is not available. */
export function openedSecret(sealing: Sealing | null, owner: string, stored: string): string | null {
  const sealed = sealedIn(stored);
  return sealed === null ? stored : (sealing?.open(sealed, aboutOf(owner)) ?? null);
}

const sealedIn = (stored: string) =>
  stored.startsWith(mark) ? new Uint8Array(Buffer.from(stored.slice(mark.length), "base64")) : null;

/**
 * Encrypts secrets that are in plain text or encrypted with an older key. One that was replaced meanwhile is left
 * alone.
 */
export async function sealSecrets(db: Pick<Database, "query">, sealing: Sealing | null): Promise<void> {
  if (sealing === null) return;
  const rows = await db.query<{ owner: string; secret: string }>(
    "select organization_id as owner, secret from notice_hook",
  );
  for (const { owner, secret } of rows) {
    const sealed = sealedIn(secret);
    const plain = sealed === null || sealing.isOutdated(sealed) ? openedSecret(sealing, owner, secret) : null;
    if (plain === null) continue;
    const stored = storedSecret(sealing, owner, plain);
    await db.query("update notice_hook set secret = $3 where organization_id = $1 and secret = $2", [
      owner,
      secret,
      stored,
    ]);
  }
}

/**
 * Secrets of webhooks as they are stored: sealed where there is a key, else in plain text. What was stored without a key, or
 * under an older one, is sealed by the next round.
 */
import type { Sealing } from "../../core/store/sealing.ts";
import type { Database } from "./database.ts";

/** It begins a sealed secret. One in plain text begins with `whsec_`. */
const mark = "sealed:";
const aboutOf = (owner: string) => `secret of the webhook of ${owner}`;

/** `owner`: the UUID of the organization. */
export function storedSecret(sealing: Sealing | null, owner: string, secret: string): string {
  return sealing === null ? secret : mark + Buffer.from(sealing.seal(secret, aboutOf(owner))).toString("base64");
}

/** Null: the key with which it was sealed is not here. */
export function openedSecret(sealing: Sealing | null, owner: string, stored: string): string | null {
  const sealed = sealedIn(stored);
  return sealed === null ? stored : (sealing?.open(sealed, aboutOf(owner)) ?? null);
}

const sealedIn = (stored: string) =>
  stored.startsWith(mark) ? new Uint8Array(Buffer.from(stored.slice(mark.length), "base64")) : null;

/** Seals those that are in plain text or sealed with an older key. One that was replaced meanwhile stays as it is. */
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

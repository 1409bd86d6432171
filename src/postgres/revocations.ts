/**
 * Tells every node at once what it may no longer believe: a key or an organization changed. Sent by the commit of the
 * change itself over LISTEN/NOTIFY. A message can be lost with its connection; caches forget by themselves within a second.
 */
import type { Database, Transaction } from "./database.ts";

const channel = "key_changed";

/**
 * `id`: of the key or the organization (`key_…`, `org_…`). `secretHash`: of a secret that the key got, so that every
 * node knows it. The message says when it changed, too, by the store's clock.
 */
export async function announceChange(tx: Transaction, id: string, secretHash?: Uint8Array): Promise<void> {
  const [row] = await tx.query<{ at: Date }>("select store_now() as at");
  const words = [id, row!.at.getTime(), ...(secretHash ? [secretHash.toHex()] : [])];
  await tx.notify(channel, words.join(" "));
}

export interface RevocationEars {
  /** The id of what changed; also on the node that changed it. */
  changed(keyOrOrganizationId: string, secretHash?: string): void;
  /** After a lost connection is back: changes may have gone by unheard. */
  missed?(): void;
  /** How long one message took, from the change until a moment after it was heard, all by the store's clock. */
  took?(seconds: number): void;
}

/** Listens on every node, the one that changes included. Answers how to stop. */
export function revocations(db: Database, ears: RevocationEars): Promise<() => Promise<void>> {
  let hasBegun = false;
  const heard = (message: string) => {
    const [id = "", at_ms, secretHash] = message.split(" ");
    ears.changed(id, secretHash);
    if (ears.took && at_ms !== undefined) void measure(db, Number(at_ms), ears.took);
  };
  return db.listen(channel, heard, () => {
    if (hasBegun) ears.missed?.();
    hasBegun = true;
  });
}

/** Measures by the store's clock, because the clocks of nodes differ. */
async function measure(db: Database, at_ms: number, took: (seconds: number) => void): Promise<void> {
  try {
    const [row] = await db.query<{ now: Date }>("select store_now() as now");
    took(Math.max(0, row!.now.getTime() - at_ms) / 1000);
  } catch {
    // The store is away; the change was heard all the same.
  }
}

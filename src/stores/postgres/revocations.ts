/**
 * Announces to every node without delay that a key, an organization or a person has changed. The message is sent with
 * NOTIFY by the commit of the change. It can be lost with its connection, but cached look-ups expire within a second.
 */
import type { Database, Transaction } from "./database.ts";

const channel = "key_changed";

/**
 * Announces a change. `id`: that of the changed thing (`key_…`, `org_…`). `secretHash`: the hash of a new secret of the
 * key, which every node should learn. The message also has the instant of the change, by the store's clock.
 */
export async function announceChange(tx: Transaction, id: string, secretHash?: Uint8Array): Promise<void> {
  const [row] = await tx.query<{ at: Date }>("select store_now() as at");
  const words = [id, row!.at.getTime(), ...(secretHash ? [secretHash.toHex()] : [])];
  await tx.notify(channel, words.join(" "));
}

interface RevocationListener {
  /** Called with the id of the changed thing, also on the node that changed it. */
  changed(keyOrOrganizationId: string, secretHash?: string): void;
  /** Called when a lost connection is back: changes may have been missed. */
  missed?(): void;
  /**
   * Called with the seconds that a message took, from the change until a moment after its arrival, by the store's
   * clock.
   */
  took?(seconds: number): void;
}

/** Listens for changes, including those of this node. Resolves with a function that stops listening. */
export function revocations(db: Database, listener: RevocationListener): Promise<() => Promise<void>> {
  let hasBegun = false;
  const received = (message: string) => {
    const [id = "", at_ms, secretHash] = message.split(" ");
    listener.changed(id, secretHash);
    if (listener.took && at_ms !== undefined) void measure(db, Number(at_ms), listener.took);
  };
  return db.listen(channel, received, () => {
    if (hasBegun) listener.missed?.();
    hasBegun = true;
  });
}

/** Measures how long a message took, by the store's clock, because the clocks of nodes differ. */
async function measure(db: Database, at_ms: number, took: (seconds: number) => void): Promise<void> {
  try {
    const [row] = await db.query<{ now: Date }>("select store_now() as now");
    took(Math.max(0, row!.now.getTime() - at_ms) / 1000);
  } catch {
    // The store is away; the message itself was received.
  }
}

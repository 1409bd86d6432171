/**
 * Tells every node at once what it may no longer believe: a key or an organization changed. Sent by the commit of the
 * change itself over LISTEN/NOTIFY. A message can be lost with its connection; caches forget by themselves within a second.
 */
import type { Database, Transaction } from "./database.ts";

const channel = "key_changed";

/** `id`: of the key or the organization (`key_…`, `org_…`). */
export function announceChange(tx: Transaction, id: string): Promise<void> {
  return tx.notify(channel, id);
}

/**
 * Calls `onChange` with the id of what changed, on every node, the one that changed it included; `onMissed` after a lost
 * connection is back, when changes may have gone by unheard. Answers how to stop.
 */
export function revocations(
  db: Database,
  onChange: (keyOrOrganizationId: string) => void,
  onMissed: () => void = () => {},
): Promise<() => Promise<void>> {
  let hasBegun = false;
  return db.listen(channel, onChange, () => {
    if (hasBegun) onMissed();
    hasBegun = true;
  });
}

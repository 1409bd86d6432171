/**
 * Changes of what requests took from their rate limits. They wait a moment for the next call with which they can be
 * sent, so that a request needs one call to Redis. A change that takes more does not wait, because a late one would
 * admit too much; a change that gives back may be late. Whatever the outcome of the call, a change is sent once.
 */
import type { RateSubject } from "../../core/store/rates.ts";
import { type Clock, idleClock } from "../../core/time/clock.ts";
import type { EntryName } from "./rates-script.ts";

export interface Change {
  organizationId: string;
  /** The subject, and which of its entries changes. */
  subject: Pick<RateSubject, "id">;
  number: number;
  name: EntryName;
  /** The differences to add to the entry. */
  requests: number;
  tokens: number;
}

export interface CarriedChanges {
  changes: readonly Change[];
  /** Must be called when the call is over. */
  done(): void;
}

/** The changes that wait. Those with the same `together` may be sent in one call. */
interface WaitingChanges {
  /** Adds changes. Resolves when the call that carries them is over, whether it succeeded or not. */
  add(together: string, changes: readonly Change[]): Promise<void>;
  /** Takes the waiting changes out, for a call that is sent now. */
  take(together: string): CarriedChanges | null;
  /** Resolves when all waiting changes were sent. */
  flush(): Promise<void>;
}

interface WaitingParts {
  /** Sends a call with changes only. Never rejects. */
  send(changes: readonly Change[]): Promise<void>;
  wait_ms: number;
  /** The most changes that wait for one call. If there are more, the call is sent immediately. */
  changes_max: number;
  clock?: Pick<Clock, "after">;
}

interface Batch {
  changes: Change[];
  over: PromiseWithResolvers<void>;
}

const newBatch = (): Batch => ({ changes: [], over: Promise.withResolvers<void>() });

export function waitingChanges({ send, wait_ms, changes_max, clock = idleClock() }: WaitingParts): WaitingChanges {
  const waiting = new Map<string, Batch>();
  let cancel: (() => void) | null = null;

  function take(together: string): CarriedChanges | null {
    const batch = waiting.get(together);
    if (!batch) return null;
    waiting.delete(together);
    return { changes: batch.changes, done: batch.over.resolve };
  }

  async function depart(together: string): Promise<void> {
    const carried = take(together);
    if (!carried) return;
    await send(carried.changes);
    carried.done();
  }

  async function flush(): Promise<void> {
    cancel?.();
    cancel = null;
    await Promise.all([...waiting.keys()].map(depart));
  }

  return {
    add(together, changes) {
      const batch = waiting.getOrInsertComputed(together, newBatch);
      for (const change of changes) include(batch.changes, change);
      const takesMore = changes.some(({ tokens }) => tokens > 0);
      if (takesMore || batch.changes.length >= changes_max) void depart(together);
      else cancel ??= clock.after(wait_ms, () => void flush());
      return batch.over.promise;
    },
    take,
    flush,
  };
}

/** Adds a change to the list. Changes of the same entry that several requests share are merged into one. */
function include(changes: Change[], change: Change): void {
  const { organizationId, subject, number, name } = change;
  for (const one of changes) {
    if (one.number !== number || one.name !== name || one.subject.id !== subject.id) continue;
    if (one.organizationId !== organizationId) continue;
    one.requests += change.requests;
    one.tokens += change.tokens;
    return;
  }
  changes.push(change);
}

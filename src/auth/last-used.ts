/** Records which keys were used, in one write every few seconds. Nobody waits for it; a failed write is retried. */
import { within } from "../time/deadline.ts";
import { gathered } from "../time/gathered.ts";

/** Keys of one write, so that a statement stays small. */
const batch_keys_max = 1000;
/** Beyond this, further keys are dropped until a write succeeds: last use is best effort. */
const waiting_keys_max = 100_000;

/** How long `stop` waits for the last write. */
const stop_ms = 3000;

export interface LastUsed {
  add(keyId: string): void;
  /** Writes what is left, for 3 s at most. Never rejects. */
  stop(): Promise<void>;
}

export function lastUsed(options: {
  touch: (keyIds: string[]) => Promise<void>;
  every_ms: number;
  failed: (cause: unknown) => void;
}): LastUsed {
  const waiting = new Set<string>();
  const writes = gathered(async () => {
    await write();
    // Keys that came in during the write asked in vain, and failed ones wait again.
    return waiting.size > 0 ? options.every_ms : null;
  });

  async function write(): Promise<void> {
    const keyIds = [...waiting];
    waiting.clear();
    for (let from = 0; from < keyIds.length; from += batch_keys_max) {
      try {
        await options.touch(keyIds.slice(from, from + batch_keys_max));
      } catch (cause) {
        for (const keyId of keyIds.slice(from)) waiting.add(keyId);
        options.failed(cause);
        return;
      }
    }
  }

  return {
    add(keyId) {
      if (waiting.size >= waiting_keys_max) return;
      waiting.add(keyId);
      writes.ask(options.every_ms);
    },
    stop: () => within(writes.stop().then(write), stop_ms, "the store of last uses").catch(options.failed),
  };
}

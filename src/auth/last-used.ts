/** Which keys were used, written down every few seconds in one go. Nobody waits for it; a failure is tried again. */
import { within } from "./deadline.ts";

/** Keys of one write, so that a statement stays small. */
const batch_keys_max = 1000;
/** Above this, further keys are not remembered until a write succeeds: last use is best effort. */
const waiting_keys_max = 100_000;

/** How long stopping waits for the last write. */
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
  let timer: ReturnType<typeof setTimeout> | null = null;
  let writing: Promise<void> = Promise.resolve();
  let stopped = false;

  function schedule(): void {
    if (timer || stopped) return;
    timer = setTimeout(() => {
      timer = null;
      writing = write();
      // What came in meanwhile had no timer to start, and what failed is waiting again.
      void writing.then(() => waiting.size > 0 && schedule());
    }, options.every_ms);
    timer.unref();
  }

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
      schedule();
    },
    async stop() {
      stopped = true;
      if (timer) clearTimeout(timer);
      try {
        await within(
          writing.then(() => write()),
          stop_ms,
          "writing down the last use of keys",
        );
      } catch (cause) {
        options.failed(cause);
      }
    },
  };
}

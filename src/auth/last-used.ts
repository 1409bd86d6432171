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
  add(keyId: string, address: () => string): void;
  /** Writes what is left, for 3 s at most. Never rejects. */
  stop(): Promise<void>;
}

export function lastUsed(options: {
  touch: (uses: ReadonlyMap<string, string>) => Promise<void>;
  every_ms: number;
  failed: (cause: unknown) => void;
}): LastUsed {
  const waiting = new Map<string, string>();
  const writes = gathered(async () => {
    await write();
    // Keys that came in during the write asked in vain, and failed ones wait again.
    return waiting.size > 0 ? options.every_ms : null;
  });

  async function write(): Promise<void> {
    const uses = [...waiting];
    waiting.clear();
    for (let from = 0; from < uses.length; from += batch_keys_max) {
      try {
        await options.touch(new Map(uses.slice(from, from + batch_keys_max)));
      } catch (cause) {
        for (const [keyId, address] of uses.slice(from)) if (!waiting.has(keyId)) waiting.set(keyId, address);
        options.failed(cause);
        return;
      }
    }
  }

  return {
    add(keyId, address) {
      // The first of several seconds stands for all of them: no request more has to find out from where it comes.
      if (waiting.has(keyId) || waiting.size >= waiting_keys_max) return;
      waiting.set(keyId, address());
      writes.ask(options.every_ms);
    },
    stop: () => within(writes.stop().then(write), stop_ms, "the store of last uses").catch(options.failed),
  };
}

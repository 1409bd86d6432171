/**
 * Records which keys were used, in one write every few seconds. No request waits for it, and a failed write is retried. If
 * a key could end as unused, its request waits until the use is written (docs/design/keys.md, Keys end by policy).
 */
import { within } from "../time/deadline.ts";
import { gathered } from "../time/repeating.ts";

/** Keys of one write, so that a statement stays small. */
const batch_keys_max = 1000;
/** Beyond this, further keys are dropped until a write succeeds: last use is best effort. */
const waiting_keys_max = 100_000;

/** How long `stop` waits for the last write. */
const stop_ms = 3000;

export interface LastUsed {
  add(keyId: string, address: string): void;
  /**
   * Writes a key's use at once; other requests with the same key wait for the same write. Returns whether it was
   * written in time. If not, a later write has it, and the request is served nevertheless. Never rejects.
   */
  note(keyId: string, address: string): Promise<boolean>;
  /** Writes what is left, for 3 s at most. Never rejects. */
  stop(): Promise<void>;
}

export function lastUsed(options: {
  touch: (uses: ReadonlyMap<string, string>, how?: "certain") => Promise<void>;
  every_ms: number;
  note_ms: number;
  failed: (cause: unknown) => void;
}): LastUsed {
  const waiting = new Map<string, string>();
  const noting = new Map<string, Promise<boolean>>();
  const writes = gathered(async () => {
    await write();
    // Keys that were added during the write are still unwritten, and so are those of a failed write.
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

  function add(keyId: string, address: string): void {
    // Only the first use of a key between two writes is recorded, so that other requests need not look up their
    // address.
    if (waiting.has(keyId) || waiting.size >= waiting_keys_max) return;
    waiting.set(keyId, address);
    writes.ask(options.every_ms);
  }

  async function noted(keyId: string, address: string): Promise<boolean> {
    try {
      const work = options.touch(new Map([[keyId, address]]), "certain");
      await within(work, options.note_ms, "the store of last uses");
      return true;
    } catch (cause) {
      options.failed(cause);
      add(keyId, address);
      return false;
    } finally {
      noting.delete(keyId);
    }
  }

  return {
    add,
    note(keyId, address) {
      const running = noting.get(keyId) ?? noted(keyId, address);
      noting.set(keyId, running);
      return running;
    },
    stop: () => within(writes.stop().then(write), stop_ms, "the store of last uses").catch(options.failed),
  };
}

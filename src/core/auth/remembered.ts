/**
 * Records which keys were used, in one write every few seconds. No request waits for the write, and a failed write is
 * retried. But if a key could end because it seems unused, its request waits until the use is written
 * (docs/design/keys.md, Keys end by policy).
 *
 * REMEMBERED: the directory's last verdict on each key, by the hash of its secret. Keys that exist and keys that don't
 * are kept apart, so a flood of guesses evicts no key. An entry that is too old no longer counts, but its key is still
 * known: its look-ups come before those of unknown keys (docs/design/keys.md, Unknown keys). Pure.
 */
import { within } from "../time/cancellation.ts";
import { gathered } from "../time/clock.ts";
import { concerns, isUnknown, type Verdict } from "./verdict.ts";

/** The most keys in one write, so that a statement stays small. */
const batch_keys_max = 1000;
/** The most keys that wait to be written. Further keys are dropped until a write succeeds: last use is best effort. */
const waiting_keys_max = 100_000;

const stop_ms = 3000;

export function lastUsed(options: {
  touch: (uses: ReadonlyMap<string, string>, how?: "certain") => Promise<void>;
  every_ms: number;
  note_ms: number;
  failed: (cause: unknown) => void;
}) {
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
    /**
     * Writes a key's use at once; other requests with the same key wait for the same write. Returns whether it was
     * written in time. If not, a later write has it, and the request is served nevertheless. Never rejects.
     */
    note(keyId: string, address: string): Promise<boolean> {
      const running = noting.get(keyId) ?? noted(keyId, address);
      noting.set(keyId, running);
      return running;
    },
    /** Writes the uses of keys that are still unwritten, for 3 s at most. Never rejects. */
    stop: (): Promise<void> =>
      within(writes.stop().then(write), stop_ms, "the store of last uses").catch(options.failed),
  };
}

interface Entry {
  /** The verdict on the key; null if only the existence of the key is known yet. */
  verdict: Verdict | null;
  /** The end of the verdict's validity, by the monotonic clock. After that the directory is asked again. */
  until_ms: number;
}

export class Remembered {
  readonly #known = new Map<string, Entry>();
  readonly #absent = new Map<string, Entry>();

  /** The verdicts of at most `entries_max` known keys are remembered, and separately of as many absent keys. */
  constructor(readonly entries_max: number) {}

  /** The verdict on a key that is valid now; null if the directory has to be asked. */
  verdict(hash: string, now: number): Verdict | null {
    for (const cache of [this.#known, this.#absent]) {
      const entry = cache.get(hash);
      if (!entry) continue;
      cache.delete(hash);
      if (now < entry.until_ms) {
        cache.set(hash, entry);
        return entry.verdict;
      }
      if (cache === this.#known) cache.set(hash, entry);
      return null;
    }
    return null;
  }

  isKnown(hash: string): boolean {
    return this.#known.has(hash);
  }

  keep(hash: string, entry: Entry, now: number): void {
    const cache = entry.verdict && isUnknown(entry.verdict) ? this.#absent : this.#known;
    this.#known.delete(hash);
    this.#absent.delete(hash);
    cache.set(hash, entry);
    if (cache === this.#absent) this.#sweep(now);
    // A Map keeps the order of insertion, and `verdict` inserts anew: the first entry is the one unused for longest.
    if (cache.size > this.entries_max) cache.delete(cache.keys().next().value as string);
  }

  /** Forgets keys that do not exist when their entries have expired. The entries are nearly in order of age. */
  #sweep(now: number): void {
    for (const [hash, { until_ms }] of this.#absent) {
      if (now < until_ms) return;
      this.#absent.delete(hash);
    }
  }

  /** Forgets the verdicts on this key, or on the keys of this organization or person (its id). */
  forget(id: string): void {
    for (const entry of this.#known.values()) if (entry.verdict && concerns(entry.verdict, id)) outdate(entry);
  }

  /** Notes that a key with this hash was created a moment ago. */
  expect(hash: string): void {
    const until_ms = Number.NEGATIVE_INFINITY;
    this.keep(hash, { verdict: null, until_ms }, until_ms);
  }

  get absent(): number {
    return this.#absent.size;
  }
}

function outdate(entry: Entry): void {
  entry.until_ms = Number.NEGATIVE_INFINITY;
}

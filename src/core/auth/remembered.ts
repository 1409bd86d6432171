/**
 * REMEMBERED: the directory's last verdict on each key, by the hash of its secret. Keys that exist and keys that don't
 * are kept apart, so a flood of guesses evicts no key. An entry that is too old no longer counts, but its key is still
 * known: its look-ups come before those of unknown keys (docs/design/keys.md, Unknown keys). Pure.
 */
import { concerns, isUnknown, type Verdict } from "./verdict.ts";

export interface Entry {
  /** Null: the key exists, and nothing else is known of it yet. */
  verdict: Verdict | null;
  /** Until when the verdict is valid, by the monotonic clock; then the directory is asked again. */
  until_ms: number;
}

export class Remembered {
  readonly #known = new Map<string, Entry>();
  readonly #absent = new Map<string, Entry>();

  /** `entries_max`: of known keys, and separately of absent ones. */
  constructor(readonly entries_max: number) {}

  /** The verdict that is valid now; null if the directory has to be asked. */
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
    // A Map keeps the order of insertion, and `verdict` inserts anew: the first is the one unused for longest.
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

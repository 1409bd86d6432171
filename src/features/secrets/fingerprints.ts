/**
 * FINGERPRINTS: a compact set of hashes, which keeps the first 8 bytes of each. One typed array with open addressing, 8
 * bytes an entry; at least a quarter of the entries is free. The hashes are of random secrets, so their own bits serve
 * as the index. Pure.
 */
import { fingerprint_bytes } from "./store/existing-secrets.ts";

const places_min = 1024;

export class Fingerprints {
  /** Two words for each entry. If both are 0, the entry is free. */
  #words = new Uint32Array(2 * places_min);
  #size = 0;

  /** The set keeps at most `entries_max` fingerprints; further ones are left out. */
  constructor(readonly entries_max: number) {}

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size >= this.entries_max;
  }

  get bytes(): number {
    return this.#words.byteLength;
  }

  has(hash: Uint8Array): boolean {
    return !this.#isFree(this.#placeOf(wordAt(hash, 0), wordAt(hash, 4)));
  }

  /** Adds the fingerprint at the start of one hash, or many fingerprints that follow each other in `bytes`. */
  add(bytes: Uint8Array): void {
    for (let at = 0; at + fingerprint_bytes <= bytes.length; at += fingerprint_bytes) {
      this.#put(wordAt(bytes, at), wordAt(bytes, at + 4));
    }
  }

  #put(low: number, high: number): void {
    const place = this.#placeOf(low, high);
    if (!this.#isFree(place) || this.isFull) return;
    this.#words[place] = low;
    this.#words[place + 1] = lasting(low, high);
    this.#size += 1;
    if (4 * this.#size > 3 * (this.#words.length / 2)) this.#grow();
  }

  #grow(): void {
    const before = this.#words;
    this.#words = new Uint32Array(2 * before.length);
    for (let at = 0; at < before.length; at += 2) {
      const [low, high] = [before[at]!, before[at + 1]!];
      if (low === 0 && high === 0) continue;
      const place = this.#placeOf(low, high);
      this.#words[place] = low;
      this.#words[place + 1] = high;
    }
  }

  /** The index of the fingerprint, or the index at which it would be inserted. */
  #placeOf(low: number, high: number): number {
    const words = this.#words;
    const second = lasting(low, high);
    const mask = words.length / 2 - 1;
    let place = low & mask;
    while (!this.#isFree(2 * place) && (words[2 * place] !== low || words[2 * place + 1] !== second)) {
      place = (place + 1) & mask;
    }
    return 2 * place;
  }

  #isFree(at: number): boolean {
    return this.#words[at] === 0 && this.#words[at + 1] === 0;
  }
}

/**
 * The second word of the fingerprint as it is stored. Two words of 0 would mark a free entry, so another value replaces
 * them.
 */
function lasting(low: number, high: number): number {
  return low === 0 && high === 0 ? 1 : high;
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

/** Keeps each lane's newest conversation in bounded memory, so that it can be continued although it is not stored. */
import type { MemoryReservation } from "../../../core/body/memory.ts";

interface Conversation {
  responseId: string;
  /** The items of the conversation as JSON. */
  items: string;
  bytes: number;
}

export class Recent implements Disposable {
  readonly #memory: MemoryReservation;
  readonly #bytes_max: number;
  readonly #lanes_max: number;
  /** The key is the lane, and the value its conversation; the oldest conversation is first. */
  readonly #kept = new Map<string, Conversation>();
  #bytes = 0;
  #isDisposed = false;

  constructor(memory: MemoryReservation, { bytes_max, lanes_max }: { bytes_max: number; lanes_max: number }) {
    this.#memory = memory;
    this.#bytes_max = bytes_max;
    this.#lanes_max = lanes_max;
  }

  /** The items of the conversation that ends in this response. */
  find(responseId: string): { items: string; bytes: number } | null {
    for (const kept of this.#kept.values()) if (kept.responseId === responseId) return kept;
    return null;
  }

  /** Keeps the lane's new conversation; not once the socket has closed, when nobody would give its memory back. */
  keep(lane: string, responseId: string, items: string): void {
    if (this.#isDisposed) return;
    this.#remove(lane);
    const bytes = Buffer.byteLength(items);
    if (bytes > this.#bytes_max) return;
    for (const [oldest] of this.#kept) {
      if (this.#bytes + bytes <= this.#bytes_max && this.#kept.size < this.#lanes_max) break;
      this.#remove(oldest);
    }
    if (this.#memory.growTo(this.#bytes + bytes) !== null) return;
    this.#bytes += bytes;
    this.#kept.set(lane, { responseId, items, bytes });
  }

  /** Forgets a conversation whose continuation failed. The client then sends the whole conversation again. */
  evict(responseId: string): void {
    for (const [lane, kept] of this.#kept) if (kept.responseId === responseId) this.#remove(lane);
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#kept.clear();
    this.#memory[Symbol.dispose]();
  }

  #remove(lane: string): void {
    const kept = this.#kept.get(lane);
    if (!kept) return;
    this.#kept.delete(lane);
    this.#bytes -= kept.bytes;
    this.#memory.shrinkTo(this.#bytes);
  }
}

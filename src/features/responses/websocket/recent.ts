/**
 * Keeps the newest conversation of each lane in memory while the WebSocket is open, so that the next response can
 * continue it even if it is not stored. The memory is bounded; a conversation that does not fit is not kept.
 */
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

  /**
   * Keeps the conversation, in place of its lane's earlier one. A response may still be stored when its socket has
   * closed: then its conversation is not kept, since nobody would give its memory back.
   */
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

  /**
   * Forgets a conversation after a response that continued it has failed. The client then sends the whole conversation
   * again.
   */
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

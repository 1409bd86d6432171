/**
 * The last confirmed settlements, in one block of memory. If they were objects (some thousands are confirmed each
 * second), they would live long enough to be promoted by the garbage collector, so that only full collections find
 * them: docs/design/metering.md, A store that wakes up in the past.
 */
import { hexOf, idOf } from "../../core/store/ids.ts";
import type { Confirmed } from "./store/lost.ts";

const id_bytes = 16;

export class RecentReceipts {
  readonly #ids: Buffer;
  readonly #charged: Float64Array;
  /** The index at which the next receipt is stored. */
  #next = 0;
  #count = 0;

  /**
   * Makes an empty memory. `count_max`: the most receipts that are kept; beyond it, the oldest receipt is forgotten.
   */
  constructor(readonly count_max: number) {
    this.#ids = Buffer.alloc(count_max * 2 * id_bytes);
    this.#charged = new Float64Array(count_max);
  }

  add({ requestId, organizationId, charged }: Confirmed): void {
    const ids = hexOf(requestId, "req_") + hexOf(organizationId, "org_");
    this.#ids.write(ids, this.#next * 2 * id_bytes, "hex");
    this.#charged[this.#next] = charged;
    this.#next = (this.#next + 1) % this.count_max;
    this.#count = Math.min(this.count_max, this.#count + 1);
  }

  /** The latest `count` receipts, the oldest first. */
  latest(count = this.#count): Confirmed[] {
    const wanted = Math.min(count, this.#count);
    return Array.from({ length: wanted }, (_, index) => this.#at(index - wanted));
  }

  /** Forgets the receipts of these requests. */
  forget(requestIds: ReadonlySet<string>): void {
    const kept = this.latest().filter(({ requestId }) => !requestIds.has(requestId));
    this.#next = 0;
    this.#count = 0;
    for (const one of kept) this.add(one);
  }

  /** The receipt at this position from the end; -1 is the latest. */
  #at(place: number): Confirmed {
    const slot = (this.#next + place + this.count_max) % this.count_max;
    const at = slot * 2 * id_bytes;
    return {
      requestId: idOf(this.#ids.toString("hex", at, at + id_bytes), "req_"),
      organizationId: idOf(this.#ids.toString("hex", at + id_bytes, at + 2 * id_bytes), "org_"),
      charged: this.#charged[slot]!,
    };
  }
}

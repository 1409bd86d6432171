/**
 * The idle connections to one engine: a stack for each group of callers that shares connections, and a list of all by
 * age, so that their number is bounded however many callers there are.
 */
import type { EngineConnection } from "./connection.ts";

export class IdleConnections {
  readonly #stacks = new Map<string, EngineConnection[]>();
  /** All idle connections, the oldest first. Connections that `take` skipped are in no stack. */
  readonly #byAge = new Set<EngineConnection>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#byAge.size;
  }

  /** Adds a connection. `sharer`: the key of the group of callers whose requests the connection may carry. */
  add(sharer: string, connection: EngineConnection): void {
    const stack = this.#stacks.get(sharer);
    if (stack) stack.push(connection);
    else this.#stacks.set(sharer, [connection]);
    this.#byAge.add(connection);
    if (this.#byAge.size <= this.#max) return;
    const [oldest] = this.#byAge;
    oldest!.close();
    this.remove(oldest!);
  }

  /**
   * Takes the connection that became idle last, so that the others grow old and are closed. A connection for which the
   * system has received bytes is skipped, because they would be read as an answer; it is closed when the bytes are
   * read.
   */
  take(sharer: string): EngineConnection | undefined {
    const stack = this.#stacks.get(sharer);
    if (!stack) return undefined;
    for (let last = stack.pop(); last; last = stack.pop()) {
      if (stack.length === 0) this.#stacks.delete(sharer);
      if (!last.isUsable) continue;
      this.#byAge.delete(last);
      return last;
    }
    return undefined;
  }

  remove(connection: EngineConnection): void {
    if (!this.#byAge.delete(connection)) return;
    const { sharer } = connection;
    const stack = sharer === null ? undefined : this.#stacks.get(sharer);
    const at = stack?.indexOf(connection) ?? -1;
    if (at < 0) return;
    stack!.splice(at, 1);
    if (stack!.length === 0) this.#stacks.delete(sharer!);
  }

  /**
   * Closes the connections whose idle time is over at this instant, on the clock of `performance`. Without an argument,
   * closes all.
   */
  close(now_ms = Number.POSITIVE_INFINITY): void {
    for (const each of this.#byAge) {
      if (each.idleUntil_ms > now_ms) continue;
      each.close();
      this.remove(each);
    }
  }
}

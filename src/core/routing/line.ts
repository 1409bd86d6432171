/** A queue whose members can be removed at any position in constant time. Pure. */

export interface Spot<Value> {
  readonly value: Value;
  /** The queue that contains this member; null once the member has been removed. */
  line: Line<Value> | null;
  before: Spot<Value> | null;
  behind: Spot<Value> | null;
}

export class Line<Value> {
  first: Spot<Value> | null = null;
  #last: Spot<Value> | null = null;
  length = 0;

  push(value: Value): Spot<Value> {
    const spot: Spot<Value> = { value, line: this, before: this.#last, behind: null };
    if (this.#last) this.#last.behind = spot;
    else this.first = spot;
    this.#last = spot;
    this.length += 1;
    return spot;
  }

  /** Removes a member. Does nothing if it was removed before. */
  remove(spot: Spot<Value>): void {
    if (spot.line !== this) return;
    if (spot.before) spot.before.behind = spot.behind;
    else this.first = spot.behind;
    if (spot.behind) spot.behind.before = spot.before;
    else this.#last = spot.before;
    spot.line = null;
    this.length -= 1;
  }
}

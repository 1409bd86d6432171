/**
 * A set whose members come and go often, in place of a Set. When a Set grows, its old table stays behind with all its
 * members and points to the next one. Once a full collection has found a table, the quick ones find all that follow, so
 * members that have left are kept until the next full collection: docs/design/runtime.md, Bun as a server.
 */
export class Present<Member> {
  readonly #places: PresentEntry<Member>[] = [];

  get size(): number {
    return this.#places.length;
  }

  /** All current members, in no particular order. */
  members(): Member[] {
    return this.#places.map(({ member }) => member);
  }

  enter(member: Member): PresentEntry<Member> {
    const place = { member, at: this.#places.length };
    this.#places.push(place);
    return place;
  }

  /** Removes a member. Does nothing if it has left already. */
  leave(place: PresentEntry<Member>): void {
    if (this.#places[place.at] !== place) return;
    const last = this.#places.pop()!;
    if (last === place) return;
    last.at = place.at;
    this.#places[place.at] = last;
  }
}

/** A member's entry, from `enter` to `leave`. */
export interface PresentEntry<Member> {
  readonly member: Member;
  at: number;
}

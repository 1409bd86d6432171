/**
 * Who is there now, where many come and go: in place of a Set. When a Set grows, its old table stays behind with all who
 * were in it, and points to the next one; once a collection has found one of them, the quick ones find all that follow.
 * What left is then kept until a whole collection: docs/design/runtime.md, Bun as a server.
 */
export class Present<Member> {
  readonly #places: Place<Member>[] = [];

  get size(): number {
    return this.#places.length;
  }

  /** All of now, in no order. */
  members(): Member[] {
    return this.#places.map(({ member }) => member);
  }

  enter(member: Member): Place<Member> {
    const place = { member, at: this.#places.length };
    this.#places.push(place);
    return place;
  }

  /** Leaves a place. It does nothing for a member that has left already. */
  leave(place: Place<Member>): void {
    if (this.#places[place.at] !== place) return;
    const last = this.#places.pop()!;
    if (last === place) return;
    last.at = place.at;
    this.#places[place.at] = last;
  }
}

/** A member's place, from `enter` to `leave`. */
export interface Place<Member> {
  readonly member: Member;
  at: number;
}

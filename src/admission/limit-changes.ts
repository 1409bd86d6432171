/** The changes of limits that a node has heard of. Pure. docs/design/usage.md, Limits that change. */

export interface LimitChanges {
  /** Rises whenever something is heard. */
  readonly edition: number;
  /** Whether one of these had other limits behind that edition. */
  concern(subjects: readonly string[], since: number): boolean;
}

/** The changes of a store in which only plans have limits. */
export const noLimitChanges: LimitChanges = { edition: 0, concern: () => false };

/** Those that are not kept any more may have been anybody's. */
const kept_max = 10_000;

export class HeardChanges implements LimitChanges {
  #edition = 0;
  /** Behind this edition all is known. */
  #knownFrom = 0;
  /** The edition of the last change of each; the oldest first. */
  readonly #last = new Map<string, number>();

  get edition(): number {
    return this.#edition;
  }

  /** Ids of organizations, teams and keys; null: of anybody's. */
  hear(subjects: readonly string[] | null): void {
    if (subjects?.length === 0) return;
    this.#edition += 1;
    if (subjects === null) {
      this.#last.clear();
      this.#knownFrom = this.#edition;
      return;
    }
    for (const id of subjects) {
      this.#last.delete(id);
      this.#last.set(id, this.#edition);
    }
    for (const [id, edition] of this.#last) {
      if (this.#last.size <= kept_max) return;
      this.#last.delete(id);
      this.#knownFrom = edition;
    }
  }

  concern(subjects: readonly string[], since: number): boolean {
    return since < this.#knownFrom || subjects.some((id) => (this.#last.get(id) ?? 0) > since);
  }
}

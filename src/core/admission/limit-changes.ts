/** The changes of limits that a node knows of: docs/design/usage.md, Limits that change. Pure. */

export interface LimitChanges {
  /** Rises with each change. */
  readonly edition: number;
  /** Reports whether the limits of one of these have changed since that edition. */
  concern(subjects: readonly string[], since: number): boolean;
}

/** The changes of a store in which only plans have limits. */
export const noLimitChanges: LimitChanges = { edition: 0, concern: () => false };

/** A change that is no longer kept may have been anybody's. */
const kept_max = 10_000;

export class HeardChanges implements LimitChanges {
  #edition = 0;
  /** All changes after this edition are known. */
  #knownFrom = 0;
  /** The edition of the last change of each subject; the oldest first. */
  readonly #last = new Map<string, number>();

  get edition(): number {
    return this.#edition;
  }

  /** The ids of organizations, teams and keys; null: any of them may have changed. */
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

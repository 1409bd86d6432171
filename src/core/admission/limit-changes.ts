/**
 * The changes of limits (of keys, teams and organizations) that a node knows of: docs/design/usage.md, Limits that
 * change. Pure.
 */

export interface LimitChanges {
  /** A number that rises with each change of a limit. */
  readonly edition: number;
  /** Whether limits of these organizations, teams, people or keys (ids) changed since `edition` was `since`. */
  concern(subjects: readonly string[], since: number): boolean;
}

/** For a store in which only plans have limits: no other limit ever changes. */
export const noLimitChanges: LimitChanges = { edition: 0, concern: () => false };

/** The number of changes that are kept. An older change counts as one of every subject's limits. */
const kept_max = 10_000;

export class HeardChanges implements LimitChanges {
  #edition = 0;
  /** The oldest `edition` from which all changes are still known. */
  #knownFrom = 0;
  /** For each subject, the `edition` at which its limits last changed; the oldest comes first. */
  readonly #last = new Map<string, number>();

  get edition(): number {
    return this.#edition;
  }

  /** Records a change of the limits of these subjects (ids); null: any subject's limits may have changed. */
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

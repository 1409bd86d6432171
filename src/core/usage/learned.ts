/**
 * A bounded memory of what was learned about models or routes, by name. It knows which entries were learned since it
 * was last saved. Saving is done elsewhere (calibration-saver.ts), and learning never waits.
 */

/**
 * The most names in one memory, and the most rows that are read at a start. A larger catalog learns some of them again.
 */
export const learned_max = 1000;

/** The methods of a memory that its store uses. */
export interface Kept<Known> {
  /** Takes in a stored value if it is plausible. A value that was learned here is kept. */
  recall(name: string, known: Known): void;
  /** The entries that were learned since the last call. */
  changes(): Map<string, Known>;
  /** Counts these entries as changed again, because they could not be saved. */
  unwritten(names: Iterable<string>): void;
}

export interface Learned<Known> extends Kept<Known> {
  get(name: string): Known | undefined;
  /** Learns an entry. If there are too many, the one that was learned longest ago is dropped. */
  learn(name: string, known: Known): void;
}

export function learned<Known>(names_max: number, isPlausible: (known: Known) => boolean): Learned<Known> {
  const all = new Map<string, Known>();
  const changed = new Set<string>();

  function forget(name: string): void {
    all.delete(name);
    changed.delete(name);
  }

  return {
    get: (name) => all.get(name),
    learn(name, known) {
      all.delete(name);
      if (all.size >= names_max) forget(all.keys().next().value!);
      all.set(name, known);
      changed.add(name);
    },
    recall(name, known) {
      if (all.has(name) || all.size >= names_max || !isPlausible(known)) return;
      all.set(name, known);
    },
    changes() {
      const found = new Map([...changed].map((name) => [name, all.get(name)!]));
      changed.clear();
      return found;
    },
    unwritten(unkept) {
      for (const name of unkept) if (all.has(name)) changed.add(name);
    },
  };
}

/**
 * A bounded memory of what was learned of models or routes, by name. It tracks what was learned since it was last
 * saved. Saving is done elsewhere (calibration-saver.ts), and learning waits for nothing.
 */

/** The most names in one memory, and the most rows that are read at a start. A larger catalog learns some again. */
export const learned_max = 1000;

/** The interface for a store. */
export interface Kept<Known> {
  /** Takes in stored values that are plausible. Values that were learned here are kept. */
  recall(name: string, known: Known): void;
  /** The entries that were learned since the last call. */
  changes(): Map<string, Known>;
  /** The entries could not be saved, and count as changed again. */
  unwritten(names: Iterable<string>): void;
}

export interface Learned<Known> extends Kept<Known> {
  get(name: string): Known | undefined;
  /** The entry that was learned longest ago is dropped. */
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

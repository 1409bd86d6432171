/**
 * A bounded memory of what was learned of models or routes, by name. It knows what was learned since it was last
 * written down. Writing down is another's affair (calibration-saver.ts); learning waits for nobody.
 */

/** Names in one memory, and rows that are read at a start: a catalog that has more relearns some. */
export const learned_max = 1000;

/** The side that a store sees. */
export interface Kept<Known> {
  /** Takes in what a store knew, where it is plausible; what was learned here stands. */
  recall(name: string, known: Known): void;
  /** The entries that were learned since the last call. */
  changes(): Map<string, Known>;
  /** These could not be written, and are changes again. */
  unwritten(names: Iterable<string>): void;
}

export interface Learned<Known> extends Kept<Known> {
  get(name: string): Known | undefined;
  /** The entry that was learned longest ago makes room. */
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

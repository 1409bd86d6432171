/**
 * What engines taught of their models: one bounded memory, which knows what of it was learned since it was last written
 * down. Writing down is another's affair (calibration-saver.ts); learning waits for nobody.
 */

/** Models of one memory, and rows that are read at a start: a catalog that has more relearns some. */
export const models_learned_max = 1000;

/** The side that a store sees. */
export interface Kept<Known> {
  /** Takes in what a store knew, where it is plausible; what was learned here stands. */
  recall(model: string, known: Known): void;
  /** What was learned since this was last asked. */
  changes(): Map<string, Known>;
  /** These could not be written, and are changes again. */
  unwritten(models: Iterable<string>): void;
}

export interface Learned<Known> extends Kept<Known> {
  get(model: string): Known | undefined;
  /** The model that was learned longest ago makes room. */
  learn(model: string, known: Known): void;
}

export function learned<Known>(models_max: number, isPlausible: (known: Known) => boolean): Learned<Known> {
  const models = new Map<string, Known>();
  const changed = new Set<string>();

  function forget(model: string): void {
    models.delete(model);
    changed.delete(model);
  }

  return {
    get: (model) => models.get(model),
    learn(model, known) {
      models.delete(model);
      if (models.size >= models_max) forget(models.keys().next().value!);
      models.set(model, known);
      changed.add(model);
    },
    recall(model, known) {
      if (models.has(model) || models.size >= models_max || !isPlausible(known)) return;
      models.set(model, known);
    },
    changes() {
      const found = new Map([...changed].map((model) => [model, models.get(model)!]));
      changed.clear();
      return found;
    },
    unwritten(unkept) {
      for (const model of unkept) if (models.has(model)) changed.add(model);
    },
  };
}

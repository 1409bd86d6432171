/** Gives each call of an answer an id that is unique in it: engines repeat ids, or give none. Pure. */
export class CallIds {
  readonly #used = new Set<string>();
  /** For each id in use, the number to append to it when it occurs again, so that the new id is unique. */
  readonly #next = new Map<string, number>();
  readonly #unnamed: string;

  /** `unnamed`: the beginning of the ids of calls to which the engine gave none. */
  constructor(unnamed: string) {
    this.#unnamed = unnamed;
  }

  /** A unique id: the engine's own, unless another call has it. */
  unique(said: string): string {
    const engineId = said.toWellFormed();
    const base = engineId || this.#unnamed;
    for (let ordinal = this.#next.get(base) ?? 0; ; ordinal++) {
      const id = ordinal === 0 && engineId ? engineId : `${base}_${ordinal}`;
      if (this.#used.has(id)) continue;
      this.#used.add(id);
      this.#next.set(base, ordinal + 1);
      return id;
    }
  }
}

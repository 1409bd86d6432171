/** Ids of an answer's calls: engines repeat them, or give none. Pure. */
export class CallIds {
  readonly #used = new Set<string>();
  /** The number that is tried next for an id that was asked for before. */
  readonly #next = new Map<string, number>();
  readonly #unnamed: string;

  /** `unnamed`: what calls are named after to which the engine gave no id. */
  constructor(unnamed: string) {
    this.#unnamed = unnamed;
  }

  /** The engine's own, where no other call has it. */
  unique(said: string): string {
    const base = said || this.#unnamed;
    for (let ordinal = this.#next.get(base) ?? 0; ; ordinal++) {
      const id = ordinal === 0 && said ? said : `${base}_${ordinal}`;
      if (this.#used.has(id)) continue;
      this.#used.add(id);
      this.#next.set(base, ordinal + 1);
      return id;
    }
  }
}

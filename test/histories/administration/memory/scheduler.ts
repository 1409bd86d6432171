// Transactions that run at once in an order that a seed draws. Each waits for its turn before every statement, and for the
// locks that its statement takes, as rows and advisory locks of Postgres are taken. One of them works at a time.

/** The locks of a row in the order of their strength, as Postgres has them. */
const strengths = ["key share", "no key update", "update"] as const;
export type Strength = (typeof strengths)[number];

/**
 * How often the order of statements changes to another action: one statement in this many is done by any action, and
 * the others by the action that worked last.
 */
const changes_one_in = [1, 4, 16, 1_000];

/** The actions wait for each other in a ring: Postgres would end one of them with an error. */
export class Deadlock extends Error {}

/** The locks that a transaction has, by the name of the row. */
export type Holder = Map<string, Strength>;

interface Parked {
  wanted: { holder: Holder; name: string; strength: Strength } | null;
  go(): void;
}

export class Scheduler {
  readonly #holders = new Set<Holder>();
  readonly #parked: Parked[] = [];
  #draw: ((below: number) => number) | null = null;
  #rested: (() => void) | null = null;

  /**
   * Runs the actions at once; `draw` chooses whose statement is next. In some orders mostly the same action does the
   * next statement, up to one whole action after the other, as on a busy machine; in other orders any action does.
   * Throws Deadlock.
   */
  async atOnce<T>(acts: readonly (() => Promise<T>)[], draw: (below: number) => number): Promise<T[]> {
    this.#draw = acts.length > 1 ? draw : null;
    let running = acts.length;
    const ended = () => {
      running -= 1;
      this.#rested?.();
    };
    const outcomes: Promise<T>[] = [];
    for (const at of shuffled(acts.length, draw)) outcomes[at] = this.turn().then(acts[at]).finally(ended);
    for (const outcome of outcomes) outcome.catch(() => {});
    const changesOneIn = changes_one_in[draw(changes_one_in.length)]!;
    while (this.#draw && running > 0) {
      const free = this.#parked.filter((one) => this.#isFree(one));
      if (free.length === 0) {
        this.#parked.length = 0;
        this.#holders.clear();
        this.#draw = null;
        throw new Deadlock("acts wait for each other");
      }
      // The action that began to wait last is the one that worked last.
      await this.#step(draw(changesOneIn) === 0 ? free[draw(free.length)]! : free.at(-1)!);
    }
    this.#draw = null;
    return Promise.all(outcomes);
  }

  /** Waits until the scheduler chooses this act. */
  turn(): Promise<void> {
    return this.#draw ? this.#park(null) : done;
  }

  /**
   * Waits until the scheduler chooses this action and no other action has a lock that excludes this one; then takes the
   * lock.
   */
  async lock(holder: Holder, name: string, strength: Strength): Promise<void> {
    const has = holder.get(name);
    if (has && strengths.indexOf(has) >= strengths.indexOf(strength)) return this.turn();
    if (this.#draw) await this.#park({ holder, name, strength });
    holder.set(name, strength);
  }

  began(holder: Holder): void {
    this.#holders.add(holder);
  }

  ended(holder: Holder): void {
    this.#holders.delete(holder);
  }

  #park(wanted: Parked["wanted"]): Promise<void> {
    return new Promise((go) => {
      this.#parked.push({ wanted, go });
      this.#rested?.();
    });
  }

  /** Lets one act go on until it waits again, or has ended. */
  #step(one: Parked): Promise<void> {
    this.#parked.splice(this.#parked.indexOf(one), 1);
    return new Promise((resolve) => {
      this.#rested = () => {
        this.#rested = null;
        resolve();
      };
      one.go();
    });
  }

  #isFree({ wanted }: Parked): boolean {
    if (!wanted) return true;
    for (const other of this.#holders) {
      const has = other === wanted.holder ? undefined : other.get(wanted.name);
      if (has && excludes(has, wanted.strength)) return false;
    }
    return true;
  }
}

const done = Promise.resolve();

function shuffled(length: number, draw: (below: number) => number): number[] {
  const all = Array.from({ length }, (_, at) => at);
  for (let at = length - 1; at > 0; at--) {
    const other = draw(at + 1);
    [all[at], all[other]] = [all[other]!, all[at]!];
  }
  return all;
}

/** Whether two locks exclude each other: a key share does so with an update alone, and any two others do. */
function excludes(one: Strength, other: Strength): boolean {
  if (one === "key share") return other === "update";
  return other !== "key share" || one === "update";
}

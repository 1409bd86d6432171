/**
 * The limits in force as this node knows them: the plans, and which limits have changed. They are read again when a
 * message says that some limits changed; every second, because a message may be lost; and when a raise (a temporary
 * increase of a limit) ends, because no message announces its end. While the store does not answer, they stay as they
 * were. A plan that did not change stays the same object. docs/design/usage.md, Limits that change.
 */
import { isDeepStrictEqual } from "node:util";
import type { ChangedLimits, LimitStore, Plan } from "../store/plan.ts";
import { alignedClock, type Clock, gathered } from "../time/clock.ts";

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

export interface LimitsInForce {
  plans(): ReadonlyMap<string, Plan>;
  /** The changes of limits of keys, teams and organizations. */
  readonly changes: LimitChanges;
  /** Reads the limits again. Rejects while the store is away. */
  read(): Promise<void>;
  stop(): Promise<void>;
}

const every_ms = 1_000;
/** The shortest wait before the limits are read again because a raise (a temporary increase of a limit) ends. */
const soonest_ms = 20;

export async function limitsInForce(parts: {
  store: LimitStore;
  failed: (cause: unknown) => void;
  clock?: Pick<Clock, "after">;
}): Promise<LimitsInForce> {
  const { store, failed, clock = alignedClock() } = parts;
  let plans: ReadonlyMap<string, Plan> = new Map();
  let last: ChangedLimits | null = null;
  const changes = new HeardChanges();
  /** Resolves when the last reading that has begun ends. */
  let reading: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | null = null;
  const next_ms = () => Math.min(every_ms, Math.max(soonest_ms, last?.nextEnd_ms ?? every_ms));
  const again = () =>
    read().then(next_ms, (cause) => {
      failed(cause);
      return every_ms;
    });
  const looks = gathered(again, clock);

  /** Reads the limits. Only one read runs at a time. All callers who ask before the next read has begun share it. */
  function read(): Promise<void> {
    if (next) return next;
    next = reading.then(readNow);
    reading = next.catch(() => {});
    return next;
  }

  async function readNow(): Promise<void> {
    next = null;
    const [inForce, changed] = await Promise.all([store.inForce(), store.changes(last?.number ?? null, last?.at)]);
    const same = (plan: Plan) => {
      const before = plans.get(plan.name);
      return isDeepStrictEqual(plan, before) ? before! : plan;
    };
    plans = new Map(inForce.map((plan) => [plan.name, same(plan)]));
    last = changed;
    changes.hear(changed.subjects);
  }

  let heard: Promise<void> | null = null;
  const unlisten = await store.listen(() => {
    heard = read();
    heard.catch(failed);
  });
  // A store that begins to listen announces at once that changes may have been missed, and the announcement makes this
  // node read the limits: no second read is needed.
  await (heard ?? read());
  looks.ask(next_ms());
  return {
    plans: () => plans,
    changes,
    read,
    async stop() {
      await Promise.all([unlisten(), looks.stop(), reading]);
    },
  };
}

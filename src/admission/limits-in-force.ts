/**
 * The limits in force as this node knows them: the plans, and whose limits have changed. They are read again when a
 * message says that some changed, and every second, because a message may be lost. While the store is away, they stay
 * as they were. A plan that did not change stays the same object.
 */
import { isDeepStrictEqual } from "node:util";
import type { LimitStore, Plan } from "../store/plan.ts";
import type { Clock } from "../time/clock.ts";
import { gathered } from "../time/gathered.ts";
import { HeardChanges, type LimitChanges } from "./limit-changes.ts";

export interface LimitsInForce {
  plans(): ReadonlyMap<string, Plan>;
  /** The changes of limits of keys, teams and organizations. */
  readonly changes: LimitChanges;
  /** Rejects while the store is away. */
  read(): Promise<void>;
  stop(): Promise<void>;
}

const every_ms = 1_000;

export async function limitsInForce(parts: {
  store: LimitStore;
  failed: (cause: unknown) => void;
  clock?: Pick<Clock, "after">;
}): Promise<LimitsInForce> {
  const { store, failed, clock } = parts;
  let plans: ReadonlyMap<string, Plan> = new Map();
  let number: number | null = null;
  const changes = new HeardChanges();
  /** The reading that is under way, and one that has not begun. */
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | null = null;
  const again = () =>
    read()
      .catch(failed)
      .then(() => every_ms);
  const looks = gathered(again, clock);

  /** Readings run one after another; callers who ask before one has begun share it. */
  function read(): Promise<void> {
    if (next) return next;
    next = last.then(readNow);
    last = next.catch(() => {});
    return next;
  }

  async function readNow(): Promise<void> {
    next = null;
    const [inForce, changed] = await Promise.all([store.inForce(), store.changes(number)]);
    const same = (plan: Plan) => {
      const before = plans.get(plan.name);
      return isDeepStrictEqual(plan, before) ? before! : plan;
    };
    plans = new Map(inForce.map((plan) => [plan.name, same(plan)]));
    number = changed.number;
    changes.hear(changed.subjects);
  }

  const unlisten = await store.listen(() => void read().catch(failed));
  await read();
  looks.ask(every_ms);
  return {
    plans: () => plans,
    changes,
    read,
    async stop() {
      await Promise.all([unlisten(), looks.stop(), last]);
    },
  };
}

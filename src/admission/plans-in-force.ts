/**
 * The plans in force as this node knows them: read anew when others are published, and every second, for a message may be
 * lost. While the store is away they stay as they were. A plan that did not change stays the same object.
 */
import { isDeepStrictEqual } from "node:util";
import type { Plan, PlanStore } from "../store/plan.ts";
import type { Clock } from "../time/clock.ts";
import { gathered } from "../time/gathered.ts";

export interface PlansInForce {
  current(): ReadonlyMap<string, Plan>;
  /** Rejects when the store is away. */
  read(): Promise<void>;
  stop(): Promise<void>;
}

const every_ms = 1_000;

export async function plansInForce(parts: {
  store: Pick<PlanStore, "inForce" | "listen">;
  failed: (cause: unknown) => void;
  clock?: Pick<Clock, "after">;
}): Promise<PlansInForce> {
  let current: ReadonlyMap<string, Plan> = new Map();
  const again = () =>
    read()
      .catch(parts.failed)
      .then(() => every_ms);
  const looks = gathered(again, parts.clock);

  async function read(): Promise<void> {
    const plans = await parts.store.inForce();
    const same = (plan: Plan) => {
      const before = current.get(plan.name);
      return isDeepStrictEqual(plan, before) ? before! : plan;
    };
    current = new Map(plans.map((plan) => [plan.name, same(plan)]));
  }

  const unlisten = await parts.store.listen(() => void read().catch(parts.failed));
  await read();
  looks.ask(every_ms);
  return {
    current: () => current,
    read,
    async stop() {
      await Promise.all([unlisten(), looks.stop()]);
    },
  };
}

/**
 * A hint, and no more: whether an organization has so much room that its next request will surely be granted, so that the
 * engine may be asked while the ledger still decides. It comes from this node's last grant; a refusal or an outage takes it
 * back. Where it errs, an engine has begun in vain: nothing is forwarded before the grant.
 */
import type { WindowReadings } from "../store/ledger.ts";
import { windowKinds } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";

export interface Ample {
  /** `units` is what the request will hold; `running` how many requests run on this node. */
  isAmple(organizationId: string, plan: Plan, units: number, running: number): boolean;
  learn(organizationId: string, windows: WindowReadings): void;
  forget(organizationId: string): void;
}

/** Older grants say nothing any more. */
export const believed_ms = 5_000;
const organizations_max = 10_000;
/**
 * A window has ample room if it fits this many such requests; a concurrency, if it is this many times the requests that run
 * here.
 */
export const holds_fit_min = 20;
export const running_fit_min = 4;

export function ample(now_ms: () => number): Ample {
  const known = new Map<string, { windows: WindowReadings; at_ms: number }>();
  return {
    isAmple(organizationId, plan, units, running) {
      const last = known.get(organizationId);
      if (!last || now_ms() - last.at_ms > believed_ms) return false;
      if (plan.concurrentRequests !== null && running * running_fit_min >= plan.concurrentRequests) return false;
      for (const kind of windowKinds) {
        const { used, held } = last.windows[kind];
        const limit = plan[kind];
        if (limit !== null && used + held + holds_fit_min * units > limit) return false;
      }
      return true;
    },
    learn(organizationId, windows) {
      known.delete(organizationId);
      if (known.size >= organizations_max) known.delete(known.keys().next().value!);
      known.set(organizationId, { windows, at_ms: now_ms() });
    },
    forget: (organizationId) => void known.delete(organizationId),
  };
}

/**
 * Limits the attempts beyond the first to a share of the requests of the last minute, with a minimum for quiet times.
 * So an outage is not multiplied: failing engines get at most a fifth more than clients send. Pure.
 */

export interface RetryBudget {
  /** Counts a request, of which each permits a share of an attempt. */
  offered(now_ms: number): void;
  /** Counts one more attempt, if it may be made; false if it may not. */
  take(now_ms: number): boolean;
}

/** The budgets of all models, by public id: an outage of one model uses up nothing of another's. */
export function retryBudgets(): (model: string) => RetryBudget {
  const budgets = new Map<string, RetryBudget>();
  return (model) => {
    const known = budgets.get(model) ?? retryBudget();
    budgets.set(model, known);
    return known;
  };
}

const share = 0.2;
const floor = 20;
const slot_ms = 5_000;
const slots = 12;

interface Slot {
  number: number;
  requests: number;
  retries: number;
}

export function retryBudget(): RetryBudget {
  const ring: Slot[] = Array.from({ length: slots }, () => ({ number: -1, requests: 0, retries: 0 }));

  function slotAt(now_ms: number): Slot {
    const number = Math.floor(now_ms / slot_ms);
    const slot = ring[number % slots]!;
    if (slot.number !== number) Object.assign(slot, { number, requests: 0, retries: 0 });
    return slot;
  }

  return {
    offered(now_ms) {
      slotAt(now_ms).requests += 1;
    },
    take(now_ms) {
      const slot = slotAt(now_ms);
      const inWindow = ring.filter(({ number }) => number > slot.number - slots);
      const requests = inWindow.reduce((sum, each) => sum + each.requests, 0);
      const retries = inWindow.reduce((sum, each) => sum + each.retries, 0);
      if (retries >= Math.max(floor, requests * share)) return false;
      slot.retries += 1;
      return true;
    },
  };
}

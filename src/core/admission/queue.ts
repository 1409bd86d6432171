/**
 * The ledger's commands that wait to be sent, and which of them are sent together. A command that no store will ever
 * accept must not hold up the others: commands that failed together are sent again in four smaller batches, and so on
 * until each is sent alone. Pure.
 */
import type { Command, LedgerAnswer } from "../store/ledger.ts";

export interface Item {
  command: Command;
  resolve(answer: LedgerAnswer): void;
  reject(error: unknown): void;
  cancelDeadline: (() => void) | null;
  done: boolean;
  /**
   * How often the command failed. Commands that failed equally often are sent together; with each failure only a
   * quarter as many are sent together as before.
   */
  failures: number;
  notBefore_ms: number;
}

/** Whether a request waits for the command's answer. */
export const isAwaited = ({ command: { verb } }: Item) => verb === "admit" || verb === "grow";

export function commandQueue(batch_commands_max: number) {
  let urgent: Item[] = [];
  let settlements: Item[] = [];
  let retriesTurn = false;

  /**
   * Picks up to a batch of commands: urgent ones first, but a quarter of the batch is kept for settlements if some
   * wait.
   */
  function pick(may: (item: Item) => boolean, failures: number): Item[] {
    const most = Math.max(1, batch_commands_max >> Math.min(30, 2 * failures));
    const urgentMost = settlements.some(may) ? most - Math.ceil(most / 4) : most;
    const batch: Item[] = [];
    urgent = urgent.filter((item) => !(batch.length < urgentMost && may(item) && batch.push(item)));
    settlements = settlements.filter((item) => !(batch.length < most && may(item) && batch.push(item)));
    return batch;
  }

  return {
    add(item: Item): void {
      (item.command.verb === "settle" ? settlements : urgent).push(item);
    },
    remove(item: Item): void {
      if (item.command.verb === "settle") settlements = settlements.filter((one) => one !== item);
      else urgent = urgent.filter((one) => one !== item);
    },
    isEmpty: () => urgent.length + settlements.length === 0,
    /** The time at which the next commands may be sent: at the earliest `now_ms`; Infinity if there are none. */
    next_ms: (now_ms: number) => Math.min(nextOf(urgent, now_ms), nextOf(settlements, now_ms)),
    /** As `next_ms`, but only for commands that a request waits for. */
    awaitedNext_ms: (now_ms: number) => nextOf(urgent, now_ms, isAwaited),
    /** The commands that are sent now: in turn those that have failed before (most often first), and the others. */
    take(now_ms: number): Item[] {
      const ready = (item: Item) => item.notBefore_ms <= now_ms;
      let failures = 0;
      for (const queue of [urgent, settlements]) {
        for (const item of queue) if (ready(item)) failures = Math.max(failures, item.failures);
      }
      const retries = () => pick((item) => item.failures === failures && ready(item), failures);
      retriesTurn = failures > 0 && !retriesTurn;
      if (retriesTurn) return retries();
      const batch = pick((item) => item.failures === 0, 0);
      return batch.length > 0 || failures === 0 ? batch : retries();
    },
    /** Resets the failures and the wait of every command, because the store was unreachable and answers again. */
    forgive(): void {
      for (const item of [...urgent, ...settlements]) {
        item.failures = 0;
        item.notBefore_ms = Number.NEGATIVE_INFINITY;
      }
    },
  };
}

function nextOf(items: readonly Item[], now_ms: number, may = (_item: Item) => true): number {
  let next_ms = Number.POSITIVE_INFINITY;
  for (const item of items) {
    if (!may(item)) continue;
    if (item.notBefore_ms <= now_ms) return now_ms;
    next_ms = Math.min(next_ms, item.notBefore_ms);
  }
  return next_ms;
}

/**
 * The ledger's commands of one node, gathered into batches. A batch leaves at once, unless less than `gap_ms` has passed
 * since the last; settlements ride along. One that fails is sent again, for every verb is idempotent: an admission until
 * its deadline, a settlement until it succeeds, a checkpoint never (the next one says more).
 *
 * A command that no store will ever take must not hold up the rest. What failed together is sent again in quarters, and
 * so on until it is alone; only a store that was away as a whole makes no command suspect.
 */
import { Fault } from "../inference/fault.ts";
import type { Answer, AnswerOf, Command, Ledger } from "../store/ledger.ts";
import type { Clock } from "./clock.ts";

export interface BatcherSettings {
  /** Between the departures of two batches. */
  gap_ms: number;
  batch_commands_max: number;
  /** Batches on their way at a time. */
  batches_max: number;
  /** Settlements that wait for a store that is away. Above it nothing new is admitted, which bounds their number. */
  settlements_waiting_max: number;
  /** The wait before a failed command is sent again: doubled from the first to the second. */
  retry_ms_min: number;
  retry_ms_max: number;
}

export const batcherSettings: BatcherSettings = {
  gap_ms: 5,
  batch_commands_max: 256,
  batches_max: 2,
  settlements_waiting_max: 20_000,
  retry_ms_min: 25,
  retry_ms_max: 1_000,
};

/** So many failed batches, with no success between them, are the store's fault and no command's. */
const outage_batches = 3;

export interface Batcher {
  /**
   * The ledger's answer. Rejects with the Fault `storage_unavailable` when the deadline (of the clock) passes first; a
   * checkpoint also with what its one attempt met. Without a deadline it is sent until it succeeds.
   */
  submit<C extends Command>(command: C, deadline_ms?: number): Promise<AnswerOf<C>>;
  /** Settlements that the store has not confirmed. */
  waiting(): number;
  /** Milliseconds since the ledger last answered while commands waited for it; 0 when nothing waits. */
  silence_ms(): number;
  /** Admits nothing more, and resolves when all settlements are confirmed or so much time has passed; answers how many are not. */
  stop(within_ms: number): Promise<number>;
}

interface Item {
  command: Command;
  answered(answer: Answer): void;
  failed(error: unknown): void;
  done: boolean;
  /** Commands that failed equally often are sent together, a quarter as many for each failure. */
  failures: number;
  notBefore_ms: number;
}

export interface BatcherParts {
  ledger: Pick<Ledger, "run">;
  clock: Clock;
  /** From 0 to 1. */
  random: () => number;
  /** Told of each failed batch. */
  failed?: (error: unknown, commands: number) => void;
}

export function batcher(parts: BatcherParts, settings: BatcherSettings = batcherSettings): Batcher {
  const { ledger, clock, random } = parts;
  let urgent: Item[] = [];
  let settlements: Item[] = [];
  let settlementsWaiting = 0;
  let underway = 0;
  /** Batches that failed since one succeeded. */
  let failedInARow = 0;
  let retriesTurn = false;
  let lastFlush_ms = Number.NEGATIVE_INFINITY;
  let lastAnswer_ms = clock.now_ms();
  let stopped = false;
  let wake: { at_ms: number; cancel: () => void } | null = null;
  let pumpDue = false;
  const idle = new Set<() => void>();

  /** Looks once more when this turn of the event loop is over, so that what was submitted together leaves together. */
  function pumpSoon(): void {
    if (pumpDue) return;
    pumpDue = true;
    queueMicrotask(() => {
      pumpDue = false;
      pump();
    });
  }

  function pump(): void {
    while (underway < settings.batches_max) {
      const now_ms = clock.now_ms();
      const next_ms = Math.max(earliest(now_ms), lastFlush_ms + settings.gap_ms);
      if (next_ms > now_ms) {
        wakeAt(next_ms, now_ms);
        return;
      }
      const batch = take(now_ms);
      if (batch.length === 0) return;
      lastFlush_ms = now_ms;
      send(batch);
    }
  }

  function earliest(now_ms: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (const queue of [urgent, settlements]) {
      for (const item of queue) {
        if (item.notBefore_ms <= now_ms) return now_ms;
        first = Math.min(first, item.notBefore_ms);
      }
    }
    return first;
  }

  function wakeAt(at_ms: number, now_ms: number): void {
    if (at_ms === Number.POSITIVE_INFINITY || (wake && wake.at_ms <= at_ms)) return;
    wake?.cancel();
    const cancel = clock.after(at_ms - now_ms, () => {
      wake = null;
      pump();
    });
    wake = { at_ms, cancel };
  }

  /** What may leave now: what failed before and what did not, by turns. */
  function take(now_ms: number): Item[] {
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
  }

  /** Takes commands out of the queues: the urgent first, but a quarter is kept for settlements where some wait. */
  function pick(may: (item: Item) => boolean, failures: number): Item[] {
    const most = Math.max(1, settings.batch_commands_max >> Math.min(30, 2 * failures));
    const urgentMost = settlements.some(may) ? most - Math.ceil(most / 4) : most;
    const batch: Item[] = [];
    urgent = urgent.filter((item) => !(batch.length < urgentMost && may(item) && batch.push(item)));
    settlements = settlements.filter((item) => !(batch.length < most && may(item) && batch.push(item)));
    return batch;
  }

  function remove(item: Item): void {
    if (item.command.verb === "settle") settlements = settlements.filter((one) => one !== item);
    else urgent = urgent.filter((one) => one !== item);
  }

  function send(batch: Item[]): void {
    underway += 1;
    run(batch.map((item) => item.command))
      .then(
        (answers) => {
          lastAnswer_ms = clock.now_ms();
          if (failedInARow >= outage_batches) for (const item of [...urgent, ...settlements]) forgive(item);
          failedInARow = 0;
          for (const [index, item] of batch.entries()) item.answered(answers[index]!);
        },
        (error) => {
          failedInARow += 1;
          parts.failed?.(error, batch.length);
          for (const item of batch) again(item, error);
        },
      )
      .finally(() => {
        underway -= 1;
        pump();
      });
  }

  /** A ledger that throws instead of rejecting has failed as well. */
  async function run(commands: Command[]): Promise<Answer[]> {
    return ledger.run(commands);
  }

  function again(item: Item, error: unknown): void {
    if (item.done) return;
    if (item.command.verb === "checkpoint") {
      item.failed(error);
      return;
    }
    item.failures += 1;
    const wait_ms = Math.min(settings.retry_ms_max, settings.retry_ms_min * 2 ** (item.failures - 1));
    item.notBefore_ms = clock.now_ms() + wait_ms * (0.5 + random() / 2);
    enqueue(item);
  }

  /** The store was away, and is back: nobody is suspected, and nobody need wait. */
  function forgive(item: Item): void {
    item.failures = 0;
    item.notBefore_ms = Number.NEGATIVE_INFINITY;
  }

  function enqueue(item: Item): void {
    if (item.command.verb === "settle") settlements.push(item);
    else urgent.push(item);
  }
  return {
    submit<C extends Command>(command: C, deadline_ms?: number): Promise<AnswerOf<C>> {
      const isSettlement = command.verb === "settle";
      if (!isSettlement && stopped) return Promise.reject(unavailable("The service is shutting down."));
      if (command.verb === "admit" && settlementsWaiting >= settings.settlements_waiting_max) {
        return Promise.reject(unavailable("The usage store does not confirm what was used."));
      }
      return new Promise<AnswerOf<C>>((resolve, reject) => {
        if (urgent.length + settlements.length + underway === 0) lastAnswer_ms = clock.now_ms();
        let cancelDeadline: (() => void) | undefined;
        const finish = () => {
          item.done = true;
          cancelDeadline?.();
          if (isSettlement && --settlementsWaiting === 0) for (const told of idle) told();
        };
        const item: Item = {
          command,
          done: false,
          failures: 0,
          notBefore_ms: Number.NEGATIVE_INFINITY,
          answered(answer) {
            if (item.done) return;
            finish();
            resolve(answer as AnswerOf<C>);
          },
          failed(error) {
            if (item.done) return;
            finish();
            reject(error);
          },
        };
        if (isSettlement) settlementsWaiting += 1;
        if (deadline_ms !== undefined) {
          cancelDeadline = clock.after(Math.max(0, deadline_ms - clock.now_ms()), () => {
            remove(item);
            item.failed(unavailable("The usage store did not answer in time."));
          });
        }
        enqueue(item);
        pumpSoon();
      });
    },
    waiting: () => settlementsWaiting,
    silence_ms: () => (urgent.length + settlements.length + underway === 0 ? 0 : clock.now_ms() - lastAnswer_ms),
    async stop(within_ms) {
      stopped = true;
      if (settlementsWaiting > 0) {
        await new Promise<void>((resolve) => {
          const cancel = clock.after(within_ms, () => told());
          const told = () => {
            cancel();
            idle.delete(told);
            resolve();
          };
          idle.add(told);
        });
      }
      wake?.cancel();
      return settlementsWaiting;
    },
  };
}

function unavailable(why: string): Fault {
  return new Fault("storage_unavailable", `${why} Nothing was charged; please try again shortly.`, {
    retryAfterSeconds: 5,
  });
}

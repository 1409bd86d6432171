/**
 * Gathers one node's commands for the ledger into batches. A command that somebody waits for leaves at once, unless a
 * batch is on its way or the last batch had several such commands. Then up to `gap_ms` passes before the next batch is
 * sent, so that it gathers many commands. Settlements (final charges) and checkpoints (the usage so far) of requests
 * join them, or leave `gap_ms` after the last batch.
 *
 * The commands of a failed batch may be sent again, because every command is idempotent:
 *
 * - an admission until its deadline;
 * - a settlement until it succeeds;
 * - a checkpoint never, because the next checkpoint contains its counts.
 *
 * If batch after batch fails, the store is at fault. If one batch fails among others that succeed, it contains a
 * command that no store will ever accept, and queue.ts keeps that command from holding up the others.
 */
import { Fault } from "../inference/fault.ts";
import type { AnswerOf, Command, Ledger, LedgerAnswer } from "../store/ledger.ts";
import type { Clock } from "../time/clock.ts";
import { commandQueue, type Item, isAwaited } from "./queue.ts";

export const batcherSettings = {
  /**
   * The least time between the sending of two batches, unless the last batch had few commands that somebody waits for.
   */
  gap_ms: 5,
  batch_commands_max: 256,
  /** The most batches that wait for the store's answer at a time. */
  batches_max: 2,
  /**
   * The most settlements that may wait while the store does not answer. At this number nothing new is admitted, so that
   * never many more settlements wait.
   */
  settlements_waiting_max: 20_000,
  /**
   * The wait before a failed command is sent again: `retry_ms_min` at first, then doubled with each failure up to
   * `retry_ms_max`.
   */
  retry_ms_min: 25,
  retry_ms_max: 1_000,
};
export type BatcherSettings = typeof batcherSettings;

/**
 * After a batch with this many commands that somebody waits for, the next batch gathers commands for the whole of
 * `gap_ms`.
 */
const fullGap_commands = 3;

/** After this many failed batches without a success in between, the store is at fault, and not a command. */
const outage_batches = 3;

export interface Batcher {
  /**
   * Returns the ledger's answer. Rejects with the Fault `storage_unavailable` if the deadline (a time of the node's
   * clock) passes first; a checkpoint also rejects if its one attempt fails. Without a deadline, the command is sent
   * until it succeeds.
   */
  submit<C extends Command>(command: C, deadline_ms?: number): Promise<AnswerOf<C>>;
  waiting(): number;
  /** Milliseconds since the ledger last answered while commands waited for it; 0 if none waits. */
  silence_ms(): number;
  /**
   * Admits nothing more, and resolves when all settlements are confirmed or this time has passed. Returns how many are
   * not confirmed.
   */
  stop(within_ms: number): Promise<number>;
}

export interface BatcherParts {
  ledger: Pick<Ledger, "run">;
  clock: Clock;
  random: () => number;
  failed?: ((error: unknown, commands: number) => void) | undefined;
  /** Called for each batch that was sent, once the store has answered it or it has failed. */
  sent?: ((commands: number, ms: number, isAnswered: boolean) => void) | undefined;
}

export function batcher(parts: BatcherParts, settings: BatcherSettings = batcherSettings): Batcher {
  const { ledger, clock, random } = parts;
  const queue = commandQueue(settings.batch_commands_max);
  const idle = new Set<() => void>();
  let settlementsWaiting = 0;
  let underway = 0;
  let failedInARow = 0;
  let lastFlush_ms = Number.NEGATIVE_INFINITY;
  /** The number of commands in the last batch whose answers somebody waited for. */
  let lastAwaited = 0;
  let lastAnswer_ms = clock.now_ms();
  let stopped = false;
  let wake: { at_ms: number; cancel: () => void } | null = null;
  let pumpDue = false;

  /**
   * Calls `pump` at the end of this turn of the event loop, so that commands that were submitted together are sent
   * together.
   */
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
      const gathered_ms = Math.max(queue.next_ms(now_ms), lastFlush_ms + settings.gap_ms);
      const next_ms = Math.min(gathered_ms, Math.max(queue.awaitedNext_ms(now_ms), opens_ms()));
      if (next_ms > now_ms) {
        wakeAt(next_ms, now_ms);
        return;
      }
      lastFlush_ms = now_ms;
      const batch = queue.take(now_ms);
      lastAwaited = batch.filter(isAwaited).length;
      send(batch);
    }
  }

  /** The time from which a command that somebody waits for may be sent. */
  function opens_ms(): number {
    const share = underway > 0 ? 1 : Math.min(1, (lastAwaited - 1) / (fullGap_commands - 1));
    return lastFlush_ms + settings.gap_ms * share;
  }

  function wakeAt(at_ms: number, now_ms: number): void {
    if (wake && wake.at_ms <= at_ms && at_ms !== Number.POSITIVE_INFINITY) return;
    wake?.cancel();
    wake = null;
    if (at_ms === Number.POSITIVE_INFINITY) return;
    const cancel = clock.after(at_ms - now_ms, () => {
      wake = null;
      pump();
    });
    wake = { at_ms, cancel };
  }

  async function send(batch: Item[]): Promise<void> {
    underway += 1;
    const sent_ms = clock.now_ms();
    try {
      const answers = await ledger.run(batch.map((item) => item.command));
      lastAnswer_ms = clock.now_ms();
      parts.sent?.(batch.length, lastAnswer_ms - sent_ms, true);
      if (failedInARow >= outage_batches) queue.forgive();
      failedInARow = 0;
      for (const [index, item] of batch.entries()) if (end(item)) item.resolve(answers[index]!);
    } catch (error) {
      failedInARow += 1;
      parts.failed?.(error, batch.length);
      parts.sent?.(batch.length, clock.now_ms() - sent_ms, false);
      for (const item of batch) again(item, error);
    } finally {
      underway -= 1;
      pump();
    }
  }

  function again(item: Item, error: unknown): void {
    if (item.done) return;
    if (item.command.verb === "checkpoint") {
      fail(item, error);
      return;
    }
    item.failures += 1;
    const wait_ms = Math.min(settings.retry_ms_max, settings.retry_ms_min * 2 ** (item.failures - 1));
    item.notBefore_ms = clock.now_ms() + wait_ms * (0.5 + random() / 2);
    queue.add(item);
  }

  /** Removes the item from the queue. False if it had been removed before. */
  function end(item: Item): boolean {
    if (item.done) return false;
    item.done = true;
    item.cancelDeadline?.();
    if (item.command.verb === "settle") settlementConfirmed();
    return true;
  }

  function tooLate(item: Item): void {
    queue.remove(item);
    fail(item, unavailable("The usage store did not answer in time."));
  }

  function fail(item: Item, error: unknown): void {
    if (end(item)) item.reject(error);
  }

  function settlementConfirmed(): void {
    settlementsWaiting -= 1;
    if (settlementsWaiting === 0) for (const told of idle) told();
  }

  const nothingWaits = () => underway === 0 && queue.isEmpty();

  return {
    submit<C extends Command>(command: C, deadline_ms?: number): Promise<AnswerOf<C>> {
      // Only admissions are refused. Commands of a running request are accepted until its end. If the growth of its
      // hold were refused at once, the request would not learn that the window is full, and would ask for ever.
      if (command.verb === "admit" && stopped) return Promise.reject(unavailable("The service is shutting down."));
      if (command.verb === "admit" && settlementsWaiting >= settings.settlements_waiting_max) {
        return Promise.reject(unavailable("The usage store has not confirmed earlier usage."));
      }
      const { promise, resolve, reject } = Promise.withResolvers<LedgerAnswer>();
      const item: Item = {
        command,
        resolve,
        reject,
        cancelDeadline: null,
        done: false,
        failures: 0,
        notBefore_ms: Number.NEGATIVE_INFINITY,
      };
      if (deadline_ms !== undefined)
        item.cancelDeadline = clock.after(deadline_ms - clock.now_ms(), () => tooLate(item));
      if (command.verb === "settle") settlementsWaiting += 1;
      if (nothingWaits()) lastAnswer_ms = clock.now_ms();
      queue.add(item);
      pumpSoon();
      return promise as Promise<AnswerOf<C>>;
    },
    waiting: () => settlementsWaiting,
    silence_ms: () => (nothingWaits() ? 0 : clock.now_ms() - lastAnswer_ms),
    async stop(within_ms) {
      stopped = true;
      if (settlementsWaiting > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        idle.add(resolve);
        const cancel = clock.after(within_ms, resolve);
        await promise;
        cancel();
        idle.delete(resolve);
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

/**
 * Follows which engines are drained: reads the drains after each message, and every second, because a message may be
 * lost.
 */
import type { Drain, DrainStore } from "../core/store/drain.ts";
import { type Clock, repeating } from "../core/time/clock.ts";
import { disposable } from "./foundation.ts";

interface DrainingDependencies {
  store: DrainStore;
  /** Called with all drains after each reading. */
  read(all: readonly Drain[]): void;
  /** Called when the store is away. Drained engines stay drained. */
  failed(cause: unknown): void;
  clock?: Pick<Clock, "after">;
}

const every_ms = 1_000;

/**
 * Follows the drains from a first reading on. Rejects if that fails: a node that has just started must send no request
 * to a drained engine.
 */
export async function followDrains({ store, read, failed, clock }: DrainingDependencies): Promise<AsyncDisposable> {
  await using ending = new AsyncDisposableStack();
  const look = async () => read(await store.listDrains());
  const lookAgain = () => look().catch(failed);
  ending.defer(await store.listen(() => void lookAgain()));
  await look();
  const looks = repeating(lookAgain, { every: every_ms }, clock);
  ending.defer(() => looks.stop());
  return disposable({}, ending);
}

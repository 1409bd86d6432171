/** Deletes expired rows of a store once an hour, in small steps, so that no other query waits long. */
import { type Repeating, repeating } from "../time/clock.ts";

export interface Forgetting {
  /** Deletes a number of expired rows. Returns whether there may be more. */
  forget(): Promise<boolean>;
  failed(cause: unknown): void;
  every_ms?: number;
  /** The pause between two deletions. */
  pause_ms?: number;
}

export function forgetting({ forget, failed, every_ms = 3_600_000, pause_ms = 100 }: Forgetting): Repeating {
  let isStopped = false;
  const rounds = repeating(round, { every: every_ms });

  async function round(): Promise<void> {
    try {
      while (!isStopped && (await forget())) await Bun.sleep(pause_ms);
    } catch (cause) {
      failed(cause);
    }
  }

  return {
    stop() {
      isStopped = true;
      return rounds.stop();
    },
  };
}

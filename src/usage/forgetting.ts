/** Drops what a store has kept long enough, hour by hour and little by little: it is never in anybody's way. */

export interface Forgetting {
  /** Drops some; answers whether there may be more. */
  forget(): Promise<boolean>;
  failed(cause: unknown): void;
  every_ms?: number;
  /** Between two deletions. */
  pause_ms?: number;
}

/** Answers what stops it. */
export function forgetting({ forget, failed, every_ms = 3_600_000, pause_ms = 100 }: Forgetting): () => void {
  let stopped = false;
  let running = false;
  const timer = setInterval(() => void round(), every_ms);
  timer.unref();

  async function round(): Promise<void> {
    if (running) return;
    running = true;
    try {
      while (!stopped && (await forget())) await new Promise((resolve) => setTimeout(resolve, pause_ms));
    } catch (cause) {
      failed(cause);
    } finally {
      running = false;
    }
  }

  return () => {
    stopped = true;
    clearInterval(timer);
  };
}

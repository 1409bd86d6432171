/**
 * Starts the worker's thread. In the executable, its file has the name that the build gave it; from source, its name on
 * disk.
 */
import type { Thread } from "./counter.ts";

export function startThread(isCompiled: boolean): Thread {
  const options = { ref: false } as WorkerOptions;
  if (isCompiled) return new Worker("./features/tokenizers/worker.ts", options) as unknown as Thread;
  return new Worker(new URL("./worker.ts", import.meta.url).href, options) as unknown as Thread;
}

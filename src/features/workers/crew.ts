/**
 * The workers of a node: starts them, replaces those that end, and ends when none can start any more or all were told
 * to stop.
 */
import type { Log } from "../../core/http/log.ts";
import type { FileRead, Order } from "./messages.ts";
import { isQuick, pauseAfter } from "./pause.ts";

export interface Child {
  send(order: Order): void;
  kill(): void;
  /** Resolves with the process's exit code, and the signal that ended it. */
  ended: Promise<{ code: number; signal: string | null }>;
}

export interface Worker {
  number: number;
  child: Child;
  /** When the worker began to accept connections; null if it does not yet. */
  serving_ms: number | null;
  /** The reason why the worker cannot admit requests; null if it can. */
  problem: string | null;
  /** The number of open requests, on average. */
  open: number;
  silent_s: number;
  /** The configuration file with which the worker started; null before that. */
  file: FileRead | null;
}

interface CrewParts {
  workers: number;
  start(worker: () => Worker, number: number): Child;
  log: Pick<Log, "event">;
  now_ms(): number;
  /** Called when a worker has ended; a replacement may follow. */
  gone(number: number): void;
}

type End = Awaited<Child["ended"]>;

export function crew(parts: CrewParts) {
  const { workers, log, now_ms } = parts;
  const running = new Map<number, Worker>();
  /** The key is a worker's number; the value is how many of its processes in a row ended soon after their start. */
  const quick = new Map<number, number>();
  const pauses = new Set<ReturnType<typeof setTimeout>>();
  /**
   * The workers whose first start was attempted, and those that wait for another attempt because the last one failed.
   */
  const tried = new Set<number>();
  const unstarted = new Set<number>();
  const began = Promise.withResolvers<string | null>();
  const ended = Promise.withResolvers<number>();
  let url: string | null = null;
  let deaths = 0;
  let exitCode = 0;
  let isStopping = false;

  function start(number: number): void {
    unstarted.delete(number);
    const child = parts.start(() => worker, number);
    const worker: Worker = { number, child, serving_ms: null, problem: null, open: 0, silent_s: 0, file: null };
    running.set(number, worker);
    void child.ended.then((end) => lost(worker, end));
  }

  function lost(worker: Worker, end: End): void {
    running.delete(worker.number);
    parts.gone(worker.number);
    if (isStopping) left(worker, end);
    else if (isReplaceable(worker)) replace(worker, end);
    else {
      // Ends the node: the worker has reported the reason, and the program that started the node decides what to do.
      clearPauses();
      began.resolve(null);
      ended.resolve(codeOf(end) || 1);
    }
  }

  /**
   * Handles the end of a worker that was told to stop. If the worker failed, the node ends with the worker's exit code,
   * and other nodes settle the requests that the worker held.
   */
  function left({ number, serving_ms }: Worker, end: End): void {
    const code = serving_ms === null ? 0 : codeOf(end);
    if (code !== 0) log.event("error", "worker_lost", { worker: number, ...causeOf(end) });
    exitCode = Math.max(exitCode, code);
    if (running.size === 0) ended.resolve(exitCode);
  }

  /**
   * Whether a worker is replaced. If no worker could start, none is replaced: the reason will not go away by itself.
   */
  function isReplaceable({ number, serving_ms }: Worker): boolean {
    attempted(number);
    if (serving_ms === null) unstarted.add(number);
    else deaths += 1;
    return unstarted.size < tried.size;
  }

  function replace({ number, serving_ms }: Worker, end: End): void {
    const failures = isQuick(serving_ms === null ? null : now_ms() - serving_ms) ? (quick.get(number) ?? 0) + 1 : 0;
    quick.set(number, failures);
    const again_ms = pauseAfter(failures);
    log.event("error", "worker_lost", { worker: number, ...causeOf(end), again_ms });
    const pause = setTimeout(() => {
      pauses.delete(pause);
      start(number);
    }, again_ms);
    pauses.add(pause);
  }

  /** Records that a worker's first attempt to start is over, whether it serves or not. */
  function attempted(number: number): void {
    tried.add(number);
    if (url !== null && tried.size === workers) began.resolve(url);
  }

  function clearPauses(): void {
    for (const pause of pauses) clearTimeout(pause);
  }

  // The first worker starts alone: it updates the schema, and a reason why it cannot start is reported once.
  start(1);
  return {
    serving: () => [...running.values()].filter(({ serving_ms }) => serving_ms !== null),
    serves(worker: Worker, at: string): void {
      worker.serving_ms = now_ms();
      unstarted.delete(worker.number);
      log.event("info", "worker_serving", { worker: worker.number });
      const isFirst = url === null;
      url ??= at;
      if (isFirst) for (let number = 2; number <= workers; number++) start(number);
      attempted(worker.number);
    },
    /** The number of workers that ended after they had served. */
    deaths: () => deaths,
    stop(signal: NodeJS.Signals): void {
      isStopping = true;
      clearPauses();
      for (const { serving_ms, child } of running.values()) {
        if (serving_ms !== null) child.send({ order: "stop", signal });
        // A process that does not serve yet has admitted nothing, so it is killed.
        else child.kill();
      }
      if (running.size === 0) ended.resolve(exitCode);
    },
    /** Resolves with the URL when every worker serves or has tried to start; null if none can start. */
    began: began.promise,
    /** The exit code of the node, when no worker is left. */
    ended: ended.promise,
  };
}

function causeOf({ code, signal }: End) {
  return signal === null ? { code } : { signal };
}

function codeOf({ code, signal }: End): number {
  return signal === null ? code : 1;
}

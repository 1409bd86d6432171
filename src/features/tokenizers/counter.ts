/**
 * Counts the tokens of bodies off the main thread, with up to two workers. The first body starts them. The workers are
 * ended when no body has come for a while, since a vocabulary takes a hundred megabytes. A body on which a worker
 * breaks down or takes too long is refused, because the main thread must not try where a worker failed. The next body
 * gets a new worker.
 */
import { Fault, type FaultCode } from "../../core/inference/fault.ts";
import { compact } from "../../core/protocol/json.ts";
import type { WorkerExamined, WorkerRequest } from "./examine.ts";
import { WaitingBodies, type WaitingBody } from "./waiting.ts";

export interface WorkerQuestion {
  number: number;
  asked: WorkerRequest;
}
export type WorkerAnswer = { number: number; examined: WorkerExamined } | { number: number; refused: Refused };
interface Refused {
  code: FaultCode;
  message: string;
  param?: string;
  body?: Record<string, unknown>;
}

/** A `TokenCounter` that also counts what this service wrote. */
export interface CountingWorkers {
  /**
   * Examines a body, whose memory is transferred to the worker. Throws the Fault of the body's first offence, or
   * `overloaded`.
   */
  examine(asked: WorkerRequest): Promise<WorkerExamined>;
  stop(): void;
}

/** The members of a Worker that this program uses. */
export interface Thread {
  /** Posts a question, a body to examine, to the worker. The transferred buffers belong to the worker from then on. */
  postMessage(question: WorkerQuestion, transfer: ArrayBuffer[]): void;
  terminate(): void;
  onmessage: ((event: { data: WorkerAnswer }) => void) | null;
  onerror: ((event: { message?: string; preventDefault?(): void }) => void) | null;
}

export interface CounterSettings {
  workers_max: number;
  /**
   * The most bodies that may wait, and the most bytes of them together; of one organization a quarter. Further requests
   * are refused as `overloaded`.
   */
  waiting_max: number;
  waiting_bytes_max: number;
  /** The longest time that a worker may take for one body, including the worker's start. */
  count_ms: number;
  idle_ms: number;
}
export const counterSettings: CounterSettings = {
  workers_max: 2,
  waiting_max: 256,
  waiting_bytes_max: 128 * 1024 * 1024,
  count_ms: 20_000,
  idle_ms: 60_000,
};

interface Job extends WaitingBody {
  asked: WorkerRequest;
  resolve(examined: WorkerExamined): void;
  reject(fault: Fault): void;
}

interface Crew {
  thread: Thread;
  job: Job | null;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** Makes the counter. `failed` is called with the reason why a worker was ended early. */
export function tokenCounter(
  startThread: () => Thread,
  failed: (cause: unknown) => void,
  settings: CounterSettings = counterSettings,
): CountingWorkers {
  const crew = new Set<Crew>();
  const waiting = new WaitingBodies<Job>(settings);
  let number = 0;
  let stopped = false;

  function start(): Crew {
    const thread = startThread();
    const one: Crew = { thread, job: null, timer: undefined };
    thread.onmessage = ({ data }) => {
      const { job } = one;
      one.job = null;
      if (job) settle(job, data);
      next(one);
    };
    thread.onerror = (event) => {
      event.preventDefault?.();
      lose(one, new Error(event.message ?? "the worker failed"));
    };
    crew.add(one);
    return one;
  }

  function settle({ resolve, reject }: Job, answer: WorkerAnswer): void {
    if ("examined" in answer) {
      resolve(answer.examined);
    } else {
      const { code, message, param, body } = answer.refused;
      reject(new Fault(code, message, compact({ param, body })));
    }
  }

  function lose(one: Crew, cause: unknown): void {
    if (!crew.has(one)) return;
    end(one);
    failed(cause);
    const { job } = one;
    job?.reject(uncounted());
    if (waiting.size > 0 && !stopped) next(start());
  }

  function end(one: Crew): void {
    crew.delete(one);
    clearTimeout(one.timer);
    one.thread.terminate();
  }

  function next(one: Crew): void {
    clearTimeout(one.timer);
    const job = waiting.next();
    if (!job) {
      one.timer = unreferenced(setTimeout(() => end(one), settings.idle_ms));
      return;
    }
    one.job = job;
    one.timer = unreferenced(setTimeout(() => lose(one, new Error("the count took too long")), settings.count_ms));
    number += 1;
    const { buffer } = job.asked.body;
    one.thread.postMessage({ number, asked: job.asked }, buffer instanceof ArrayBuffer ? [buffer] : []);
  }

  return {
    examine(asked) {
      const { promise, resolve, reject } = Promise.withResolvers<WorkerExamined>();
      const idle = [...crew].find((one) => one.job === null);
      const isSettlement = asked.of === "chat" || asked.of === "answer";
      const { organization } = asked;
      const job = { asked, bytes: asked.body.byteLength, organization, isSettlement, resolve, reject };
      if (stopped || !waiting.add(job))
        throw new Fault("overloaded", "The service is counting the tokens of too many requests. Please try again.", {
          retryAfterSeconds: 1,
        });
      if (idle) next(idle);
      else if (crew.size < settings.workers_max) next(start());
      return promise;
    },
    stop() {
      stopped = true;
      for (const one of crew) end(one);
    },
  };
}

function uncounted(): Fault {
  return new Fault("overloaded", "Counting this took too long and was given up. Send less, or try again later.", {
    retryAfterSeconds: 5,
  });
}

function unreferenced(timer: ReturnType<typeof setTimeout>): ReturnType<typeof setTimeout> {
  timer.unref();
  return timer;
}

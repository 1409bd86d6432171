/** Acts → a response body, each act at its time, nothing faster than the reader takes it, nothing after it has left. */
import type { Act } from "./acts.ts";
import type { Clock } from "./clock.ts";

export interface Pace {
  /** The moment of the request, on the clock of `performance.now`. */
  start_ms: number;
  /** From the request to the first token. */
  first_ms: number;
  /** 0 is as fast as possible. */
  tokens_per_second: number;
}

export interface Listener {
  wrote(tokens: number): void;
  ended(how: "complete" | "client-left" | "cut"): void;
}

/** When the token that brings the count to `count` is due. */
export function dueAt(pace: Pace, count: number): number {
  const gap_ms = pace.tokens_per_second > 0 ? 1000 / pace.tokens_per_second : 0;
  return pace.start_ms + pace.first_ms + Math.max(0, count - 1) * gap_ms;
}

/** How many tokens were due by now. */
export function madeBy(pace: Pace, now_ms: number, total: number): number {
  if (now_ms < pace.start_ms + pace.first_ms) return 0;
  if (pace.tokens_per_second <= 0) return total;
  const since_ms = now_ms - pace.start_ms - pace.first_ms;
  return Math.min(total, 1 + Math.floor((since_ms * pace.tokens_per_second) / 1000));
}

/** Bun takes text as it is, which saves a buffer for each token. */
type Written = string | Uint8Array;

/** What is due together leaves in one write of about this size. */
const write_length_max = 16 * 1024;

/** Before a connection is broken, what was written gets this long to leave. */
const cut_pause_ms = 20;

export function playing(acts: Iterator<Act>, pace: Pace, clock: Clock, listener: Listener): ReadableStream<Written> {
  let over = false;
  let made = 0;
  let wake: (() => void) | null = null;
  let next = acts.next();

  const end = (how: "complete" | "client-left" | "cut") => {
    if (over) return;
    over = true;
    wake?.();
    listener.ended(how);
  };
  const until = (due_ms: number) =>
    new Promise<void>((resolve) => {
      wake = resolve;
      if (due_ms < Number.POSITIVE_INFINITY) clock.at(due_ms, resolve);
    });
  const count = (tokens: number) => {
    made += tokens;
    listener.wrote(tokens);
    next = acts.next();
  };

  async function pull(controller: ReadableStreamDefaultController<Written>): Promise<void> {
    let text = "";
    while (!over) {
      const act: Act | null = next.done ? null : next.value;
      // Text that is ready goes first; whatever ends this stretch of it waits for the next pull.
      const due_ms = act?.kind === "write" || act?.kind === "write-bytes" ? dueOf(act) : 0;
      const isText = act?.kind === "write" && due_ms <= performance.now() && text.length < write_length_max;
      if (text !== "" && !isText) {
        controller.enqueue(text);
        return;
      }
      if (act === null) {
        controller.close();
        end("complete");
      } else if (due_ms > performance.now()) {
        await until(due_ms);
      } else if (act.kind === "write") {
        text += act.text;
        count(act.tokens);
      } else if (act.kind === "write-bytes") {
        count(act.tokens);
        controller.enqueue(act.bytes);
        return;
      } else if (act.kind === "pause") {
        await until(performance.now() + act.pause_ms);
        count(0);
      } else if (act.kind === "stall") {
        await until(Number.POSITIVE_INFINITY);
      } else {
        await until(performance.now() + cut_pause_ms);
        if (over) return;
        end("cut");
        controller.error(new Error("Simulator: the connection is cut, as asked."));
      }
    }
  }

  function dueOf(act: Extract<Act, { tokens: number }>): number {
    return "early" in act && act.early ? 0 : dueAt(pace, made + act.tokens);
  }

  return new ReadableStream({ pull, cancel: () => end("client-left") }, { highWaterMark: 0 });
}

/**
 * Makes a response body that performs actions: each action at its time, no faster than the client reads, and none after
 * the client has left.
 */
import type { Action } from "./actions.ts";
import type { Clock } from "./clock.ts";
import type { Ending, Watch } from "./watch.ts";

export interface TokenPace {
  /** The time at which the request came, by `performance.now`. */
  start_ms: number;
  /** The milliseconds from the request to the first token. */
  first_ms: number;
  /** The pace of generation; 0: as fast as possible. */
  tokens_per_second: number;
}

/** The time at which token number `count` is due, by `performance.now`. */
export function dueAt(pace: TokenPace, count: number): number {
  const gap_ms = pace.tokens_per_second > 0 ? 1000 / pace.tokens_per_second : 0;
  return pace.start_ms + pace.first_ms + Math.max(0, count - 1) * gap_ms;
}

/** The number of tokens, of `total`, that are due at `now_ms`. */
export function generatedBy(pace: TokenPace, now_ms: number, total: number): number {
  if (now_ms < pace.start_ms + pace.first_ms) return 0;
  if (pace.tokens_per_second <= 0) return total;
  const since_ms = now_ms - pace.start_ms - pace.first_ms;
  return Math.min(total, 1 + Math.floor((since_ms * pace.tokens_per_second) / 1000));
}

/** The type of the body's pieces. Bun accepts strings, which saves a buffer for each token. */
type Written = string | Uint8Array;

/** The approximate size limit of one write of tokens that are due together. */
const write_length_max = 16 * 1024;

/** The wait before the connection is broken, in which written data is sent. */
const cut_pause_ms = 20;

export function pacedBody(
  actions: Iterator<Action>,
  pace: TokenPace,
  clock: Clock,
  watch?: Watch,
): ReadableStream<Written> {
  let over = false;
  let made = 0;
  let wake: (() => void) | null = null;
  let next = actions.next();

  const end = (how: Ending) => {
    if (over) return;
    over = true;
    wake?.();
    watch?.ended(how);
  };
  const until = (due_ms: number) =>
    new Promise<void>((resolve) => {
      wake = resolve;
      if (due_ms < Number.POSITIVE_INFINITY) clock.at(due_ms, resolve);
    });
  const count = (tokens: number) => {
    made += tokens;
    watch?.tokens(tokens);
    next = actions.next();
  };

  async function pull(controller: ReadableStreamDefaultController<Written>): Promise<void> {
    let text = "";
    while (!over) {
      const action: Action | null = next.done ? null : next.value;
      // All text that is due now is collected into one write. Other actions wait for the next pull.
      const due_ms = action?.kind === "write" || action?.kind === "write-bytes" ? dueOf(action) : 0;
      const isText = action?.kind === "write" && due_ms <= performance.now() && text.length < write_length_max;
      if (text !== "" && !isText) {
        controller.enqueue(text);
        return;
      }
      if (action === null) {
        controller.close();
        end("complete");
      } else if (due_ms > performance.now()) {
        await until(due_ms);
      } else if (action.kind === "write") {
        text += action.text;
        count(action.tokens);
      } else if (action.kind === "write-bytes") {
        count(action.tokens);
        controller.enqueue(action.bytes);
        return;
      } else if (action.kind === "pause") {
        await until(performance.now() + action.pause_ms);
        count(0);
      } else if (action.kind === "stall") {
        await until(Number.POSITIVE_INFINITY);
      } else {
        await until(performance.now() + cut_pause_ms);
        if (over) return;
        end("cut");
        controller.error(new Error("Simulator: the connection is cut, as asked."));
      }
    }
  }

  function dueOf(action: Extract<Action, { tokens: number }>): number {
    return "early" in action && action.early ? 0 : dueAt(pace, made + action.tokens);
  }

  return new ReadableStream({ pull, cancel: () => end("client-left") }, { highWaterMark: 0 });
}

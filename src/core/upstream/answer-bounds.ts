/**
 * Counts how much of an answer has arrived, and how much of it is kept in memory: docs/design/errors-and-streams.md,
 * Answers that are bounded.
 *
 * Also checks the arguments of an answer's tool calls while they are written. Arguments are JSON inside JSON, and are
 * parsed for clients whose protocol has them as an object: docs/design/errors-and-streams.md, Answers that are bounded.
 */

import { BodyScan, type ShapeLimits } from "../body/scan.ts";
import type { InferenceEvent } from "../inference/event.ts";
import { UnreadableAnswer } from "../protocol/codec.ts";
import { Countdown } from "../time/cancellation.ts";
import { answer_bytes_max, assertReadable, type HoldBytes, unseen_bytes } from "./engine-json.ts";

/**
 * The most code units in all parts of an answer together. It is also the bound for all code that keeps a whole answer
 * in memory.
 */
const text_max = answer_bytes_max;
/** The memory in bytes that an answer may take if it is not streamed to its caller. */
const kept_bytes_max = 64 * 1024 * 1024;
/**
 * The bytes of memory for each piece of an answer in addition to its text, and for each of the piece's log
 * probabilities.
 */
const piece_bytes = 48;
const logprob_bytes = 256;

/** The bytes of memory that a request may hold beyond its body without reserving them. */
const free_bytes = 64 * 1024;

/** Wraps `hold` so that it is called with a size only if the size is large, or was large before. */
export function whereMuch(hold: HoldBytes): HoldBytes {
  let told_bytes = 0;
  return (bytes) => {
    if (bytes <= free_bytes && told_bytes === 0) return;
    told_bytes = bytes;
    hold(bytes);
  };
}

export class AnswerSize {
  #text = 0;
  /** The bytes of memory that an answer takes if all of it is kept until its end, and only then sent. */
  kept_bytes = 0;
  readonly #isCollected: boolean;

  constructor(isCollected: boolean) {
    this.#isCollected = isCollected;
  }

  /** Counts an event's text. Throws UnreadableAnswer if the answer is too large. */
  take(event: InferenceEvent): void {
    if (event.type !== "part-delta") return;
    const { delta, logprobs } = event;
    this.#text += delta.length;
    if (this.#text > text_max) throw new UnreadableAnswer(`the answer has more than ${text_max} characters`);
    if (!this.#isCollected) return;
    this.kept_bytes += delta.length + piece_bytes;
    for (const { top_logprobs } of logprobs ?? []) this.kept_bytes += logprob_bytes * (1 + top_logprobs.length);
    if (this.kept_bytes > kept_bytes_max)
      throw new UnreadableAnswer(`the answer takes more than ${kept_bytes_max} bytes`);
  }
}

/** The limits of arguments: depth and names for each call, values and members for all calls together. */
const argumentsLimits: ShapeLimits = {
  body_depth_max: 100,
  body_values_max: 100_000,
  body_members_max: 60_000,
  body_names_max: 10_000,
};

/**
 * The pieces of a call's arguments are checked together once they have this length, because checking a single token
 * costs as much as reading it.
 */
const looked_length = 4096;

interface Call {
  /** Arguments that have not been checked yet. While the answer's arguments are short in total, none are checked. */
  unseen: string[];
  unseenLength: number;
  scan: BodyScan | null;
}

export class CallArguments {
  readonly #calls = new Map<number, Call>();
  #length = 0;
  #values = 0;
  #members = 0;

  /** Checks the arguments in an event. Throws UnreadableAnswer. */
  take(event: InferenceEvent): void {
    if (event.type === "part-delta") this.#delta(event.index, event.delta);
    // The input of a custom tool is plain text, and is not checked.
    else if (event.type === "part-start" && event.part.kind === "tool-call" && !event.part.custom)
      this.#calls.set(event.index, { unseen: [], unseenLength: 0, scan: null });
    else if (event.type === "part-end") this.#end(event.index);
  }

  #end(index: number): void {
    const call = this.#calls.get(index);
    if (call && this.#length > unseen_bytes) this.#look(call);
    this.#calls.delete(index);
  }

  #delta(index: number, delta: string): void {
    if (this.#calls.size === 0) return;
    const call = this.#calls.get(index);
    if (!call) return;
    this.#length += delta.length;
    call.unseen.push(delta);
    call.unseenLength += delta.length;
    if (this.#length > unseen_bytes && call.unseenLength >= looked_length) this.#look(call);
  }

  #look(call: Call): void {
    call.unseenLength = 0;
    call.scan ??= new BodyScan();
    const { scan } = call;
    const [values, members] = [scan.values, scan.members];
    scan.take(Buffer.from(call.unseen.splice(0).join("")));
    this.#values += scan.values - values;
    this.#members += scan.members - members;
    const all = { bytes: this.#length, values: this.#values, members: this.#members };
    assertReadable({ ...all, depth: scan.depth, names: scan.names }, argumentsLimits);
  }
}

/** One countdown for all waits of a request. Moving the deadline later costs an assignment, and no new timer. */
export class Watchdog {
  readonly #countdown: Countdown;
  #what = "";
  #wait_ms = 0;
  /** The latest deadline of the next part: signs of life postpone the deadline no further. */
  #longest_ms = 0;
  #last_ms = Number.POSITIVE_INFINITY;
  #lastWhat = "";
  #isResting = false;

  constructor(bark: (waitedFor: string) => void) {
    this.#countdown = new Countdown(() => bark(this.#isLast() ? this.#lastWhat : this.#what));
  }

  /**
   * Sets the deadline of the next part to `ms` from now. `waitingFor` names the part in the error. `alive_ms`: how long
   * signs of life can postpone the deadline.
   */
  expect(ms: number, waitingFor: string, alive_ms = ms): void {
    const now_ms = this.#countdown.now_ms();
    this.#isResting = false;
    this.#what = waitingFor;
    this.#wait_ms = ms;
    this.#longest_ms = Math.min(now_ms + Math.max(ms, alive_ms), this.#last_ms);
    this.#countdown.until(Math.min(now_ms + ms, this.#longest_ms));
  }

  /** Begins the wait for the next part anew, because the engine has sent something that is no part. */
  renew(): void {
    this.#countdown.until(Math.min(this.#countdown.now_ms() + this.#wait_ms, this.#longest_ms));
  }

  /** No part is expected until the next call of `expect`. Only the deadline of the whole answer counts. */
  rest(): void {
    this.#isResting = true;
    this.#countdown.until(this.#last_ms);
  }

  get isResting(): boolean {
    return this.#isResting;
  }

  /**
   * Sets the deadline of the whole answer to `ms` from now. It is watched only while a part is expected, so that one
   * timer is enough.
   */
  limit(ms: number, waitingFor: string): void {
    this.#last_ms = this.#countdown.now_ms() + ms;
    this.#lastWhat = waitingFor;
  }

  stop(): void {
    this.#countdown.stop();
  }

  #isLast(): boolean {
    return this.#countdown.now_ms() >= this.#last_ms;
  }
}

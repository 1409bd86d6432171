/**
 * Writes the log of one answer in batches. Only the end of the answer waits for the log. If the store is away, the
 * writer tries again for a while; then the log is lost, and the answer continues without it.
 */

import { within } from "../../core/time/cancellation.ts";
import { type Clock, passed } from "../../core/time/clock.ts";
import type { Unkept } from "./dependencies.ts";
import type { AnswerLogs, LogEntry, LogName } from "./store/answer-log.ts";

/** How long text waits for more text of the same batch. */
const batch_ms = 100;
/** The most text of one entry, in code units. */
const entry_max = 64 * 1024;
/** The most text that may wait for the store, in code units. Beyond it, the answer waits too. */
const waiting_max = 4 * entry_max;
/**
 * The wait before a store that is away is asked again, and how long the data that waits for it is kept before it is
 * given up.
 */
export const storeRetry_ms = 250;
export const storePatience_ms = 10_000;
/** How long the end of an answer waits for its log. */
const end_ms_max = 2_000;

interface LogWriting {
  logs: AnswerLogs;
  name: LogName;
  bytes_max: number;
  clock: Clock;
  /** Called once if the log is lost. */
  lost(why: Unkept, cause: unknown): void;
}

export class LogWriter {
  readonly #writing: LogWriting;
  #waiting = "";
  #number = 0;
  /** The size of the log so far. */
  bytes = 0;
  #isEnding = false;
  /** Whether the log is given up. Only `#lose` sets it. */
  isLost = false;
  #cancelTimer: (() => void) | null = null;
  #sending: Promise<void> | null = null;
  /** Resolves when the text that waits now is stored or lost. */
  #stored: PromiseWithResolvers<void> | null = null;

  constructor(writing: LogWriting) {
    this.#writing = writing;
  }

  /** Writes the first entry. Throws if the store does not accept it. */
  async open(text: string): Promise<void> {
    const { logs, name } = this.#writing;
    const work = logs.append(name, 0, { text, isEnd: false });
    const appended = await this.#inTime(work);
    if (appended !== "appended") throw new Error(`the log of the answer is ${appended}`);
    this.#number = 1;
    this.bytes = Buffer.byteLength(text);
  }

  /** Adds text that consists of whole frames. */
  write(text: string): void {
    if (this.isLost || text === "") return;
    this.bytes += Buffer.byteLength(text);
    if (this.bytes > this.#writing.bytes_max) {
      this.#lose("size", new Error(`larger than ${this.#writing.bytes_max} bytes`));
      return;
    }
    this.#waiting += text;
    if (this.#waiting.length >= entry_max) this.#send();
    else this.#cancelTimer ??= this.#writing.clock.after(batch_ms, () => this.#send());
  }

  /** Resolves to true when everything written so far is stored, or to false if the log is lost. */
  async stored(): Promise<boolean> {
    if (this.#waiting !== "") this.#stored ??= Promise.withResolvers();
    await (this.#stored?.promise ?? this.#sending);
    return !this.isLost;
  }

  /** Resolves when more text may be written: an engine may be faster than the store. */
  async room(): Promise<void> {
    while (!this.isLost && this.#waiting.length > waiting_max) await this.#sending;
  }

  /** Resolves when the whole log is stored or lost. */
  async end(): Promise<void> {
    if (this.isLost || this.#isEnding) return;
    this.#isEnding = true;
    await this.flushed();
  }

  /** Resolves when everything written so far is stored, or the log is lost because that takes too long. */
  async flushed(): Promise<void> {
    this.#send();
    try {
      await this.#inTime(this.#sending ?? Promise.resolve());
    } catch (cause) {
      this.#lose("store", cause);
    }
  }

  #inTime<Value>(work: Promise<Value>): Promise<Value> {
    return within(work, end_ms_max, "the log of the answer", undefined, this.#writing.clock);
  }

  #send(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  async #sendAll(): Promise<void> {
    while (!this.isLost) {
      const text = this.#waiting;
      const isEnd = this.#isEnding;
      if (text === "" && !isEnd) return;
      const stored = this.#stored;
      this.#waiting = "";
      this.#stored = null;
      await this.#append({ text, isEnd });
      stored?.resolve();
      if (isEnd) return;
    }
  }

  async #append(entry: LogEntry): Promise<void> {
    const { logs, name, clock } = this.#writing;
    const until_ms = clock.now_ms() + storePatience_ms;
    while (!this.isLost) {
      try {
        const appended = await logs.append(name, this.#number, entry);
        if (appended !== "appended") this.#lose("store", new Error(`the log is ${appended}`));
        this.#number += 1;
        return;
      } catch (cause) {
        if (clock.now_ms() >= until_ms) return this.#lose("store", cause);
        await passed(clock, storeRetry_ms);
      }
    }
  }

  #lose(why: Unkept, cause: unknown): void {
    if (this.isLost) return;
    this.isLost = true;
    this.#waiting = "";
    this.#cancelTimer?.();
    this.#stored?.resolve();
    this.#writing.lost(why, cause);
  }
}

/**
 * One request and its answer on a connection. Bytes that arrive wait here until they are read. If there are many, the
 * engine is held back: its socket is not read.
 */
import { release } from "../../body/pieces.ts";
import { yieldToEventLoop } from "../../time/turns.ts";
import type { HeaderFields, ResponseHead } from "./head.ts";
import { ResponseParser, type ResponseSink } from "./parser.ts";
import type { Line } from "./read-pauses.ts";

export interface Reply {
  status: number;
  headers: HeaderFields;
  /**
   * Returns the bytes that have arrived since the last read, or waits for the next ones; null at the end. Throws if the
   * answer broke off. The memory of the bytes may be reused once `read` is called again. `bytes_max`: the most bytes to
   * return, 4 KiB by default; readers that do not make events of the bytes at once pass more.
   */
  read(bytes_max?: number): Promise<Uint8Array[] | null>;
  /** The body of an answer that has arrived whole, in one small piece, which is then read; null: call `read`. */
  whole(): Uint8Array | null;
  /**
   * From now on, a read returns only after bytes were gathered for this many milliseconds, so that a reader in no hurry
   * is not woken for each token. The end, and bytes before a failure, are returned at once.
   */
  gather(ms: number): void;
  /** Called when the first part was read: the rest is less urgent, and may be delayed while the process is busy. */
  flow(): void;
  /** The current delay of the rest of the answer; 0 if the process is not busy. */
  readonly delay_ms: number;
  /** Closes the connection, for a reader that stops before the end. */
  drop(): void;
}

/** If more bytes than this wait to be read, the engine is held back until all of them are read. */
export const unread_bytes_max = 64 * 1024;

/**
 * The most bytes of events that one read returns. The events and text made of them take several times as much, and wait
 * while the caller does not read: docs/design/service.md, Slow readers.
 */
export const read_bytes_max = 4 * 1024;

/** If more bytes than this are gathered, they are returned at once. */
const gathered_bytes_max = 64 * 1024;

export class Exchange implements ResponseSink, Reply {
  readonly replied: Promise<Reply>;
  readonly #line: Line;
  readonly #parser = new ResponseParser(this);
  /**
   * Resolves when the answer's head has arrived. Null after that: otherwise the promise would be kept in memory for as
   * long as the answer lasts.
   */
  #answer: PromiseWithResolvers<Reply> | null = Promise.withResolvers<Reply>();
  #head: ResponseHead | null = null;
  #unread: Uint8Array[] = [];
  #unread_bytes = 0;
  /** The pieces that the last `read` returned. If their receive buffer is large, it is released at the next read. */
  #lent: Uint8Array[] = [];
  #isLarge = false;
  #isHeld = false;
  #reader: Pick<PromiseWithResolvers<Uint8Array[] | null>, "resolve" | "reject"> | null = null;
  /** The `bytes_max` of the current read. */
  #read_bytes_max = read_bytes_max;
  #gather_ms = 0;
  #gathering: ReturnType<typeof setTimeout> | null = null;
  /** Whether the gathering time of the waiting bytes is over. */
  #isGathered = false;
  /** Whether the waiting bytes are the rest of bytes that were partly read. */
  #isRest = false;
  #failure: { cause: unknown } | null = null;
  /** Whether the first byte of an answer has arrived. */
  isBegun = false;
  /** Whether the answer's first part was read. */
  isFlowing = false;
  /** Whether bytes have arrived and the reader's turn to read them is planned. */
  isDue = false;
  /** Whether further bytes are returned only together with the end or the failure that follows. */
  #isLast = false;
  /** Whether the answer may belong to another request, because the engine sent more than one answer. */
  #isDoubtful = false;

  constructor(line: Line) {
    this.#line = line;
    this.replied = this.#answer!.promise;
  }

  get status(): number {
    return this.#head!.status;
  }

  get headers(): HeaderFields {
    return this.#head!.headers;
  }

  get isOver(): boolean {
    return this.#parser.isOver;
  }

  /** Takes bytes of the answer. Throws MalformedResponse. */
  received(bytes: Uint8Array): void {
    this.isBegun = true;
    if (bytes.length > read_bytes_max) this.#isLarge = true;
    this.#parse(bytes);
    this.#wakeSoon();
    this.#holdBack(!this.#parser.isOver && this.#unread_bytes > unread_bytes_max);
    if (this.#parser.isOver) this.#line.over(this.#head!);
  }

  #parse(bytes: Uint8Array): void {
    try {
      this.#parser.push(bytes);
    } catch (malformed) {
      if (!this.#parser.isOver) throw malformed;
      this.#isDoubtful = !this.#line.exceeded();
      if (!this.#isDoubtful) return;
      this.#discardUnread();
      throw malformed;
    }
  }

  /** Called when the engine has closed the connection without an error. Throws if its answer was not complete. */
  closed(): void {
    this.#parser.close();
    this.#wake();
  }

  fail(cause: unknown): void {
    if (this.#failure || (this.#parser.isOver && !this.#isDoubtful)) return;
    this.#failure = { cause };
    // The reader may have left before, and an unhandled rejection would end the process.
    this.replied.catch(() => {});
    if (this.#head) this.#answered();
    else this.#answer?.reject(cause);
    this.#endGathering();
    // The gathered bytes are read before the failure.
    if (this.#unread.length > 0) this.#wake();
    else this.#reader?.reject(cause);
    this.#reader = null;
  }

  head(head: ResponseHead): void {
    this.#head = head;
    this.#line.soon(() => this.#answered(), true);
  }

  body(bytes: Uint8Array): void {
    this.#unread.push(bytes);
    this.#unread_bytes += bytes.length;
  }

  read(bytes_max = read_bytes_max): Promise<Uint8Array[] | null> {
    this.#read_bytes_max = bytes_max;
    this.#giveBack();
    if (this.#unread.length > 0 && !this.#isGathering())
      return this.#isRest ? this.#inTurn() : Promise.resolve(this.#take());
    if (this.#failure) return Promise.reject(this.#failure.cause);
    if (this.#parser.isOver) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  whole(): Uint8Array | null {
    // A large receive buffer is released by the next read.
    const isWhole = this.#parser.isOver && !this.#failure && !this.#isLarge && this.#unread.length === 1;
    return isWhole ? this.#take()[0]! : null;
  }

  gather(ms: number): void {
    this.#gather_ms = ms;
  }

  flow(): void {
    this.isFlowing = true;
  }

  get delay_ms(): number {
    return this.isFlowing ? this.#line.pause_ms : 0;
  }

  /**
   * From now on, bytes are received without pauses, and the reader gets those that wait only when the exchange ends or
   * fails: nobody may read again after that.
   */
  last(): void {
    this.#isLast = true;
    this.isFlowing = false;
  }

  drop(): void {
    this.#discardUnread();
    this.#endGathering();
    if (!this.#parser.isOver) this.#line.drop();
  }

  #discardUnread(): void {
    this.#unread = [];
    this.#unread_bytes = 0;
  }

  /**
   * Holds the engine back, or lets it continue. Does nothing if the engine is in that state already: after the answer's
   * end, the connection may carry another exchange.
   */
  #holdBack(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) this.#line.pause();
    else this.#line.resume();
  }

  /** Whether the waiting bytes are kept until the gathering time is over, because more may come. */
  #isGathering(): boolean {
    const isDue = this.#failure !== null || this.#parser.isOver || this.#unread_bytes > gathered_bytes_max;
    if (this.#isLast) return !isDue;
    if (this.#gather_ms === 0 || isDue || this.#isGathered || this.#isRest) return false;
    this.#gathering ??= setTimeout(() => {
      this.#isGathered = true;
      this.#wake();
    }, this.#gather_ms);
    return true;
  }

  #endGathering(): void {
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#gathering = null;
    this.#isGathered = false;
  }

  #take(): Uint8Array[] {
    this.#endGathering();
    // A reader that gathers takes everything: it collects the whole answer, and no caller waits for its parts.
    if (this.#unread_bytes > this.#read_bytes_max && this.#gather_ms === 0 && !this.#isLast) return this.#takeSome();
    const pieces = this.#unread;
    this.#holdBack(false);
    this.#discardUnread();
    this.#isRest = false;
    if (this.#isLarge) this.#lent = pieces;
    return pieces;
  }

  /** Releases the large receive buffers of the last read. Small buffers are left to the garbage collector. */
  #giveBack(): void {
    if (this.#lent.length === 0) return;
    const kept = this.#unread[0]?.buffer;
    for (const piece of this.#lent) if (piece.buffer !== kept) release(piece);
    this.#lent = [];
  }

  /** Returns the next part of many received bytes after a turn of the event loop, in which other requests may run. */
  async #inTurn(): Promise<Uint8Array[]> {
    await yieldToEventLoop();
    return this.#take();
  }

  #takeSome(): Uint8Array[] {
    let left = this.#read_bytes_max;
    let whole = 0;
    for (; this.#unread[whole]!.length <= left; whole++) left -= this.#unread[whole]!.length;
    const pieces = this.#unread.splice(0, whole);
    if (left > 0) {
      pieces.push(this.#unread[0]!.subarray(0, left));
      this.#unread[0] = this.#unread[0]!.subarray(left);
    }
    this.#unread_bytes -= this.#read_bytes_max;
    this.#isRest = true;
    if (this.#isLarge) this.#lent = pieces;
    return pieces;
  }

  /** Wakes the reader: at the reader's turn if bytes have arrived, and at once if the answer has ended. */
  #wakeSoon(): void {
    if (this.#parser.isOver) this.#wake();
    else if (this.#reader && !this.isDue) {
      this.isDue = true;
      this.#line.soon(this.#due, !this.isFlowing);
    }
  }

  #answered(): void {
    this.#answer?.resolve(this);
    this.#answer = null;
  }

  readonly #due = (): void => {
    this.isDue = false;
    this.#wake();
    this.#line.taken();
  };

  #wake(): void {
    const reader = this.#reader;
    const isRead = this.#unread.length === 0;
    if (!reader || (isRead ? !this.#parser.isOver : this.#isGathering())) return;
    this.#reader = null;
    reader.resolve(isRead ? null : this.#take());
  }
}

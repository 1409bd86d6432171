/** One request and its answer on a connection: what came waits here until it is read, and holds the engine back meanwhile. */
import { release } from "../../body/release.ts";
import { othersTurn } from "../../time/breather.ts";
import type { HeaderFields, ResponseHead } from "./head.ts";
import { ResponseParser, type ResponseSink } from "./parser.ts";

/** The part of a connection that an exchange needs. */
export interface Line {
  pause(): void;
  resume(): void;
  /** When all sockets of this poll were read. */
  soon(work: () => void): void;
  /** The answer has been received whole. */
  over(head: ResponseHead): void;
  /** Nobody reads on. */
  drop(): void;
}

export interface Reply {
  status: number;
  headers: HeaderFields;
  /**
   * What has come since the last read, or the first of it; null at the end. Throws where the answer broke off. What it
   * brings is used up when the next read is asked for.
   */
  read(): Promise<Uint8Array[] | null>;
  /**
   * From here on what comes is read together with what follows within so many milliseconds: a reader that is in no hurry
   * is not woken for each token. The end, and what came before a failure, are read at once.
   */
  gather(ms: number): void;
  /** Closes the connection, for a reader that does not read to the end. */
  drop(): void;
}

/** The bytes that may wait unread before the engine is held back, until all of them are read. */
const unread_bytes_max = 64 * 1024;

/**
 * One read brings no more: what is made of it, events and text, takes several times as much, and waits as long as the caller
 * does not read. docs/design/service.md, Slow readers.
 */
const read_bytes_max = 4 * 1024;

/** Gathered bytes beyond this are read at once. */
const gathered_bytes_max = 64 * 1024;

interface Waiting {
  resolve(pieces: Uint8Array[] | null): void;
  reject(cause: unknown): void;
}

export class Exchange implements ResponseSink, Reply {
  readonly replied: Promise<Reply>;
  readonly #line: Line;
  readonly #parser = new ResponseParser(this);
  #answer = Promise.withResolvers<Reply>();
  #head: ResponseHead | null = null;
  #unread: Uint8Array[] = [];
  #unread_bytes = 0;
  /** The buffers of the last read, if more was received at once than one read returns. */
  #lent: Uint8Array[] = [];
  #isLarge = false;
  #isHeld = false;
  #reader: Waiting | null = null;
  #gather_ms = 0;
  #gathering: ReturnType<typeof setTimeout> | null = null;
  /** The time of what waits is over. */
  #isGathered = false;
  /** The waiting bytes have waited already, when some of them were read. */
  #isRest = false;
  /** Its reader is to be woken. */
  #isDue = false;
  #failure: { cause: unknown } | null = null;
  /** Whether any byte of an answer has come. */
  isBegun = false;

  constructor(line: Line) {
    this.#line = line;
    this.replied = this.#answer.promise;
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

  /** Throws MalformedResponse. */
  received(bytes: Uint8Array): void {
    this.isBegun = true;
    if (bytes.length > read_bytes_max) this.#isLarge = true;
    this.#parser.push(bytes);
    this.#wakeSoon();
    this.#holdBack(!this.#parser.isOver && this.#unread_bytes > unread_bytes_max);
    if (this.#parser.isOver) this.#line.over(this.#head!);
  }

  /** The engine has closed, orderly. Throws where its answer was not over. */
  closed(): void {
    this.#parser.close();
    this.#wake();
  }

  fail(cause: unknown): void {
    if (this.#failure || (this.#parser.isOver && this.#reader === null)) return;
    this.#failure = { cause };
    // Whoever asked may have left before.
    this.replied.catch(() => {});
    if (this.#head) this.#answer.resolve(this);
    else this.#answer.reject(cause);
    this.#endGathering();
    // What was gathered is read before the failure is.
    if (this.#unread.length > 0) this.#wake();
    else this.#reader?.reject(cause);
    this.#reader = null;
  }

  head(head: ResponseHead): void {
    this.#head = head;
    this.#line.soon(this.#answered);
  }

  body(bytes: Uint8Array): void {
    this.#unread.push(bytes);
    this.#unread_bytes += bytes.length;
  }

  end(): void {}

  read(): Promise<Uint8Array[] | null> {
    this.#giveBack();
    if (this.#unread.length > 0 && !this.#isGathering())
      return this.#isRest ? this.#inTurn() : Promise.resolve(this.#take());
    if (this.#failure) return Promise.reject(this.#failure.cause);
    if (this.#parser.isOver) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  gather(ms: number): void {
    this.#gather_ms = ms;
  }

  drop(): void {
    this.#unread = [];
    this.#unread_bytes = 0;
    this.#endGathering();
    if (!this.#parser.isOver) this.#line.drop();
  }

  /** A connection that serves on is not the old answer's to hold. */
  #holdBack(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) this.#line.pause();
    else this.#line.resume();
  }

  /** Whether what has come waits for more, from the first of it until the time is over. */
  #isGathering(): boolean {
    const isDue = this.#failure !== null || this.#parser.isOver || this.#unread_bytes > gathered_bytes_max;
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
    // Who gathers collects the whole answer, and waits for no caller.
    if (this.#unread_bytes > read_bytes_max && this.#gather_ms === 0) return this.#takeSome();
    const pieces = this.#unread;
    this.#holdBack(false);
    this.#unread = [];
    this.#unread_bytes = 0;
    this.#isRest = false;
    if (this.#isLarge) this.#lent = pieces;
    return pieces;
  }

  /** Pieces lie together in the memory of what was received at once. If that is small, it is left to the collector. */
  #giveBack(): void {
    if (this.#lent.length === 0) return;
    const kept = this.#unread[0]?.buffer;
    for (const piece of this.#lent) if (piece.buffer !== kept) release(piece);
    this.#lent = [];
  }

  /** Returns a large receipt in parts, so that other requests run in between. */
  async #inTurn(): Promise<Uint8Array[]> {
    await othersTurn();
    return this.#take();
  }

  #takeSome(): Uint8Array[] {
    let left = read_bytes_max;
    let whole = 0;
    for (; this.#unread[whole]!.length <= left; whole++) left -= this.#unread[whole]!.length;
    const pieces = this.#unread.splice(0, whole);
    if (left > 0) {
      pieces.push(this.#unread[0]!.subarray(0, left));
      this.#unread[0] = this.#unread[0]!.subarray(left);
    }
    this.#unread_bytes -= read_bytes_max;
    this.#isRest = true;
    if (this.#isLarge) this.#lent = pieces;
    return pieces;
  }

  /** An end waits for nobody; nor does a failure, which brings what came before it. */
  #wakeSoon(): void {
    if (this.#parser.isOver) this.#wake();
    else if (this.#reader && !this.#isDue) {
      this.#isDue = true;
      this.#line.soon(this.#due);
    }
  }

  readonly #answered = (): void => this.#answer.resolve(this);

  readonly #due = (): void => {
    this.#isDue = false;
    this.#wake();
  };

  #wake(): void {
    const reader = this.#reader;
    if (!reader) return;
    if (this.#unread.length > 0) {
      if (this.#isGathering()) return;
      this.#reader = null;
      reader.resolve(this.#take());
    } else if (this.#parser.isOver) {
      this.#reader = null;
      reader.resolve(null);
    }
  }
}

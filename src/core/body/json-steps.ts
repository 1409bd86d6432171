/**
 * Parses a large body in steps, with the result of JSON.parse; other requests run between two steps. The bytes are
 * walked once. After enough bytes, at the next comma, everything that is complete by then is parsed. An object or array
 * that is still open there is made already: its finished items are put into it, and its other items follow later. A
 * long string becomes a value by itself. Pure, except that it overwrites the bytes.
 */
import { backslash, closes, colon, comma, isBlank, opens, quote, stringEnd } from "./json-bytes.ts";
import { longString } from "./json-string.ts";

/** An object or array that has not ended at the current position. */
interface Open {
  isArray: boolean;
  /**
   * The start of the part that is not parsed yet: after the opening bracket, at a comma, or after a finished container.
   */
  from: number;
  /** The positions of the last comma and the last colon of the object or array; -1 before there are any. */
  comma: number;
  colon: number;
  /** The parsed object or array; null before its first part was parsed. */
  made: unknown[] | Record<string, unknown> | null;
  isEmpty: boolean;
}

/**
 * The time that a step may take, and the times that parsing takes at most for a byte (of an escape), a value (a small
 * string) and a member (with a new name), all in nanoseconds.
 */
const step_ns = 10_000_000;
const byte_ns = 4;
const value_ns = 400;
const member_ns = 1000;

/** The bytes after which a step ends at the latest: blanks and digits cost no parsing, but have to be walked. */
const walked_bytes = 4 * 1024 * 1024;

/** Strings of at least this length are not parsed as JSON text, which would take twice their size. */
const long_bytes = 256 * 1024;

export interface Parsed {
  value: unknown;
  /** Whether the parser left the bytes unchanged. */
  isIntact: boolean;
}

function parsingCost_ns(shape: { bytes: number; values: number; members: number }): number {
  return shape.bytes * byte_ns + shape.values * value_ns + shape.members * member_ns;
}

/**
 * Bodies that take at most this long are parsed in one step: in several steps, the body of an agent takes twice as
 * long.
 */
const whole_ns = 20_000_000;

export function isQuick(shape: { bytes: number; values: number; members: number }): boolean {
  return parsingCost_ns(shape) <= whole_ns;
}

interface Stepping {
  /** The highest cost of one step, in nanoseconds. */
  step?: number | undefined;
  /** The length in bytes from which a string is decoded by itself (json-string.ts). */
  long?: number | undefined;
  /** Whether bytes that are not UTF-8 become U+FFFD. */
  isLenient?: boolean;
}

/**
 * Parses the bytes in steps, and yields between two steps. Throws the errors of JSON.parse or a decoder. The positions
 * in the message of a SyntaxError are relative to a part.
 */
export function* parseInSteps(bytes: Uint8Array, stepping: Stepping = {}): Generator<void, Parsed, void> {
  const { step = step_ns, long = long_bytes, isLenient = false } = stepping;
  const decoder = new TextDecoder("utf-8", { fatal: !isLenient, ignoreBOM: true });
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const walk = new Walk(bytes, decoder, isMarked ? 3 : 0);
  let cost = 0;
  let before = 0;
  let walked = 0;
  let isIntact = true;
  for (let at = walk.from; at < bytes.length; ) {
    if (at - walked >= walked_bytes) {
      walked = at;
      yield;
    }
    const byte = bytes[at]!;
    if (byte === quote) {
      const after = stringEnd(bytes, at + 1);
      const isWhole = after > 0 && after <= bytes.length;
      if (isWhole && after - at > long && walk.awaitsValue()) {
        walk.enter();
        isIntact &&= !bytes.subarray(at, after).includes(backslash);
        walk.place(at, yield* longString(bytes, at + 1, after - 1, decoder));
        walk.parsedTo(after);
        [cost, before] = [0, after];
        yield;
      }
      at = after || bytes.length;
      continue;
    }
    if (byte === comma) {
      walk.comma(at);
      cost += (at - before) * byte_ns + value_ns;
      before = at;
      if (cost >= step) {
        walk.make(at);
        cost = 0;
        yield;
      }
    } else if (byte === colon) {
      walk.colon(at);
      cost += member_ns;
    } else if (opens(byte)) {
      walk.open(at, byte === 0x5b);
      cost += value_ns;
    } else if (closes(byte)) walk.close(at, byte === 0x5d);
    at++;
  }
  return { value: walk.end(bytes.length), isIntact };
}

class Walk {
  readonly from: number;
  /** The open objects and arrays from the outside in. The first entry stands for an array around the body itself. */
  readonly #open: Open[];
  readonly #bytes: Uint8Array;
  readonly #decoder: TextDecoder;

  constructor(bytes: Uint8Array, decoder: TextDecoder, from: number) {
    this.#bytes = bytes;
    this.#decoder = decoder;
    this.from = from;
    this.#open = [opened(from, true)];
  }

  get #top(): Open {
    return this.#open[this.#open.length - 1]!;
  }

  comma(at: number): void {
    if (this.#open.length === 1) throw broken();
    this.#top.comma = at;
  }

  colon(at: number): void {
    this.#top.colon = at;
  }

  open(at: number, isArray: boolean): void {
    this.#open.push(opened(at + 1, isArray));
  }

  close(at: number, isArray: boolean): void {
    const top = this.#open.pop()!;
    if (this.#open.length === 0) throw broken();
    if (top.made === null) return;
    if (top.isArray !== isArray) throw broken();
    this.#take(top, at);
    this.#top.from = at + 1;
  }

  /** Parses everything before the comma at `at`; open objects and arrays are made first. */
  make(at: number): void {
    this.enter();
    this.#take(this.#top, at);
    this.#top.from = at;
  }

  /**
   * Makes the open objects and arrays, from the outside in. The text before each is parsed first and added to the one
   * around it.
   */
  enter(): void {
    for (const [index, outer] of this.#open.entries()) {
      outer.made ??= outer.isArray ? [] : {};
      const inner = this.#open[index + 1];
      if (!inner || inner.made !== null) continue;
      inner.made = inner.isArray ? [] : {};
      this.#place(outer, inner.from - 1, inner.made);
    }
  }

  /** Whether the text that begins here is a value and not a name. */
  awaitsValue(): boolean {
    const top = this.#top;
    return top.isArray || top.colon >= Math.max(top.from, top.comma);
  }

  /** Adds a value that began at `at` to the innermost open object or array, which has been made already. */
  place(at: number, value: unknown): void {
    this.#place(this.#top, at, value);
  }

  parsedTo(at: number): void {
    this.#top.from = at;
  }

  end(at: number): unknown {
    const root = this.#top;
    if (this.#open.length > 1) throw broken();
    root.made ??= [];
    this.#take(root, at);
    if (root.isEmpty) throw broken();
    return (root.made as unknown[])[0];
  }

  /** Parses the text before `at`, where a value began, and then adds that value under its name. */
  #place(outer: Open, at: number, value: unknown): void {
    const hasComma = outer.comma >= outer.from;
    if (hasComma) this.#take(outer, outer.comma);
    if (hasComma === outer.isEmpty) throw broken();
    const begin = hasComma ? outer.comma + 1 : outer.from;
    if (outer.isArray) {
      if (!this.#isBlank(begin, at)) throw broken();
      (outer.made as unknown[]).push(value);
    } else {
      if (outer.colon < begin || !this.#isBlank(outer.colon + 1, at)) throw broken();
      const name: unknown = JSON.parse(this.#text(begin, outer.colon));
      if (typeof name !== "string") throw broken();
      put(outer.made as Record<string, unknown>, name, value);
    }
    outer.isEmpty = false;
  }

  #isBlank(from: number, to: number): boolean {
    return this.#pastBlanks(from, to) === to;
  }

  #pastBlanks(from: number, to: number): number {
    let at = from;
    while (at < to && isBlank(this.#bytes[at]!)) at++;
    return at;
  }

  /**
   * Parses the items of `open` that end before `to` and are not parsed yet, and adds them to its value. Before them
   * there may be a comma.
   */
  #take(open: Open, to: number): void {
    let from = this.#pastBlanks(open.from, to);
    if (from === to) return;
    if (!open.isEmpty) {
      if (this.#bytes[from] !== comma) throw broken();
      from += 1;
      if (this.#isBlank(from, to)) throw broken();
    }
    const items: unknown = JSON.parse(this.#within(from, to, open.isArray ? "[]" : "{}"));
    if (open.isArray) {
      for (const item of items as unknown[]) (open.made as unknown[]).push(item);
    } else {
      const part = items as Record<string, unknown>;
      for (const name of Object.keys(part)) put(open.made as Record<string, unknown>, name, part[name]);
    }
    open.isEmpty = false;
  }

  #text(from: number, to: number): string {
    return this.#decoder.decode(this.#bytes.subarray(from, to));
  }

  /**
   * Parses the text between `from` and `to` inside two brackets, which overwrite the bytes around the text for a
   * moment: to add them to the text would copy it.
   */
  #within(from: number, to: number, brackets: string): string {
    const bytes = this.#bytes;
    if (from === 0 || to === bytes.length) return brackets[0] + this.#text(from, to) + brackets[1];
    const [first, last] = [bytes[from - 1]!, bytes[to]!];
    try {
      bytes[from - 1] = brackets.charCodeAt(0);
      bytes[to] = brackets.charCodeAt(1);
      return this.#text(from - 1, to + 1);
    } finally {
      bytes[from - 1] = first;
      bytes[to] = last;
    }
  }
}

function opened(from: number, isArray: boolean): Open {
  return { isArray, from, comma: -1, colon: -1, made: null, isEmpty: true };
}

/** Sets an own property whatever its name is, as JSON.parse does. */
function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__")
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  else object[name] = value;
}

function broken(): SyntaxError {
  return new SyntaxError("a bracket, a comma or a name is wrong");
}

/**
 * Reads a JSON answer byte by byte as it arrives, and keeps one list of it: the fields of each item that are in the
 * contract, byte for byte as the engine wrote them. A list of vectors is never parsed and never in memory as a whole;
 * one vector is, if it is written in base64.
 * Invalid JSON (`NaN` included) and other forms throw UnreadableAnswer. Pure.
 */
import { UnreadableAnswer } from "../../core/protocol/codec.ts";
import { Bytes } from "./bytes.ts";
import {
  At,
  afterInNumber,
  backslash,
  brace,
  braceEnd,
  bracket,
  bracketEnd,
  colon,
  comma,
  escapes,
  isHex,
  literals,
  malformed,
  minus,
  nine,
  numberEnd,
  quote,
  space,
  zero,
} from "./grammar.ts";
import { packed } from "./packing.ts";

/** The most fields of an item. Engines send up to six, and each costs memory until its item ends. */
const fields_max = 64;

export interface Field {
  kind: "object" | "list" | "text" | "number" | "literal";
  /** How many numbers the field's list has; -1 if the list contains anything else. */
  numbers: number;
  /** The length of a kept ASCII text, in which an escape is one character. */
  characters: number;
  /** The value, if the field is among `reads`. */
  value?: unknown;
}

export type Item = ReadonlyMap<string, Field>;

export interface Sifting {
  /** The name of the answer's member that is the list. */
  list: string;
  /** The fields of an item that are kept. All others are dropped. */
  keeps: readonly string[];
  /** The kept fields whose values are parsed. */
  reads: readonly string[];
  /** The kept field whose list of numbers is written in base64 (packing.ts). A text is kept as it is. */
  packs?: string | null;
  /** The members beside the list whose values are parsed. */
  members: readonly string[];
  /** Checks a complete item, and returns the fields to add to it. Throws UnreadableAnswer. */
  item(item: Item): string;
}

/** Called with the name of each field that is dropped. */
export type LeftOut = ((field: string) => void) | undefined;

/** The members that the service writes itself. */
const own = new Set(["id", "object", "created", "model", "usage"]);

const nullBegin = 0x6e;
/** The bytes of the quotes around a text. */
const quotes = 2;
/** The bytes of an escape in addition to its character: `\n`, `\u0041`. */
const [escape_bytes, escapeHex_bytes] = [1, 5];

const depth_max = 32;
const name_bytes_max = 256;
const read_bytes_max = 8 * 1024 * 1024;
/** The depths of the answer's members, the list's items, and an item's fields. */
const [inAnswer, inList, inItem] = [1, 2, 3];

const decoder = new TextDecoder();

export class Sieve {
  readonly #sifting: Sifting;
  readonly #leftOut: LeftOut;
  /** The kept items, without the brackets around them. */
  readonly #kept = new Bytes();
  readonly #reading = new Bytes();
  readonly members = new Map<string, unknown>();
  items = 0;
  hasList = false;
  #at = At.Value;
  /** For each open value, whether it is an object. */
  #open: boolean[] = [];
  #literal = literals.get(0x74)!;
  #literalAt = 0;
  #hexLeft = 0;
  #isName = false;
  #isInList = false;
  /** The name of the current member or field. */
  #name = "";
  #item = new Map<string, Field>();
  #hasKept = false;
  #field: Field | null = null;
  #isKept = false;
  #isRead = false;
  /** Whether the field is read to be written in base64. */
  #isPacked = false;

  constructor(sifting: Sifting, leftOut?: LeftOut) {
    this.#sifting = sifting;
    this.#leftOut = leftOut;
  }

  /** The kept bytes that have not been taken yet. */
  get bytes(): number {
    return this.#kept.length;
  }

  /** All bytes in memory, with those of a value that is being read. */
  get held_bytes(): number {
    return this.#kept.length + this.#reading.length;
  }

  take(): Uint8Array {
    return this.#kept.take();
  }

  push(bytes: Uint8Array): void {
    let from = 0;
    for (let place = 0; place < bytes.length; place++) {
      const byte = bytes[place]!;
      switch (this.#at) {
        case At.Text: {
          let end = place;
          while (end < bytes.length && bytes[end] !== quote && bytes[end] !== backslash && bytes[end]! >= 0x20) end++;
          place = end;
          if (end === bytes.length) break;
          if (bytes[end] === backslash) this.#at = At.Escape;
          else if (bytes[end] === quote) from = this.#textEnded(bytes, from, end);
          else throw malformed();
          break;
        }
        case At.Escape:
          if (byte === 0x75) this.#hexLeft = 4;
          else if (!escapes.has(byte)) throw malformed();
          if (this.#field) this.#field.characters -= byte === 0x75 ? escapeHex_bytes : escape_bytes;
          this.#at = byte === 0x75 ? At.Hex : At.Text;
          break;
        case At.Hex:
          if (!isHex(byte)) throw malformed();
          if (--this.#hexLeft === 0) this.#at = At.Text;
          break;
        case At.Literal:
          if (byte !== this.#literal[this.#literalAt]) throw malformed();
          if (++this.#literalAt === this.#literal.length) from = this.#valueEnded(bytes, from, place + 1);
          break;
        case At.Minus:
        case At.Zero:
        case At.Whole:
        case At.Point:
        case At.Fraction:
        case At.Exponent:
        case At.Sign:
        case At.Power: {
          const next = afterInNumber(this.#at, byte);
          if (next !== At.After) {
            this.#at = next;
            break;
          }
          from = this.#valueEnded(bytes, from, place);
          place--;
          break;
        }
        default:
          if (byte === space || byte === 0x0a || byte === 0x0d || byte === 0x09) break;
          if (this.#isInVector()) {
            const end = this.#numbersEnd(bytes, place);
            if (end > place) {
              place = end - 1;
              break;
            }
          }
          from = this.#structure(bytes, from, place, byte);
      }
    }
    this.#copy(bytes, from, bytes.length);
  }

  /** Checks at the end of the answer that the answer is complete. Throws UnreadableAnswer if it is not. */
  end({ needsList = true } = {}): void {
    if (this.#at !== At.End) throw malformed();
    if (needsList && !this.hasList) throw new UnreadableAnswer(`the answer has no '${this.#sifting.list}'`);
  }

  /** Handles a byte between values. Returns the index from which bytes are still to be copied. */
  #structure(bytes: Uint8Array, from: number, place: number, byte: number): number {
    const open = this.#open;
    switch (this.#at) {
      case At.Value:
      case At.FirstValue:
        if (byte === bracketEnd && this.#at === At.FirstValue) return this.#closed(bytes, from, place);
        return this.#valueBegins(from, place, byte);
      case At.FirstKey:
      case At.Key:
        if (byte === braceEnd && this.#at === At.FirstKey) return this.#closed(bytes, from, place);
        if (byte !== quote) throw malformed();
        this.#isName = true;
        this.#at = At.Text;
        if (this.#namesSomething()) {
          this.#isRead = true;
          return place;
        }
        return from;
      case At.Colon:
        if (byte !== colon) throw malformed();
        this.#at = At.Value;
        return from;
      case At.After:
        if (byte === comma) {
          this.#at = open.at(-1) ? At.Key : At.Value;
          return from;
        }
        if (byte !== (open.at(-1) ? braceEnd : bracketEnd)) throw malformed();
        return this.#closed(bytes, from, place);
      default:
        throw malformed();
    }
  }

  /** Whether the next value is an element of a list that is kept, unchanged or in base64. */
  #isInVector(): boolean {
    const isBefore = this.#at === At.Value || this.#at === At.FirstValue;
    return isBefore && (this.#isKept || this.#isPacked) && this.#open.length === inItem + 1 && !this.#open[inItem];
  }

  /**
   * Skips the numbers from this index on that are complete, separated by commas, and returns the index after them.
   * Nearly all bytes of an answer are in such lists, and the state machine takes three times as long for them.
   * Everything else is left to the state machine: the last number, spaces, malformed input.
   */
  #numbersEnd(bytes: Uint8Array, place: number): number {
    for (let begin = place; ; ) {
      const end = numberEnd(bytes, begin);
      if (end < 0) return begin;
      this.#inField(zero);
      if (bytes[end] !== comma) {
        this.#at = At.After;
        return end;
      }
      this.#at = At.Value;
      begin = bytes[end + 1] === space ? end + 2 : end + 1;
    }
  }

  #namesSomething(): boolean {
    return this.#open.length === inAnswer || (this.#isInList && this.#open.length === inItem);
  }

  #valueBegins(from: number, place: number, byte: number): number {
    const depth = this.#open.length;
    let copyFrom = from;
    if (depth === 0 && byte !== brace) throw malformed();
    if (depth === inAnswer) {
      this.#isInList = this.#name === this.#sifting.list;
      this.#isRead = this.#sifting.members.includes(this.#name);
      if (this.#isInList) this.#listBegins(byte);
      else if (!this.#isRead && !own.has(this.#name)) this.#isLeftOut(this.#name, byte);
      copyFrom = place;
    } else if (this.#isInList && depth === inList) {
      if (byte !== brace) throw new UnreadableAnswer("an item of the answer is no object");
      this.#item = new Map();
      this.#hasKept = false;
    } else if (this.#isInList && depth === inItem) {
      this.#fieldBegins(byte);
      copyFrom = place;
    } else if (this.#field && depth === inItem + 1) this.#inField(byte);
    else if (this.#field) this.#field.numbers = -1;
    this.#at = this.#opens(byte);
    return copyFrom;
  }

  #opens(byte: number): At {
    if (byte === brace || byte === bracket) {
      if (this.#open.length === depth_max) throw new UnreadableAnswer(`the answer is deeper than ${depth_max} values`);
      this.#open.push(byte === brace);
      return byte === brace ? At.FirstKey : At.FirstValue;
    }
    if (byte === quote) {
      this.#isName = false;
      return At.Text;
    }
    if (byte === minus) return At.Minus;
    if (byte === zero) return At.Zero;
    if (byte > zero && byte <= nine) return At.Whole;
    const literal = literals.get(byte);
    if (!literal) throw malformed();
    this.#literal = literal;
    this.#literalAt = 1;
    return At.Literal;
  }

  #listBegins(byte: number): void {
    if (byte !== bracket || this.hasList) throw new UnreadableAnswer(`'${this.#name}' of the answer is not one list`);
    this.hasList = true;
  }

  #fieldBegins(byte: number): void {
    const name = this.#name;
    if (this.#item.size === fields_max)
      throw new UnreadableAnswer(`an item of the answer has over ${fields_max} fields`);
    if (this.#item.has(name)) throw new UnreadableAnswer("an item of the answer has a field twice");
    this.#field = { kind: kindOf(byte), numbers: byte === bracket ? 0 : -1, characters: -quotes };
    this.#item.set(name, this.#field);
    this.#isKept = this.#sifting.keeps.includes(name);
    this.#isRead = this.#sifting.reads.includes(name);
    if (!this.#isKept) {
      if (!this.#isRead) this.#isLeftOut(`${this.#sifting.list}.${name}`, byte);
      return;
    }
    const before = this.#hasKept ? "," : this.items > 0 ? ",{" : "{";
    this.#hasKept = true;
    this.#kept.addText(`${before}${JSON.stringify(name)}:`);
    this.#isPacked = this.#sifting.packs === name && byte === bracket;
    if (!this.#isPacked) return;
    this.#isKept = false;
    this.#isRead = true;
  }

  /** Reports a field that is dropped, unless its value is null. */
  #isLeftOut(field: string, byte: number): void {
    if (byte !== nullBegin) this.#leftOut?.(field);
  }

  /** Handles the beginning of a value that is an element of a list in a field. */
  #inField(byte: number): void {
    const field = this.#field!;
    if (field.numbers < 0) return;
    field.numbers = kindOf(byte) === "number" ? field.numbers + 1 : -1;
  }

  #textEnded(bytes: Uint8Array, from: number, place: number): number {
    if (!this.#isName) return this.#valueEnded(bytes, from, place + 1);
    this.#at = At.Colon;
    this.#isName = false;
    if (!this.#namesSomething()) return from;
    this.#copy(bytes, from, place + 1);
    this.#isRead = false;
    this.#name = String(this.#readValue());
    return place + 1;
  }

  #closed(bytes: Uint8Array, from: number, place: number): number {
    this.#open.pop();
    const next = this.#valueEnded(bytes, from, place + 1);
    if (this.#isInList && this.#open.length === inList) this.#itemEnded();
    return next;
  }

  /** Handles the end of a value, which is before the index `place`. */
  #valueEnded(bytes: Uint8Array, from: number, place: number): number {
    const depth = this.#open.length;
    this.#at = depth === 0 ? At.End : At.After;
    if (this.#field && depth === inItem) {
      this.#copy(bytes, from, place);
      if (this.#isPacked) this.#writePacked(this.#field);
      else if (this.#isRead) this.#field.value = this.#readValue();
      this.#field = null;
      this.#isKept = false;
      this.#isRead = false;
      this.#isPacked = false;
    } else if (depth === inAnswer) {
      this.#copy(bytes, from, place);
      if (this.#isRead) this.members.set(this.#name, this.#readValue());
      this.#isRead = false;
      this.#isInList = false;
    }
    return this.#isKept || this.#isRead ? from : place;
  }

  #writePacked({ numbers }: Field): void {
    const list = this.#readValue();
    // A list that has anything but numbers is refused by `item`.
    this.#kept.addText(numbers < 0 ? "null" : `"${packed(list as number[])}"`);
  }

  #itemEnded(): void {
    if (!this.#hasKept) throw new UnreadableAnswer("an item of the answer is empty");
    this.#kept.addText(`${this.#sifting.item(this.#item)}}`);
    this.items += 1;
  }

  #copy(bytes: Uint8Array, from: number, to: number): void {
    if (from >= to) return;
    if (this.#isKept) this.#kept.add(bytes, from, to);
    if (this.#field) this.#field.characters += to - from;
    if (!this.#isRead) return;
    const isName = (this.#isName || this.#at === At.Colon) && this.#namesSomething();
    const bytes_max = isName ? name_bytes_max : read_bytes_max;
    if (this.#reading.length + to - from > bytes_max)
      throw new UnreadableAnswer(`a value of the answer is larger than ${bytes_max} bytes`);
    this.#reading.add(bytes, from, to);
  }

  #readValue(): unknown {
    return JSON.parse(decoder.decode(this.#reading.take()));
  }
}

function kindOf(byte: number): Field["kind"] {
  if (byte === brace) return "object";
  if (byte === bracket) return "list";
  if (byte === quote) return "text";
  return byte === minus || (byte >= zero && byte <= nine) ? "number" : "literal";
}

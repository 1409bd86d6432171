/**
 * Scans the bytes of a body once before they are parsed: how deep it nests, and how many values, members and names it
 * holds. These cost memory and time in a parser, and can be counted at a nanosecond a byte. Rules:
 * docs/design/service.md, Cost before trust. Pure.
 */
import { Fault } from "../inference/fault.ts";
import type { BodyItems } from "./body-items.ts";
import { closes, colon, comma, openingBrace, opens, quote, stringEnd } from "./json-bytes.ts";

export interface BodyShape {
  bytes: number;
  depth: number;
  /** The number of commas and opening brackets: never fewer than there are values. */
  values: number;
  /** The number of colons: the members of all objects, repeated names too. */
  members: number;
  /** The number of different names of members; a few percent too low if there are thousands. */
  names: number;
}

export interface ShapeLimits {
  body_depth_max: number;
  body_values_max: number;
  body_members_max: number;
  body_names_max: number;
}

/** A bracket, comma or colon at the top level of the body, and how many members began before it. */
export interface Mark {
  at: number;
  members: number;
}

/** The most marks that are kept: more than any request has. */
const marks_max = 256;

/** Beyond the fixed limits, a large body may hold one value, one member and one name for each of this many bytes. */
export const bytesPerValue = 128;
export const bytesPerMember = 160;
export const bytesPerName = 1024;

/**
 * Counts the shape of a body, whose bytes it takes in pieces of any size. Bytes that are not JSON are counted too; the
 * parser refuses them.
 */
export class BodyScan implements BodyShape {
  bytes = 0;
  depth = 0;
  values = 0;
  members = 0;
  /**
   * The marks of the body's object: its opening bracket, colons and commas in turn, and its closing bracket. Null if
   * there are too many.
   */
  marks: Mark[] | null = [];
  /** The items that earlier bodies had too, which the scan passes over; null: no items are looked up. */
  readonly items: BodyItems | null;
  readonly #names = new Names();
  #level = 0;
  /** The deepest level since the current item began. */
  #deepest = 0;
  #inString = false;
  /** Whether the last piece ended inside a string, on a backslash that escapes the next byte. */
  #isEscaped = false;

  constructor(items: BodyItems | null = null) {
    this.items = items;
  }

  /** The number of different names, without those in items that were passed over. */
  get names(): number {
    return this.#names.count;
  }

  take(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const end = piece.length;
    const base = this.bytes;
    const before = base - 1;
    this.bytes += end;
    let at = this.#inString ? this.#pastString(piece, this.#isEscaped ? 1 : 0) : 0;
    const { items } = this;
    let { depth, values, members } = this;
    let level = this.#level;
    let deepest = this.#deepest;
    // The start of the last string in this piece. The rest of a string that an earlier piece began counts as an empty
    // name.
    let name = at;
    let nameEnd = at;
    while (at < end) {
      const byte = piece[at++]!;
      if (byte === quote) {
        const from = at - 1;
        const isText = level === 1 && items !== null && items.isBeforeText;
        const found = isText ? items.textAt(piece, from, base) : null;
        name = at;
        at = found ? from + found.bytes.length : this.#pastString(piece, at);
        nameEnd = at;
        if (isText && !found) items.textEnds(piece, base, this.#inString ? base + from : base + at);
      } else if (byte === comma) {
        values++;
        if (level === 1) {
          this.#mark(before + at, members);
          items?.unnamed();
        } else if (level === 2) items?.follows();
      } else if (byte === colon) {
        members++;
        if (level === 1) {
          this.#mark(before + at, members);
          items?.named(piece, name, nameEnd);
        }
        this.#names.add(piece, name, nameEnd);
      } else if (opens(byte)) {
        if (level === 2 && byte === openingBrace && items?.isInList) {
          const found = items.expectedAt(piece, at - 1, base);
          if (found) {
            const { shape } = found;
            values += shape.values;
            members += shape.members;
            depth = Math.max(depth, level + shape.depth);
            at += found.bytes.length - 1;
            continue;
          }
          items.begins({ from: before + at, values, members });
          depth = Math.max(depth, deepest);
          deepest = level;
        }
        values++;
        if (++level > deepest) deepest = level;
        if (level === 1) this.#mark(before + at, members);
        else if (level === 2) items?.opened(byte);
      } else if (closes(byte)) {
        level--;
        if (level === 0) this.#mark(before + at, members);
        else if (level === 1) items?.closed();
        else if (level === 2) items?.ends(piece, base, { to: base + at, values, members, depth: deepest - level });
      }
    }
    this.depth = Math.max(depth, deepest);
    this.#deepest = deepest;
    this.values = values;
    this.members = members;
    this.#level = level;
  }

  #mark(at: number, members: number): void {
    this.marks?.push({ at, members });
    if (this.marks && this.marks.length > marks_max) this.marks = null;
  }

  /**
   * Returns the index after the string in which `from` lies. A string that the piece does not end continues in the next
   * piece.
   */
  #pastString(piece: Uint8Array, from: number): number {
    const after = stringEnd(piece, from);
    // An empty piece changes nothing.
    if (from > piece.length) return from;
    this.#inString = after > piece.length || after === 0;
    this.#isEscaped = after > piece.length;
    return after === 0 ? piece.length : after;
  }
}

/** The number of bytes that are scanned before other requests run. */
const slice_bytes = 1024 * 1024;

/**
 * Scans a piece in parts of `slice_bytes`. Before each part it yields the total size so far, so that other requests can
 * run. `check` throws to end the scan.
 */
export function* lookingOver(scan: BodyScan, piece: Uint8Array, check: () => void): Generator<number, void, void> {
  for (let from = 0; from < piece.byteLength; from += slice_bytes) {
    yield scan.bytes + piece.byteLength - from;
    scan.take(piece.subarray(from, from + slice_bytes));
    check();
  }
}

const places = 2 ** 17;
/** The number of bytes of a long name that are compared, in addition to its length. */
const read_bytes = 48;

/** Counts different names by their hashes, in little memory. Two names with the same hash count once. */
class Names {
  /** One bit for each hash; allocated when it is needed. */
  #taken: Uint8Array | null = null;
  count = 0;

  add(bytes: Uint8Array, from: number, to: number): void {
    this.#taken ??= new Uint8Array(places / 8);
    const place = hash(bytes, from, to) % places;
    const bit = 1 << (place & 7);
    const byte = this.#taken[place >>> 3]!;
    if (byte & bit) return;
    this.#taken[place >>> 3] = byte | bit;
    this.count++;
  }
}

/** FNV-1a, mixed once more so that its low bits are good, too. */
function hash(bytes: Uint8Array, from: number, to: number): number {
  let mixed = 0x811c9dc5 ^ (to - from);
  for (let at = from; at < Math.min(to, from + read_bytes); at++) mixed = Math.imul(mixed ^ bytes[at]!, 0x01000193);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

interface Excess {
  of: "levels" | "values" | "members of objects" | "different names of members";
  max: number;
}

/**
 * The first limit that the shape exceeds. `bytes` is the size of the whole body, or the size that it may still reach.
 */
export function excessOf(shape: BodyShape, limits: ShapeLimits, bytes = shape.bytes): Excess | null {
  const { body_depth_max, body_values_max, body_members_max, body_names_max } = limits;
  if (shape.depth > body_depth_max) return { of: "levels", max: body_depth_max };
  const values_max = body_values_max + Math.floor(bytes / bytesPerValue);
  if (shape.values > values_max) return { of: "values", max: values_max };
  const members_max = body_members_max + Math.floor(bytes / bytesPerMember);
  if (shape.members > members_max) return { of: "members of objects", max: members_max };
  const names_max = body_names_max + Math.floor(bytes / bytesPerName);
  if (shape.names > names_max) return { of: "different names of members", max: names_max };
  return null;
}

/** Throws the Fault of the first limit that a request's body exceeds: `invalid_json` or `request_too_large`. */
export function assertShape(shape: BodyShape, limits: ShapeLimits, bytes = shape.bytes): void {
  const excess = excessOf(shape, limits, bytes);
  if (excess) throw excess.of === "levels" ? tooDeep(excess.max) : tooMany(excess);
}

export function tooDeep(depth_max: number): Fault {
  return new Fault("invalid_json", `The request body is nested more than ${depth_max} levels deep. Flatten it.`);
}

function tooMany({ of, max }: Excess): Fault {
  return new Fault("request_too_large", `The request body holds more than ${max} ${of}. Send less.`);
}

/**
 * The bytes of a body, looked over once before anything is made of them: how deep it nests, how many values, members and names
 * it holds. What costs memory and time in a parser can be counted for a nanosecond a byte. Pure.
 * Rules: docs/design/service.md, Cost before trust.
 */
import { Fault } from "../inference/fault.ts";
import { closes, colon, comma, opens, quote, stringEnd } from "./json-bytes.ts";

export interface BodyShape {
  bytes: number;
  /** Deepest nesting of objects and arrays. */
  depth: number;
  /** Each comma and each opening bracket: never fewer than there are values. */
  values: number;
  /** Each colon: the members of all objects, repeated names too. */
  members: number;
  /** Different names of members; a few percent too few where there are thousands. */
  names: number;
}

export interface ShapeLimits {
  body_depth_max: number;
  body_values_max: number;
  body_members_max: number;
  body_names_max: number;
}

/** A bracket, comma or colon of the body itself, outside of what it holds, and how many members began up to there. */
export interface Mark {
  at: number;
  members: number;
}

/** More than a request has. */
const marks_max = 256;

/** A large body may hold more: beyond the limits, a value for each so many bytes, a member, and a name. */
export const bytesPerValue = 128;
export const bytesPerMember = 160;
export const bytesPerName = 1024;

/** Takes the bytes in pieces of any size. What is no JSON is counted too; the parser says so. */
export class BodyScan implements BodyShape {
  bytes = 0;
  depth = 0;
  values = 0;
  members = 0;
  /** The marks of an object: its bracket, colons and commas in turn, and its bracket. Null if there are too many. */
  marks: Mark[] | null = [];
  readonly #names = new Names();
  #level = 0;
  #inString = false;
  /** The piece before ended in a string, on a backslash that escapes what comes next. */
  #isEscaped = false;

  get names(): number {
    return this.#names.count;
  }

  take(piece: Uint8Array): void {
    const end = piece.length;
    const before = this.bytes - 1;
    this.bytes += end;
    let at = this.#inString ? this.#pastString(piece, this.#isEscaped ? 1 : 0) : 0;
    let { depth, values, members } = this;
    let level = this.#level;
    // The last string that began in this piece; what is left of a cut one counts as a name without letters.
    let name = at;
    let nameEnd = at;
    while (at < end) {
      const byte = piece[at++]!;
      if (byte === quote) {
        name = at;
        at = this.#pastString(piece, at);
        nameEnd = at;
      } else if (byte === comma) {
        values++;
        if (level === 1) this.#mark(before + at, members);
      } else if (byte === colon) {
        members++;
        if (level === 1) this.#mark(before + at, members);
        this.#names.add(piece, name, nameEnd);
      } else if (opens(byte)) {
        values++;
        if (++level > depth) depth = level;
        if (level === 1) this.#mark(before + at, members);
      } else if (closes(byte) && --level === 0) this.#mark(before + at, members);
    }
    this.depth = depth;
    this.values = values;
    this.members = members;
    this.#level = level;
  }

  #mark(at: number, members: number): void {
    this.marks?.push({ at, members });
    if (this.marks && this.marks.length > marks_max) this.marks = null;
  }

  /** A string that the piece does not end goes on in the next one. */
  #pastString(piece: Uint8Array, from: number): number {
    const after = stringEnd(piece, from);
    // An empty piece changes nothing.
    if (from > piece.length) return from;
    this.#inString = after > piece.length || after === 0;
    this.#isEscaped = after > piece.length;
    return after === 0 ? piece.length : after;
  }
}

/** Bytes that are scanned before others get their turn. */
const slice_bytes = 1024 * 1024;

/** Before each slice of a piece how much has come in all, for a pause; `check` throws what ends it. */
export function* lookingOver(scan: BodyScan, piece: Uint8Array, check: () => void): Generator<number, void, void> {
  for (let from = 0; from < piece.byteLength; from += slice_bytes) {
    yield scan.bytes + piece.byteLength - from;
    scan.take(piece.subarray(from, from + slice_bytes));
    check();
  }
}

const places = 2 ** 17;
/** The bytes of a long name that are compared, beside its length. */
const read_bytes = 48;

/** Counts different names by where their hashes fall, in little memory: two that fall together count once. */
class Names {
  /** A bit for each place; made when it is needed. */
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

/** A limit that a shape breaks: on its levels, or on how many things it has. */
export interface Excess {
  of: "levels" | "values" | "members of objects" | "different names of members";
  max: number;
}

/** The first limit that the shape breaks. `bytes` is the size that the whole has, or that it may still come to. */
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

/** Throws the Fault of the first limit that a request's body breaks: `invalid_json`, `request_too_large`. */
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

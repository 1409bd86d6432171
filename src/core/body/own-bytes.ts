/**
 * Sends members of a large body to an engine in the caller's own bytes. That spares encoding, and keeps numbers that no
 * double holds. A member is sent so only if its parsed value is the one that the engine is to get, and no name in it
 * repeats: of two members with one name, an engine may read the one that was not metered. docs/design/service.md, The
 * caller's own bytes.
 */
import { singleForms, type WireForms } from "../protocol/codec.ts";
import { closingBrace, comma } from "./json-bytes.ts";
import { release } from "./pieces.ts";
import type { Mark } from "./scan.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Members of fewer bytes are encoded, which is as quick. */
const handed_bytes_min = 4096;

/**
 * The extent of a member in the bytes. It begins with the name, after the mark (bracket or comma) before it, and ends
 * with the value, before the next mark.
 */
interface Member {
  name: string;
  from: number;
  to: number;
  /** The number of members inside the value, repeated names included. */
  members: number;
}

interface HandedOn {
  /** The members that have to be encoded. */
  rest: Fields;
  /** The bytes of the other members, as the caller wrote them. */
  handed: Uint8Array[];
}

export class OwnBytes implements Disposable {
  #kept: { bytes: Uint8Array; marks: readonly Mark[]; value: unknown } | null;

  /** `value` was parsed from `bytes`. `handOn` and the disposal overwrite or free the bytes. */
  constructor(bytes: Uint8Array, marks: readonly Mark[], value: unknown) {
    this.#kept = { bytes, marks, value };
  }

  /**
   * The body for an engine, with the caller's bytes for objects, lists and texts of at least `bytes_min` bytes. Works
   * once: for a second engine the whole body is encoded.
   */
  handOn(outgoing: Fields, forms = singleForms, bytes_min = handed_bytes_min): HandedOn {
    const kept = this.#kept;
    this.#kept = null;
    if (!kept) return { rest: outgoing, handed: [] };
    const { bytes, marks } = kept;
    const body = kept.value as Fields;
    const isNamedOnce = Object.keys(body).length === (marks.length - 1) / 2;
    const large = membersAt(marks, bytes, isNamedOnce ? bytes_min : 0).filter(({ from, to }) => to - from >= bytes_min);
    const comparison = new Comparison(forms);
    const same = large.filter(
      ({ name, members }) => Object.hasOwn(outgoing, name) && comparison.isSame(outgoing[name], body[name], members),
    );
    if (same.length === 0) {
      release(bytes);
      return { rest: outgoing, handed: [] };
    }
    const rest: Record<string, unknown> = { ...outgoing };
    for (const { name } of same) rest[name] = undefined;
    return { rest, handed: piecesOf(same, bytes) };
  }

  [Symbol.dispose](): void {
    if (this.#kept) release(this.#kept.bytes);
    this.#kept = null;
  }
}

/** The top-level members of the body, of at least `bytes_min` bytes, whose names do not repeat among these. */
function membersAt(marks: readonly Mark[], bytes: Uint8Array, bytes_min: number): Member[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = new Map<string, Member | null>();
  for (let at = 0; at + 2 < marks.length; at += 2) {
    const [before, colon, behind] = [marks[at]!, marks[at + 1]!, marks[at + 2]!];
    const from = before.at + 1;
    if (behind.at - from < bytes_min) continue;
    const name = JSON.parse(text.toString("utf8", from, colon.at)) as string;
    found.set(name, found.has(name) ? null : { name, from, to: behind.at, members: behind.members - colon.members });
  }
  return [...found.values()].filter((member) => member !== null);
}

/**
 * The number of members of each object that an engine gets as the same object that was parsed. Many requests share such
 * objects, above all the schemas of tools (item-cache.ts). Objects with fewer members are counted each time.
 */
const membersOfSame = new WeakMap<object, number>();
const remembered_members_min = 16;

class Comparison {
  readonly #forms: WireForms;

  constructor(forms: WireForms) {
    this.#forms = forms;
  }

  /**
   * Whether `outgoing` equals `written` and no name repeats. `members`: the number of members in the bytes of
   * `written`.
   */
  isSame(outgoing: unknown, written: unknown, members: number): boolean {
    const isLarge = typeof outgoing === "object" || typeof outgoing === "string";
    return isLarge && this.#members(outgoing, written) === members;
  }

  /** The number of members of `written`, at any depth; -1 if `outgoing` is not the same JSON. */
  #members(outgoing: unknown, written: unknown): number {
    if (typeof written !== "object" || written === null) {
      // A number that exceeds the range of a double would be written as null.
      if (typeof outgoing === "number" && !Number.isFinite(outgoing)) return -1;
      const isEqual = Array.isArray(outgoing)
        ? typeof written === "string" && this.#forms.textOf(outgoing) === written
        : outgoing === written;
      // A text with a lone surrogate is not sent as it was written: the JSON encoder has to replace it
      // (json-pieces.ts).
      return isEqual && (typeof written !== "string" || written.isWellFormed()) ? 0 : -1;
    }
    if (typeof outgoing === "string" && Array.isArray(written)) return this.#ofText(outgoing, written);
    if (typeof outgoing !== "object" || outgoing === null || Array.isArray(outgoing) !== Array.isArray(written))
      return -1;
    return Array.isArray(written)
      ? this.#ofItems(outgoing as unknown[], written)
      : this.#ofFields(outgoing as Fields, written as Fields);
  }

  #ofText(outgoing: string, written: readonly unknown[]): number {
    return this.#forms.textOf(written) === outgoing ? Object.keys(written[0] as Fields).length : -1;
  }

  #ofItems(outgoing: readonly unknown[], written: readonly unknown[]): number {
    if (outgoing.length !== written.length) return -1;
    let members = 0;
    for (let at = 0; at < written.length; at++) {
      const inside = this.#members(outgoing[at], written[at]);
      if (inside < 0) return -1;
      members += inside;
    }
    return members;
  }

  #ofFields(outgoing: Fields, written: Fields): number {
    const known = outgoing === written ? membersOfSame.get(written) : undefined;
    if (known !== undefined) return known;
    let members = 0;
    let unmatched = 0;
    for (const name in written) {
      members += 1;
      if (outgoing[name] === undefined && this.#forms.isImplied(name, written[name])) continue;
      const inside = isUnusual(name) ? -1 : this.#members(outgoing[name], written[name]);
      if (inside < 0) return -1;
      members += inside;
      unmatched++;
    }
    if (outgoing === written) {
      if (members >= remembered_members_min) membersOfSame.set(written, members);
      return members;
    }
    for (const name in outgoing) if (outgoing[name] !== undefined) unmatched--;
    return unmatched === 0 || this.#areImplied(outgoing, written, -unmatched) ? members : -1;
  }

  /**
   * Whether `count` members of `outgoing`, which are all that the caller left out, have values that their absence
   * implies.
   */
  #areImplied(outgoing: Fields, written: Fields, count: number): boolean {
    let implied = 0;
    for (const name in outgoing)
      if (!Object.hasOwn(written, name) && this.#forms.isImplied(name, outgoing[name])) implied++;
    return implied === count;
  }
}

/**
 * Whether the bytes of a member of this name are never kept, and its value is encoded anew. `rawJSON` is the name under
 * which a value holds the digits of a long number (tool-input.ts).
 */
function isUnusual(name: string): boolean {
  return name === "__proto__" || name === "rawJSON" || !name.isWellFormed();
}

/** The whole body: the encoded members, in pieces, and those that are sent as they were written. */
export function joinedBody(written: Uint8Array[], handed: Uint8Array[]): Uint8Array[] {
  if (handed.length === 0) return written;
  const last = written.at(-1)!;
  // The comma replaces the closing bracket.
  last[last.length - 1] = comma;
  return [...written, ...handed];
}

/**
 * The bytes of the members, in pieces; adjacent members become one piece. The mark after each piece is overwritten by a
 * comma, and after the last one by the closing brace.
 */
function piecesOf(members: readonly Member[], bytes: Uint8Array): Uint8Array[] {
  const spans: { from: number; to: number }[] = [];
  for (const { from, to } of members) {
    const last = spans.at(-1);
    if (last && last.to + 1 === from) last.to = to;
    else spans.push({ from, to });
  }
  for (const { to } of spans) bytes[to] = comma;
  bytes[spans.at(-1)!.to] = closingBrace;
  return spans.map(({ from, to }) => bytes.subarray(from, to + 1));
}

/**
 * The caller's own bytes of a large body, until an engine is asked: what it is asked that the body says in the same words
 * is handed on as it was written. That spares writing it anew, and keeps numbers that no double holds.
 *
 * A member of the body is handed on where what was parsed of it is what the engine is asked, and no name repeats anywhere
 * in it: of two, an engine may read the one that was not metered. docs/design/service.md, The caller's own bytes.
 */
import type { Mark } from "./body-scan.ts";
import { closingBrace, comma } from "./json-bytes.ts";
import { release } from "./release.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Less is written as quickly. */
const handed_bytes_min = 4096;

/** Where a member stands: its name from behind the mark before it, and its value up to the mark behind it. */
interface Member {
  name: string;
  from: number;
  to: number;
  /** Of all that it holds, repeated names too. */
  members: number;
}

export interface HandedOn {
  /** What has to be written. */
  rest: Fields;
  /** The other members. */
  handed: Uint8Array[];
}

export class OwnBytes implements Disposable {
  #kept: { bytes: Uint8Array; marks: readonly Mark[]; value: unknown } | null;

  /** `value` was parsed from `bytes`, and both are used up. */
  constructor(bytes: Uint8Array, marks: readonly Mark[], value: unknown) {
    this.#kept = { bytes, marks, value };
  }

  /** Objects and lists of so many bytes. Once: for a second engine all of it is written. */
  handOn(asked: Fields, bytes_min = handed_bytes_min): HandedOn {
    const kept = this.#kept;
    this.#kept = null;
    if (!kept) return { rest: asked, handed: [] };
    const { bytes, marks } = kept;
    const body = kept.value as Fields;
    const large = membersAt(marks, bytes).filter(({ from, to }) => to - from >= bytes_min);
    const same = large.filter((member) => isSame(asked, body, member));
    if (same.length === 0) {
      release(bytes);
      return { rest: asked, handed: [] };
    }
    const names = new Set(same.map(({ name }) => name));
    const rest = Object.fromEntries(Object.entries(asked).filter(([name]) => !names.has(name)));
    return { rest, handed: piecesOf(same, bytes) };
  }

  letGo(): void {
    if (this.#kept) release(this.#kept.bytes);
    this.#kept = null;
  }

  [Symbol.dispose](): void {
    this.letGo();
  }
}

/** The members of the body itself whose names do not repeat. */
function membersAt(marks: readonly Mark[], bytes: Uint8Array): Member[] {
  const decoder = new TextDecoder();
  const found = new Map<string, Member | null>();
  for (let at = 0; at + 2 < marks.length; at += 2) {
    const [before, colon, behind] = [marks[at]!, marks[at + 1]!, marks[at + 2]!];
    const from = before.at + 1;
    const name = JSON.parse(decoder.decode(bytes.subarray(from, colon.at))) as string;
    found.set(name, found.has(name) ? null : { name, from, to: behind.at, members: behind.members - colon.members });
  }
  return [...found.values()].filter((member) => member !== null);
}

function isSame(asked: Fields, body: Fields, { name, members }: Member): boolean {
  if (!Object.hasOwn(asked, name) || typeof asked[name] !== "object") return false;
  return sameMembers(asked[name], body[name]) === members;
}

/** How many members `written` holds, at any depth; -1 where `asked`, as JSON, is something else. */
function sameMembers(asked: unknown, written: unknown): number {
  if (typeof written !== "object" || written === null) {
    // What is beyond a double would be written as null.
    if (typeof asked === "number" && !Number.isFinite(asked)) return -1;
    return asked === written ? 0 : -1;
  }
  if (typeof asked !== "object" || asked === null || Array.isArray(asked) !== Array.isArray(written)) return -1;
  return Array.isArray(written)
    ? sameItems(asked as unknown[], written)
    : sameFields(asked as Fields, written as Fields);
}

function sameItems(asked: readonly unknown[], written: readonly unknown[]): number {
  if (asked.length !== written.length) return -1;
  let members = 0;
  for (let at = 0; at < written.length; at++) {
    const inside = sameMembers(asked[at], written[at]);
    if (inside < 0) return -1;
    members += inside;
  }
  return members;
}

function sameFields(asked: Fields, written: Fields): number {
  let members = 0;
  let unmatched = 0;
  for (const name in written) {
    const inside = name === "__proto__" ? -1 : sameMembers(asked[name], written[name]);
    if (inside < 0) return -1;
    members += 1 + inside;
    unmatched++;
  }
  for (const name in asked) if (asked[name] !== undefined) unmatched--;
  return unmatched === 0 ? members : -1;
}

/** The whole: what was written of the rest, in pieces, and the members that are handed on. */
export function joined(written: Uint8Array[], handed: Uint8Array[]): Uint8Array[] {
  if (handed.length === 0) return written;
  const last = written.at(-1)!;
  // In place of the closing bracket.
  last[last.length - 1] = comma;
  return [...written, ...handed];
}

/** Members that stand side by side are one piece, and the mark behind each piece becomes the one that is needed there. */
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

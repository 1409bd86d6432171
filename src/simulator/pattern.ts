/**
 * A string that matches a regular expression, made by reading the expression and never by running it: one from a
 * stranger may take for ever. Literals, classes, groups, alternation (the first branch) and quantifiers; anchors and
 * lookarounds add nothing. What else there is gives null.
 */

/** Makes the text of one part; `extra` is how often an unbounded repetition goes beyond its least. */
type Part = (extra: number) => string;

const pattern_length_max = 1000;
const length_max = 10_000;

/** `length_min` is reached where the expression has an unbounded repetition. */
export function matching(pattern: string, length_min: number): string | null {
  if (pattern.length > pattern_length_max) return null;
  const reader = { pattern, at: 0 };
  try {
    const part = alternatives(reader);
    if (reader.at < pattern.length) return null;
    const least = part(0);
    return least.length >= length_min ? least : part(length_min);
  } catch (error) {
    if (error instanceof Unreadable) return null;
    throw error;
  }
}

class Unreadable extends Error {}

interface Reader {
  pattern: string;
  at: number;
}

function peek(reader: Reader): string {
  return reader.pattern[reader.at] ?? "";
}

function take(reader: Reader): string {
  const point = reader.pattern.codePointAt(reader.at);
  if (point === undefined) throw new Unreadable();
  const character = String.fromCodePoint(point);
  reader.at += character.length;
  return character;
}

function alternatives(reader: Reader): Part {
  const first = sequence(reader);
  while (peek(reader) === "|") {
    reader.at += 1;
    sequence(reader);
  }
  return first;
}

function sequence(reader: Reader): Part {
  const parts: Part[] = [];
  while (reader.at < reader.pattern.length && peek(reader) !== "|" && peek(reader) !== ")") {
    parts.push(repeated(reader, atom(reader)));
  }
  return (extra) => parts.map((part) => part(extra)).join("");
}

function repeated(reader: Reader, part: Part): Part {
  const [min, unbounded] = quantifier(reader);
  if (min === 1 && !unbounded) return part;
  return (extra) => {
    const once = part(extra);
    const times = min + (unbounded ? extra : 0);
    if (once.length * times > length_max) throw new Unreadable();
    return once.repeat(once === "" ? 0 : times);
  };
}

function quantifier(reader: Reader): [min: number, unbounded: boolean] {
  const found = /^(?:\*|\+|\?|\{(\d{1,9})(,(\d{0,9}))?\})\??/.exec(reader.pattern.slice(reader.at, reader.at + 24));
  if (!found) return [1, false];
  reader.at += found[0].length;
  const sign = found[0][0];
  if (sign === "{") return [Number(found[1]), found[2] !== undefined && found[3] === ""];
  return [sign === "+" ? 1 : 0, sign !== "?"];
}

function atom(reader: Reader): Part {
  const character = take(reader);
  if (character === "^" || character === "$") return () => "";
  if (character === ".") return () => "a";
  if (character === "(") return group(reader);
  if (character === "[") return constant(characterOf(reader));
  if (character === "\\") return constant(escaped(reader));
  if ("*+?{".includes(character)) throw new Unreadable();
  return constant(character);
}

function constant(text: string): Part {
  return () => text;
}

function group(reader: Reader): Part {
  const head = /^\?(?::|<[A-Za-z_]\w{0,60}>|(=|!|<=|<!))/.exec(reader.pattern.slice(reader.at, reader.at + 70));
  if (!head && peek(reader) === "?") throw new Unreadable();
  reader.at += head?.[0].length ?? 0;
  const inside = alternatives(reader);
  if (take(reader) !== ")") throw new Unreadable();
  return head?.[1] === undefined ? inside : () => "";
}

/** One member of an escaped class, or the escaped character. */
function escaped(reader: Reader): string {
  const character = take(reader);
  const members: Record<string, string> = { d: "0", D: "a", w: "a", W: " ", s: " ", S: "a", n: "\n", r: "\r", t: "\t" };
  if (members[character] !== undefined) return members[character];
  if (character === "b" || character === "B") return "";
  if (character === "u" || character === "x") return codePoint(reader, character);
  if (/[0-9A-Za-z]/.test(character)) throw new Unreadable();
  return character;
}

function codePoint(reader: Reader, kind: string): string {
  const shape = kind === "x" ? /^([0-9a-f]{2})/i : /^(?:([0-9a-f]{4})|\{([0-9a-f]{1,6})\})/i;
  const found = shape.exec(reader.pattern.slice(reader.at, reader.at + 8));
  const point = Number.parseInt(found?.[1] ?? found?.[2] ?? "", 16);
  if (!found || point > 0x10ffff) throw new Unreadable();
  reader.at += found[0].length;
  return String.fromCodePoint(point);
}

const candidates = [..."a0A_- .@!~é"];

function characterOf(reader: Reader): string {
  const negated = peek(reader) === "^";
  if (negated) reader.at += 1;
  const start = reader.at;
  const members: string[] = [];
  while (peek(reader) !== "]") {
    const character = take(reader);
    members.push(character === "\\" ? escaped(reader) : character);
  }
  const source = reader.pattern.slice(start, reader.at);
  reader.at += 1;
  const found = negated ? candidates.find((candidate) => isOutside(source, candidate)) : members[0];
  if (found === undefined) throw new Unreadable();
  return found;
}

/** A class alone is one step: it may be run. */
function isOutside(source: string, candidate: string): boolean {
  try {
    return new RegExp(`[^${source}]`, "u").test(candidate);
  } catch {
    throw new Unreadable();
  }
}

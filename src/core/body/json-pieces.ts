/**
 * Writes a large value as JSON in pieces of bytes: one string would be held two or three times, and would stop all
 * other work while it is made. The result is that of JSON.stringify, for data that came from JSON, but with U+FFFD for
 * each lone surrogate (half of a character): engines answer 500 to those. Pure.
 */

/** The number of characters of a piece, roughly. */
const piece_characters = 256 * 1024;

/** The bytes that each value adds to the size of a piece, besides its own characters. */
const value_characters = 8;

/** Called if a text has half of a surrogate pair that stands alone. */
type Alone = (() => void) | undefined;

export function jsonText(value: unknown, alone: Alone): string {
  return wellFormed(JSON.stringify(value), alone);
}

/**
 * Replaces each lone surrogate (half of a character). JSON.stringify writes a lone surrogate as an escape, and a whole
 * character as itself.
 */
function wellFormed(json: string, alone: Alone): string {
  if (!json.includes("\\ud")) return json;
  return json.replace(half, (_, before: string) => {
    alone?.();
    return `${before}\ufffd`;
  });
}
const half = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

export function* jsonPieces(
  value: unknown,
  piece = piece_characters,
  alone?: Alone,
): Generator<Uint8Array<ArrayBuffer>, void, void> {
  const encoder = new TextEncoder();
  let text = "";
  for (const part of parts(value, piece)) {
    text += part;
    if (text.length < piece) continue;
    yield encoder.encode(wellFormed(text, alone));
    text = "";
  }
  if (text !== "") yield encoder.encode(wellFormed(text, alone));
}

/** The JSON of a value, in texts of about one piece at most. */
function* parts(value: unknown, piece: number): Generator<string, void, void> {
  if (typeof value === "string") yield* ofString(value, piece);
  else if (typeof value !== "object" || value === null) yield JSON.stringify(value) ?? "null";
  else if (Array.isArray(value)) yield* ofArray(value, piece);
  else yield* ofObject(value as Record<string, unknown>, piece);
}

function* ofString(value: string, piece: number): Generator<string, void, void> {
  yield '"';
  for (let from = 0; from < value.length; ) {
    const to = cutBefore(value, from + Math.max(2, piece));
    yield JSON.stringify(value.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"';
}

/**
 * The position at which to cut: never between the two halves of a surrogate pair, because each would be written as an
 * escape.
 */
function cutBefore(value: string, at: number): number {
  if (at >= value.length) return value.length;
  const isTrailing = (value.charCodeAt(at) & 0xfc00) === 0xdc00;
  return isTrailing ? at - 1 : at;
}

function* ofArray(items: readonly unknown[], piece: number): Generator<string, void, void> {
  let comma = "[";
  for (let from = 0; from < items.length; ) {
    const to = lightTo(items, from, piece);
    yield comma;
    if (to > from) yield JSON.stringify(items.slice(from, to)).slice(1, -1);
    else yield* parts(items[from], piece);
    comma = ",";
    from = Math.max(to, from + 1);
  }
  yield comma === "[" ? "[]" : "]";
}

/** The index after the items from `from` on that fit into one piece together. */
function lightTo(items: readonly unknown[], from: number, piece: number): number {
  let at = from;
  for (let room = piece; at < items.length; at++) {
    room = left(items[at], room);
    if (room < 0) break;
  }
  return at;
}

function* ofObject(value: Readonly<Record<string, unknown>>, piece: number): Generator<string, void, void> {
  const names = Object.keys(value).filter((name) => value[name] !== undefined);
  let comma = "{";
  for (let from = 0; from < names.length; ) {
    const light: Record<string, unknown> = Object.create(null);
    let at = from;
    for (let room = piece; at < names.length; at++) {
      room = left(value[names[at]!], room - names[at]!.length);
      if (room < 0) break;
      light[names[at]!] = value[names[at]!];
    }
    yield comma;
    if (at > from) yield JSON.stringify(light).slice(1, -1);
    else {
      yield* ofString(names[from]!, piece);
      yield ":";
      yield* parts(value[names[from]!], piece);
    }
    comma = ",";
    from = Math.max(at, from + 1);
  }
  yield comma === "{" ? "{}" : "}";
}

/**
 * The characters that remain of `room` after this value. Negative if it does not fit; then it was not walked to its
 * end.
 */
function left(value: unknown, room: number): number {
  if (typeof value === "string") return room - value_characters - value.length;
  if (typeof value !== "object" || value === null) return room - value_characters;
  let rest = room - value_characters;
  if (Array.isArray(value)) {
    for (const item of value) {
      rest = left(item, rest);
      if (rest < 0) return rest;
    }
    return rest;
  }
  for (const name in value) {
    rest = left((value as Record<string, unknown>)[name], rest - name.length);
    if (rest < 0) return rest;
  }
  return rest;
}

/**
 * Collects the opaque values of an engine's answer while it arrives, and makes reasoning parts of them. Those of a
 * message go with its reasoning, and that of a call goes before the call.
 */
import { type Carried, carriedCharacters_max, signatureFor, valueAt } from "../carried.ts";
import type { Dialect } from "../dialect.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";

export class CarriedOut {
  readonly #dialect: Dialect;
  readonly #model: string;
  #list: { field: string; pieces: JsonObject[] } | null = null;

  constructor(dialect: Dialect, model: string) {
    this.#dialect = dialect;
    this.#model = model;
  }

  /** Takes the opaque values in a message or a delta. */
  take(message: JsonObject): void {
    for (const { kind, path } of this.#dialect.carries) {
      if (kind !== "message") continue;
      const pieces = valueAt(message, path);
      if (!Array.isArray(pieces)) continue;
      this.#list ??= { field: path.join("."), pieces: [] };
      for (const piece of pieces) if (isObject(piece)) joinTo(this.#list.pieces, piece);
    }
  }

  /** The signature for the values of the message so far; undefined if there are none, or if they are too large. */
  ofMessage(): string | undefined {
    const list = this.#list;
    this.#list = null;
    return list === null || list.pieces.length === 0
      ? undefined
      : this.#sign({ field: list.field, value: list.pieces });
  }

  /** The signatures of calls whose values came after their first fragments. */
  readonly late: string[] = [];
  readonly #signed = new Set<string>();

  /** Takes a later fragment of a call. */
  takeLate(fragment: JsonObject, callId: string): void {
    const signature = this.ofCall(fragment, callId);
    if (signature !== undefined) this.late.push(signature);
  }

  /** The signature for the value of a call; undefined if the fragment has none, or an earlier one had it. */
  ofCall(fragment: JsonObject, callId: string): string | undefined {
    if (this.#signed.has(callId)) return undefined;
    for (const { kind, path } of this.#dialect.carries) {
      const value = kind === "call" ? textOf(valueAt(fragment, path)) : "";
      if (value === "") continue;
      this.#signed.add(callId);
      return this.#sign({ field: path.join("."), callId, value });
    }
    return undefined;
  }

  #sign(value: Pick<Carried, "field" | "callId" | "value">): string | undefined {
    return signatureFor({ model: this.#model, by: this.#dialect.mark, ...value });
  }
}

/** The texts of a value that arrive piece by piece. */
const growing = ["text", "summary", "data"];

/** Joins a piece to the last one if it continues it, and appends it otherwise. */
function joinTo(pieces: JsonObject[], piece: JsonObject): void {
  const last = pieces.at(-1);
  const isMore = last !== undefined && last.type === piece.type && isIndexOf(last, piece) && !isWhole(last, piece);
  if (!isMore) {
    pieces.push({ ...piece });
    return;
  }
  for (const [name, value] of Object.entries(piece)) {
    const text = growing.includes(name) ? textOf(last[name]) + textOf(value) : value;
    if (value !== null && value !== undefined)
      last[name] = typeof text === "string" ? text.slice(0, carriedCharacters_max + 1) : text;
  }
}

function isIndexOf({ index }: JsonObject, piece: JsonObject): boolean {
  return index !== undefined && index === piece.index;
}

/** Whether a piece is complete, because the next one has another id. */
function isWhole({ id }: JsonObject, piece: JsonObject): boolean {
  return typeof piece.id === "string" && typeof id === "string" && piece.id !== id;
}

/**
 * Writes opaque values (carried.ts) into the fields of chat messages: for an engine in the engine's own fields, and for
 * a client as signatures. Also collects the opaque values of an engine's answer while it arrives.
 */
import type { ReasoningPart, ToolCallPart } from "../../inference/request.ts";
import {
  type Carried,
  carriedCharacters_max,
  carriedIn,
  carriedTotal_max,
  isCarried,
  signatureFor,
  withValue,
} from "../carried.ts";
import type { UpstreamAsk } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { fieldFor } from "../dialects/coming-back.ts";
import { dialects } from "../dialects.ts";
import { isObject, type JsonObject, textOf, valueAt } from "../json.ts";

/** The opaque values in a request that may be sent back to its engine. */
export class CarriedBack {
  #characters = 0;

  constructor(
    readonly model: string,
    readonly dialect: Dialect,
    readonly lost: UpstreamAsk["lost"],
  ) {}

  /**
   * Returns the message with the opaque values of these reasoning parts, each in a field of the message or of the call
   * to which it belongs.
   */
  in(message: JsonObject, reasoning: readonly ReasoningPart[], calls: readonly ToolCallPart[]): JsonObject {
    return reasoning.reduce((with_, { signature }) => {
      if (!isCarried(signature)) return with_;
      const carried = carriedIn(signature);
      const field = carried && fieldFor(carried, this.model, this.dialect);
      this.#characters += signature.length;
      const next = field && this.#characters <= carriedTotal_max ? placed(with_, carried, field.path, calls) : null;
      if (next === null) this.lost?.("carried");
      return next ?? with_;
    }, message);
  }
}

/**
 * Returns the message with an opaque value in its field, or in the field of the call to which it belongs. Null if that
 * call is not in the message.
 */
function placed(
  message: JsonObject,
  { callId, value }: Carried,
  path: readonly string[],
  calls: readonly ToolCallPart[],
) {
  if (callId === undefined) {
    const before = valueAt(message, path);
    return withValue(message, path, [...(Array.isArray(before) ? before : []), ...(value as JsonObject[])]);
  }
  const at = calls.findIndex((call) => call.callId === callId);
  if (at < 0) return null;
  const written = (message.tool_calls as JsonObject[]).map((call, place) =>
    place === at ? withValue(call, path, value) : call,
  );
  return { ...message, tool_calls: written };
}

/** The fields in which a client gets an opaque value, as a signature. */
export function clientFields({ field, callId }: Carried, signature: string): JsonObject {
  const value = callId === undefined ? [{ type: "reasoning.encrypted", data: signature, index: 0 }] : signature;
  return withValue({}, field.split("."), value);
}

/** The signatures in the fields of a client's message and of its calls, from engines of any dialect. */
export function signaturesIn(message: JsonObject): string[] {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isObject) : [];
  return dialects.generic.carries
    .flatMap(({ kind, path }) => {
      if (kind === "call")
        return calls.flatMap((call) => (textOf(valueAt(call, path)) ? [textOf(valueAt(call, path))] : []));
      const list = valueAt(message, path);
      return Array.isArray(list) ? list.filter(isObject).map(({ data }) => textOf(data)) : [];
    })
    .filter(isCarried);
}

/**
 * Collects the opaque values of an engine's answer while it arrives, and makes signatures of them. The values of a
 * message become the signature of its reasoning part. The value of a call is in a reasoning part before the call.
 */
export class CarriedOut {
  readonly #dialect: Dialect;
  readonly #model: string;
  #list: { field: string; pieces: JsonObject[] } | null = null;

  constructor(dialect: Dialect, model: string) {
    this.#dialect = dialect;
    this.#model = model;
  }

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

  /** The signatures of calls whose opaque values came after the calls' first fragments. */
  readonly late: string[] = [];
  readonly #signed = new Set<string>();

  takeLate(fragment: JsonObject, callId: string): void {
    const signature = this.ofCall(fragment, callId);
    if (signature !== undefined) this.late.push(signature);
  }

  /**
   * The signature for the opaque value of a call; undefined if the fragment has none, or if an earlier fragment had it.
   */
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

/** The members of an opaque value whose text arrives piece by piece. */
const growing = ["text", "summary", "data"];

/** Joins a piece to the last piece if it is a continuation of that piece. If not, appends it to the list. */
function joinTo(pieces: JsonObject[], piece: JsonObject): void {
  const last = pieces.at(-1);
  const { type, index, id } = piece;
  const isOther = typeof last?.id === "string" && typeof id === "string" && last.id !== id;
  if (last === undefined || last.type !== type || index === undefined || last.index !== index || isOther) {
    pieces.push({ ...piece });
    return;
  }
  for (const [name, value] of Object.entries(piece)) {
    const text = growing.includes(name) ? textOf(last[name]) + textOf(value) : value;
    if (value !== null && value !== undefined)
      last[name] = typeof text === "string" ? text.slice(0, carriedCharacters_max + 1) : text;
  }
}

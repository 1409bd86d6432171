/**
 * Writes opaque values into the fields of a chat message: for an engine as its own fields, for a client as signatures.
 */
import type { ReasoningPart, ToolCallPart } from "../../inference/request.ts";
import { type Carried, carriedIn, carriedTotal_max, isCarried, valueAt, withValue } from "../carried.ts";
import type { UpstreamAsk } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { fieldFor } from "../dialects/coming-back.ts";
import { carriedFields } from "../dialects.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";

/** The opaque values in a request that may be sent back to its engine. */
export class CarriedBack {
  #characters = 0;

  constructor(
    readonly model: string,
    readonly dialect: Dialect,
    readonly lost: UpstreamAsk["lost"],
  ) {}

  /** The message with the opaque values of these parts in its fields, and in those of its calls. */
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

/** The message with a value in its field or in that of its call; null if the call is not in the message. */
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

/** The fields in which a client gets the value, as a signature. */
export function clientFields({ field, callId }: Carried, signature: string): JsonObject {
  const value = callId === undefined ? [{ type: "reasoning.encrypted", data: signature, index: 0 }] : signature;
  return withValue({}, field.split("."), value);
}

/** The signatures in the fields of a client's message and of its calls. */
export function signaturesIn(message: JsonObject): string[] {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isObject) : [];
  return carriedFields
    .flatMap(({ kind, path }) => {
      if (kind === "call")
        return calls.flatMap((call) => (textOf(valueAt(call, path)) ? [textOf(valueAt(call, path))] : []));
      const list = valueAt(message, path);
      return Array.isArray(list) ? list.filter(isObject).map(({ data }) => textOf(data)) : [];
    })
    .filter(isCarried);
}

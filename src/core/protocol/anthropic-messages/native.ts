/** Keeps the fields of a wire object for which an `InferenceRequest` has no fields, for engines that speak Messages. */
import type { Native } from "../../inference/request.ts";
import { isGiven, isObject, type JsonObject } from "../json.ts";

/**
 * Adds the wire object to the part as `native`, if it has any of the keys in `beyond`, for which an `InferenceRequest`
 * has no fields. It keeps the `modelled` keys too, as they were written. Nulls are left out: they mean the same as
 * absent, and strict engines refuse them. A `cache_control` that is not an object is left out as well.
 */
export function withNative<Part extends { native?: Native }>(
  part: Part,
  wire: object,
  modelled: readonly string[],
  beyond: readonly string[],
): Part {
  const source = wire as Record<string, unknown>;
  for (const key of beyond) {
    if (!isKept(key, source[key])) continue;
    part.native = { protocol: "anthropic-messages", wire: keptFields(source, [...modelled, ...beyond]) };
    return part;
  }
  return part;
}

function isKept(key: string, value: unknown): boolean {
  return key === "cache_control" ? isObject(value) : isGiven(value);
}

function keptFields(source: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(source).filter(([key, value]) => keys.includes(key) && isKept(key, value)));
}

/**
 * The wire object for an engine of this protocol, which replaces the one made from the `InferenceRequest`'s own fields;
 * undefined if there is none. `isWhole`: whether the engine supports the whole protocol.
 */
export function wireOf(native: Native | undefined, isWhole = false): Readonly<Record<string, unknown>> | undefined {
  if (native?.protocol !== "anthropic-messages" || (native.isForWhole && !isWhole)) return undefined;
  return native.wire;
}

/** The citations of a text. Only engines that speak Messages make them, and only Messages clients get them. */
export function citationsOf(citations: readonly Native[]): JsonObject[] {
  return citations.flatMap((citation) => {
    const wire = wireOf(citation);
    return wire ? [{ ...wire }] : [];
  });
}

export function asCitation(wire: JsonObject): Native {
  return { protocol: "anthropic-messages", wire };
}

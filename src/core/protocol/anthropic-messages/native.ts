/** Keeps the fields of a wire object for which an `InferenceRequest` has no fields, for engines that speak Messages. */
import type { Native } from "../../inference/request.ts";
import { isGiven, isObject, type JsonObject } from "../json.ts";

/**
 * Sets `native` to the wire object's `modelled` and `beyond` keys, if it has any of the latter, for which a request has
 * no fields. Nulls, which strict engines refuse, and a `cache_control` that is no object are left out.
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

/** The wire object that an engine of this protocol gets. `isWhole`: the engine supports the whole protocol. */
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

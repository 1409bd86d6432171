/** What a wire object says beyond the centre: kept for engines that speak Messages, key by key as it was written. */
import type { Native } from "../../inference/request.ts";
import { isObject } from "../json.ts";
import { given } from "../rules.ts";

/**
 * What the centre says of the object, and beside it the object with those of its keys that engines are to see, if any of
 * `beyond` is among them. A null is left out: it equals absent, and strict engines refuse it. `cache_control` is a mark on
 * a cache, and any other value of it none.
 */
export function withNative<Part extends { native?: Native }>(
  part: Part,
  wire: object,
  modelled: readonly string[],
  beyond: readonly string[],
): Part {
  const said = wire as Record<string, unknown>;
  for (const key of beyond) {
    if (!isSaid(key, said[key])) continue;
    part.native = { protocol: "anthropic-messages", wire: kept(said, [...modelled, ...beyond]) };
    return part;
  }
  return part;
}

function isSaid(key: string, value: unknown): boolean {
  return key === "cache_control" ? isObject(value) : given(value);
}

function kept(said: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(said).filter(([key, value]) => keys.includes(key) && isSaid(key, value)));
}

/** What an engine of this protocol gets in place of what the centre says; undefined where the centre says it all. */
export function wireOf(native: Native | undefined): Readonly<Record<string, unknown>> | undefined {
  return native?.protocol === "anthropic-messages" ? native.wire : undefined;
}

/** What a wire object says beyond the centre: kept for engines that speak Messages, key by key as it was written. */
import type { Native } from "../../inference/request.ts";
import { isObject } from "../json.ts";

/**
 * The object with those of its keys that engines are to see, if any of `beyond` is among them. A null is left out: it
 * equals absent, and strict engines refuse it. `cache_control` is a mark on a cache, and any other value of it none.
 */
export function native(wire: object, modelled: readonly string[], beyond: readonly string[]): Native | undefined {
  const kept: Record<string, unknown> = {};
  let more = false;
  for (const [key, value] of Object.entries(wire)) {
    if (value === null || value === undefined) continue;
    if (modelled.includes(key)) kept[key] = value;
    else if (beyond.includes(key) && (key !== "cache_control" || isObject(value))) {
      kept[key] = value;
      more = true;
    }
  }
  return more ? { protocol: "anthropic-messages", wire: kept } : undefined;
}

/** What an engine of this protocol gets in place of what the centre says; undefined where the centre says it all. */
export function wireOf(native: Native | undefined): Readonly<Record<string, unknown>> | undefined {
  return native?.protocol === "anthropic-messages" ? native.wire : undefined;
}

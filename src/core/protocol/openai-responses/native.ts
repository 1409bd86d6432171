/** Keeps the wire objects of callers of this protocol, for engines that speak it (inference/request.ts, Native). */
import type { Native } from "../../inference/request.ts";
import type { JsonObject } from "../json.ts";

export function native(wire: object): Native {
  return { protocol: "openai-responses", wire: wire as Readonly<JsonObject> };
}

/**
 * The wire object for an engine of this protocol, which replaces the one that the codec would make; undefined if there
 * is none.
 */
export function wireOf(native: Native | undefined): Readonly<JsonObject> | undefined {
  return native?.protocol === "openai-responses" ? native.wire : undefined;
}

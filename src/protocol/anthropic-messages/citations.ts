/** Citations of a text, which only engines that speak Messages make, and only its clients read. */
import type { Native } from "../../inference/request.ts";
import type { JsonObject } from "../json.ts";
import { wireOf } from "./native.ts";

export function citationsOf(citations: readonly Native[]): JsonObject[] {
  return citations.flatMap((citation) => {
    const wire = wireOf(citation);
    return wire ? [{ ...wire }] : [];
  });
}

export function asCitation(wire: JsonObject): Native {
  return { protocol: "anthropic-messages", wire };
}

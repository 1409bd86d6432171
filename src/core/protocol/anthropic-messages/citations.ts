/** Citations of a text. Only engines that speak Messages make them, and only Messages clients get them. */
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

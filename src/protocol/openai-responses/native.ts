/** What a caller of this protocol wrote, for engines that speak it (inference/request.ts, Native). */
import type { Native } from "../../inference/request.ts";
import type { JsonObject } from "../json.ts";

export function native(wire: object): Native {
  return { protocol: "openai-responses", wire: wire as Readonly<JsonObject> };
}

/** What an engine of this protocol gets in place of what the centre says; undefined where the centre says it all. */
export function wireOf(native: Native | undefined): Readonly<JsonObject> | undefined {
  return native?.protocol === "openai-responses" ? native.wire : undefined;
}

/** Writes a tool for an engine that speaks Messages. */
import type { Tool } from "../../inference/request.ts";
import type { JsonObject } from "../json.ts";
import { wireOf } from "./native.ts";

/** `keepsDeferred`: whether the engine knows tools that the model sees only once they were found. */
export function encodeTool(tool: Tool, keepsDeferred = false): Readonly<JsonObject> {
  const { name, description, parameters, strict, native, isDeferred } = tool;
  const schema = parameters ?? { properties: {} };
  const input_schema = schema.type === undefined ? { type: "object", ...schema } : schema;
  const wire = { ...(wireOf(native) ?? { name, description, strict: strict || undefined }), input_schema };
  return isDeferred && keepsDeferred ? { ...wire, defer_loading: true } : wire;
}

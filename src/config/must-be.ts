/** Describes the values that a setting allows. Pure. */
import type { Row } from "./settings/row.ts";

/** Completes a sentence that begins with a setting: `must be a whole number from 0 to 65535`. */
export function mustBe(shape: Row): string {
  if (shape.patternErrorMessage) return shape.patternErrorMessage;
  if (shape["x-must-be"]) return `must be ${shape["x-must-be"]}`;
  if (shape.enum) return `must be one of ${shape.enum.join(", ")}`;
  if (shape.anyOf) return mustBe(shape.anyOf[0]!);
  switch (shape.type) {
    case "object":
      if (shape.properties) return `must be a mapping of fields (${Object.keys(shape.properties).join(", ")})`;
      return "must be a mapping of names";
    case "array":
      return `must be a list of ${shape.minItems ?? 0} to ${shape.maxItems} items`;
    case "integer":
      return `must be a whole number from ${shape.minimum} to ${shape.maximum}`;
    case "number":
      return `must be a number from ${shape.minimum} to ${shape.maximum}`;
    case "boolean":
      return "must be true or false";
    default:
      if (shape.maxLength === undefined) return "must be text";
      return `must be text of ${shape.minLength ?? 0} to ${shape.maxLength} characters`;
  }
}

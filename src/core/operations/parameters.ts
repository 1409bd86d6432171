/**
 * The parameters that an operation declares for one place (path, query or headers): a typebox object whose properties
 * describe them. Beside JSON Schema a property may have `example`, `allowEmptyValue`, and `x-must-be`, which describes the
 * valid values. A parameter with a default may be left out.
 */
import type { Static, TObject } from "typebox";
import { Fault } from "../inference/fault.ts";
import { checkOf } from "../schema/check.ts";

interface Parameter {
  type?: string;
  default?: unknown;
  description?: string;
  example?: string;
  allowEmptyValue?: boolean;
  "x-must-be"?: string;
}

export function parametersOf(schema: TObject): [name: string, parameter: Parameter, isRequired: boolean][] {
  const required: readonly string[] = schema.required ?? [];
  return Object.entries(schema.properties as Record<string, Parameter>).map(([name, parameter]) => [
    name,
    parameter,
    required.includes(name) && !("default" in parameter),
  ]);
}

/**
 * Returns the values of the parameters by name, from the text that `textOf` finds for each. Throws the Fault of the
 * first that is missing or wrong.
 */
type Guard<Schema extends TObject> = (textOf: (name: string) => string | null) => Static<Schema>;

export function guard<Schema extends TObject>(schema: Schema): Guard<Schema> {
  const checked = parametersOf(schema).map(([name, parameter, isRequired]) => ({
    name,
    parameter,
    isRequired,
    check: checkOf(schema.properties[name]!),
  }));
  return (textOf) => {
    const values: Record<string, unknown> = {};
    for (const { name, parameter, isRequired, check } of checked) {
      const text = textOf(name);
      if (text !== null) {
        const value = typedAs(text, parameter.type);
        if (!check(value))
          throw wrongParameter(name, parameter["x-must-be"] ?? "the value that the contract describes");
        values[name] = value;
      } else if (isRequired) {
        throw new Fault("missing_field", `'${name}' is missing.`, { param: name });
      } else if ("default" in parameter) {
        values[name] = parameter.default;
      }
    }
    return values as Static<Schema>;
  };
}

export function wrongParameter(name: string, mustBe: string): Fault {
  return new Fault("invalid_value", `'${name}' must be ${mustBe}.`, { param: name });
}

function typedAs(text: string, type: string | undefined): unknown {
  if (type === "integer") return integerOf(text);
  if (type === "boolean") return booleans.get(text) ?? text;
  return text;
}

const booleans = new Map([
  ["true", true],
  ["false", false],
]);

/**
 * The integer in a text of digits: no sign but a minus, no leading zero, no exponent. Any other text stays text, which
 * the schema refuses.
 */
function integerOf(text: string): number | string {
  return /^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : text;
}

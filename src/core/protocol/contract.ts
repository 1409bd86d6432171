/**
 * Checks values against the schema of a wire shape. A valid value costs one call of a compiled function. Only an
 * invalid value is compared with its schema field by field, to find and explain its first offence in document order.
 */
import type { Static, TSchema } from "typebox";
import { checkOf } from "../schema/check.ts";
import { closestName } from "../schema/closest.ts";
import type { Shape } from "../schema/shape.ts";
import { type Fits, kindOf, type Offence, offences } from "../schema/walk.ts";
import { fieldElsewhere } from "./engine-fields.ts";
import {
  describe,
  featureNamed,
  items,
  joinedByOr,
  notSupported,
  oneOfWords,
  paramOf,
  type Violation,
} from "./violation.ts";

export interface Contract<Value> {
  /**
   * Whether the value fits the schema. `extra`: further top-level fields to accept. `unchecked`: for each list field,
   * the items to check. The list's other items were valid in an earlier value. Null: all items are checked.
   */
  satisfied(value: unknown, extra?: readonly string[], unchecked?: UncheckedItems | null): value is Value;
  /** The first offence of a value for which `satisfied` is false. */
  violation(value: unknown, extra?: readonly string[]): Violation;
}

/** The list items to check, by the name of the field that holds the list. */
export type UncheckedItems = Readonly<Record<string, readonly unknown[]>>;

const none: readonly string[] = [];

interface ContractOptions {
  /** `closed`: top-level fields that the schema does not name are refused. Absent: the schema decides. */
  topLevel?: "closed";
  /** The list fields for which `unchecked` may name the items that still have to be checked. */
  repeated?: readonly string[];
}

export function contract<Schema extends TSchema>(
  schema: Schema,
  options: ContractOptions = {},
): Contract<Static<Schema>> {
  // `dependentSchemas`, the rules between fields, is published with the schema, but checked after the shape (rules.ts).
  const { dependentSchemas, ...shape } = schema as Shape & { dependentSchemas?: unknown };
  const check = checkOf(shape as Schema);
  const checkAround = around(shape, options.repeated ?? []);
  const fits = compiledFits();
  const fieldNames = options.topLevel === "closed" ? new Set(Object.keys(shape.properties ?? {})) : null;
  return {
    satisfied: (value, extra = none, unchecked = null): value is Static<Schema> => {
      if (unchecked ? !checkAround(value, unchecked) : !check(value)) return false;
      if (fieldNames === null) return true;
      for (const key of Object.keys(value as object)) if (!fieldNames.has(key) && !extra.includes(key)) return false;
      return true;
    },
    violation: (value, extra = none) => {
      const [found] = offences(fieldNames === null ? shape : closedShape(shape, extra), value, 1, fits);
      if (!found) return { code: "invalid_value", param: "", message: "The request body does not match the contract." };
      return violationOf(found);
    },
  };
}

/**
 * Compiles two kinds of check: one of a value without the items of the listed fields, and one of a single item for each
 * field.
 */
function around(shape: Shape, fields: readonly string[]) {
  const properties = { ...shape.properties };
  const checks = fields.flatMap((name) => {
    const { open, items } = opened(properties[name]!);
    properties[name] = open;
    return items ? [{ name, check: checkOf(items as TSchema) }] : [];
  });
  const checkRest = checkOf({ ...shape, properties } as Shape as TSchema);
  return (value: unknown, unchecked: UncheckedItems): boolean =>
    checkRest(value) && checks.every(({ name, check }) => unchecked[name]?.every((item) => check(item)) ?? true);
}

/**
 * Splits the shape of a list, or of a union with a list, into the shape that takes any items, and the shape of an item.
 */
function opened(shape: Shape): { open: Shape; items: Shape | null } {
  if (shape.type === "array") return { open: { ...shape, items: {} }, items: shape.items ?? null };
  const branches = (shape.anyOf ?? []).map(opened);
  if (branches.length === 0) return { open: shape, items: null };
  return {
    open: { ...shape, anyOf: branches.map(({ open }) => open) },
    items: branches.find(({ items }) => items)?.items ?? null,
  };
}

/**
 * Compiles the check of each shape when it is first needed. In a list of thousands of items, the check finds the first
 * invalid item, and only that item is compared with its schema field by field.
 */
function compiledFits(): Fits {
  const checks = new Map<Shape, (value: unknown) => boolean>();
  return (shape, value) => {
    let check = checks.get(shape);
    if (!check) {
      check = checkOf(shape as TSchema);
      checks.set(shape, check);
    }
    return check(value);
  };
}

function closedShape(shape: Shape, extra: readonly string[]): Shape {
  const anything = Object.fromEntries(extra.map((key) => [key, {}]));
  return { ...shape, additionalProperties: false, properties: { ...anything, ...shape.properties } };
}

type Described = Shape & { "x-must-be"?: string };

function violationOf(offence: Offence): Violation {
  const param = paramOf(offence.path);
  const feature = offence.kind === "wrong" ? unsupportedFeature(offence) : undefined;
  if (feature) return notSupported(param, feature);
  const { code, words } = sentence(offence);
  const subject = param ? `'${param}'` : "The request body";
  return { code, param, message: `${subject} ${words}${words.endsWith("?") ? "" : "."}` };
}

function sentence({ kind, path, shape, value, first }: Offence): { code: Violation["code"]; words: string } {
  switch (kind) {
    case "wrong":
      return { code: "invalid_value", words: `must be ${expected(shape)}, but is ${describe(value)}` };
    case "missing":
      return { code: "missing_field", words: `is missing. It must be ${expected(shape)}` };
    case "misnamed":
      return { code: "invalid_value", words: `must have a name that is ${expected(shape.propertyNames ?? {})}` };
    case "repeated":
      return { code: "invalid_value", words: `must not repeat item ${first}` };
    case "unknown":
      return { code: "unknown_field", words: unknownWords(path, shape) };
  }
}

/** The error text for an unknown field. A field that another protocol has is not reported as a misspelling. */
function unknownWords(path: Offence["path"], shape: Shape): string {
  const name = String(path.at(-1));
  const elsewhere = path.length === 1 ? fieldElsewhere(name) : undefined;
  if (elsewhere) return elsewhere;
  const likely = closestName(name, Object.keys(shape.properties ?? {}));
  return `is not a known field. ${likely ? `Did you mean '${likely}'?` : "Remove it, or correct its name"}`;
}

function unsupportedFeature({ shape, value, unsupported }: Offence): string | undefined {
  if (!unsupported) return undefined;
  if (typeof value === "string" && Object.hasOwn(unsupported, value)) return featureNamed(unsupported[value]!, value);
  // The feature under "*" (any value) applies to values of the shape's type. If the shape allows only null, the feature
  // applies to every other value.
  const rightType = shape.type === "null" || kindOf(value) === (shape.type === "integer" ? "number" : shape.type);
  return rightType ? unsupported["*"] : undefined;
}

/** Describes the values that fit a shape: "a number from 0 to 2". */
function expected(shape: Described): string {
  if (shape["x-must-be"]) return shape["x-must-be"];
  if (shape.anyOf) return joinedByOr(shape.anyOf.filter((branch) => branch.type !== "null").map(expected));
  if ("const" in shape) return oneOfWords([shape.const]);
  if (shape.enum) return shape.enum.length > 1 ? `one of ${oneOfWords(shape.enum)}` : oneOfWords(shape.enum);
  switch (shape.type) {
    case "string":
      if (shape.minLength === 1 && shape.maxLength === undefined) return "a string that is not empty";
      return `a string${range(shape.minLength, shape.maxLength, " characters")}`;
    case "integer":
      return `an integer${range(shape.minimum, shape.maximum, "")}`;
    case "number":
      return `a number${range(shape.minimum, shape.maximum, "")}`;
    case "array":
      return `an array${range(shape.minItems, shape.maxItems, " items")}`;
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    case "object":
      return `an object${range(undefined, shape.maxProperties, " properties")}`;
    default:
      return "a value";
  }
}

function range(least: number | undefined, most: number | undefined, unit: string): string {
  const from = unit === "" ? " from " : " of ";
  if (least !== undefined && most !== undefined) return `${from}${least} to ${most}${unit}`;
  if (least !== undefined) return ` of at least ${unit === " items" ? items(least) : least + unit}`;
  return most !== undefined ? ` of at most ${most}${unit}` : "";
}

/**
 * A wire shape as a check. The happy path is one compiled function; only when that says no, the value is walked beside its
 * schema for the first offending field in document order, and that one is said well. The walk goes as deep as the schema,
 * never as deep as the value, so nesting inside free-form parts cannot exhaust the stack.
 *
 * A union is followed along the branch that the value means: by the kind of the value, and among objects by the property
 * that is a constant in all of them (`role`, `type`).
 */
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { items, joinedByOr, nearest, notSupported, oneOfWords, paramOf, shown, type Violation } from "./violation.ts";

export interface Contract<Value> {
  /** One compiled check: what nearly every request costs. `extra` are further top-level fields that are let through. */
  satisfied(value: unknown, extra?: readonly string[]): value is Value;
  /** The first thing that is wrong with a value that does not satisfy. */
  violation(value: unknown, extra?: readonly string[]): Violation;
}

const none: readonly string[] = [];

export interface ContractOptions {
  /** Refuses top-level fields that the schema does not name; else it is the schema that decides. */
  topLevel?: "closed";
  /** A top-level array without bounds: its items are checked compiled, and only the first bad one is walked. */
  longArray?: string;
}

export function contract<Schema extends TSchema>(
  schema: Schema,
  options: ContractOptions = {},
): Contract<Static<Schema>> {
  const check = Compile(schema);
  const shape = schema as Shape;
  const shortened = shortening(shape, options.longArray);
  const known = options.topLevel === "closed" ? new Set(Object.keys(shape.properties ?? {})) : null;
  return {
    satisfied: (value, extra = none): value is Static<Schema> => {
      if (!check.Check(value)) return false;
      if (known === null) return true;
      for (const key of Object.keys(value as object)) if (!known.has(key) && !extra.includes(key)) return false;
      return true;
    },
    violation: (value, extra = none) => {
      const { body, skipped } = shortened(value);
      const found = walk(known === null ? shape : closedShape(shape, extra), body);
      if (found?.path[0] === options.longArray && typeof found?.path[1] === "number") found.path[1] += skipped;
      return said(found ?? invalid("does not satisfy the contract"));
    },
  };
}

/** A body without the good items at the head of its long array, and how many those are. */
function shortening(shape: Shape, name: string | undefined) {
  const items = name === undefined ? undefined : shape.properties?.[name]?.items;
  if (name === undefined || items === undefined) return (body: unknown) => ({ body, skipped: 0 });
  const check = Compile(items as TSchema);
  return (body: unknown) => {
    const long = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
    if (!Array.isArray(long) || long.length === 0) return { body, skipped: 0 };
    const bad = long.findIndex((item) => !check.Check(item));
    // Where all are good, one stays, for the array not to be empty.
    const skipped = bad === -1 ? long.length - 1 : bad;
    return { body: { ...(body as object), [name]: long.slice(skipped, skipped + 1) }, skipped };
  };
}

function closedShape(shape: Shape, extra: readonly string[]): Shape {
  const anything = Object.fromEntries(extra.map((key) => [key, {}]));
  return { ...shape, additionalProperties: false, properties: { ...anything, ...shape.properties } };
}

/** The part of JSON Schema that the contracts use; a keyword that is not here has no words, and no contract uses it. */
export interface Shape {
  type?: "string" | "number" | "integer" | "boolean" | "null" | "object" | "array";
  const?: unknown;
  enum?: unknown[];
  anyOf?: Shape[];
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  items?: Shape;
  properties?: Record<string, Shape>;
  required?: string[];
  additionalProperties?: boolean | Shape;
  propertyNames?: Shape;
  "x-must-be"?: string;
  "x-unsupported"?: Unsupported;
}
type Unsupported = Record<string, string>;

interface Found {
  code: Violation["code"];
  path: (string | number)[];
  /** What stands after the quoted path, or before it for a feature. */
  words: string;
}

function said({ code, path, words }: Found): Violation {
  const param = paramOf(path);
  if (code === "unsupported_feature") return notSupported(param, words);
  const subject = param ? `'${param}'` : "The request body";
  return { code, param, message: `${subject} ${words}${words.endsWith("?") ? "" : "."}` };
}

const invalid = (words: string): Found => ({ code: "invalid_value", path: [], words });

function below(step: string | number, found: Found | null): Found | null {
  found?.path.unshift(step);
  return found;
}

/** `inherited` are the unsupported values that a union or an array around this shape names. */
function walk(shape: Shape, value: unknown, inherited?: Unsupported): Found | null {
  const unsupported = shape["x-unsupported"] ?? inherited;
  if (shape.anyOf) return walkUnion(shape.anyOf, value, unsupported);
  if (!isKind(shape, value)) return wrong(shape, value, unsupported);
  if (Array.isArray(value)) return walkArray(shape, value, unsupported);
  if (typeof value === "object" && value !== null)
    return walkBranches([shape], value as Record<string, unknown>, unsupported);
  return scalarFits(shape, value) ? null : wrong(shape, value, unsupported);
}

function wrong(shape: Shape, value: unknown, unsupported?: Unsupported): Found {
  const feature = unsupportedFeature(shape, value, unsupported);
  if (feature) return { code: "unsupported_feature", path: [], words: feature };
  return invalid(`must be ${wanted(shape)}, but is ${shown(value)}`);
}

function unsupportedFeature(shape: Shape, value: unknown, unsupported?: Unsupported): string | undefined {
  if (!unsupported) return undefined;
  if (typeof value === "string" && Object.hasOwn(unsupported, value)) return unsupported[value];
  // "*" on a null shape is a whole field that is not served; elsewhere it needs a value of the right type.
  const rightType = shape.type === "null" || kindOf(value) === (shape.type === "integer" ? "number" : shape.type);
  return rightType ? unsupported["*"] : undefined;
}

function walkUnion(branches: Shape[], value: unknown, unsupported?: Unsupported): Found | null {
  const flat = branches.flatMap((branch) => branch.anyOf ?? [branch]);
  const annotated = unsupported ?? branches.find((branch) => branch.anyOf)?.["x-unsupported"];
  const fitting = flat.filter((branch) => isKind(branch, value));
  if (fitting.length === 0) {
    const named = flat.filter((branch) => branch.type !== "null");
    if (named.length === 1) return walk(named[0]!, value, annotated);
    return invalid(`must be ${joinedByOr(named.map(wanted))}, but is ${shown(value)}`);
  }
  if (fitting.length === 1) return walk(fitting[0]!, value, annotated);
  return walkBranches(fitting, value as Record<string, unknown>, annotated);
}

/** One or several object shapes: the discriminator decides which is meant. */
function walkBranches(branches: Shape[], value: Record<string, unknown>, unsupported?: Unsupported): Found | null {
  const key = discriminator(branches);
  if (key === null) return walkObject(branches[0]!, value);
  const constants = branches.map((branch) => branch.properties![key]!.const);
  const meant = value[key];
  const branch = branches[constants.indexOf(meant)];
  if (branch) return walkObject(branch, value);
  const own = branches.length === 1 ? branches[0]!.properties![key]!["x-unsupported"] : undefined;
  const choice: Shape = { type: "string", enum: constants };
  if (meant === undefined) return below(key, missing(choice));
  return below(key, wrong(choice, meant, own ?? unsupported));
}

/** The required property that is a constant string in every branch of a union of objects; null where there is none. */
export function discriminator(branches: Shape[]): string | null {
  for (const key of Object.keys(branches[0]?.properties ?? {})) {
    const tells = (branch: Shape) =>
      typeof branch.properties?.[key]?.const === "string" && branch.required?.includes(key);
    if (branches.every(tells)) return key;
  }
  return null;
}

function missing(shape: Shape | undefined): Found {
  const form = shape ? `. It must be ${wanted(shape)}` : "";
  return { code: "missing_field", path: [], words: `is missing${form}` };
}

function walkObject(shape: Shape, value: Record<string, unknown>): Found | null {
  const properties = shape.properties ?? {};
  for (const key of Object.keys(value)) {
    const found = walkProperty(shape, properties, key, value[key]);
    if (found) return below(key, found);
  }
  for (const key of shape.required ?? []) {
    if (!Object.hasOwn(value, key)) return below(key, missing(properties[key]));
  }
  return null;
}

function walkProperty(shape: Shape, properties: Record<string, Shape>, key: string, value: unknown): Found | null {
  if (Object.hasOwn(properties, key)) return value === undefined ? null : walk(properties[key]!, value);
  if (shape.additionalProperties === false) return unknownField(key, Object.keys(properties));
  if (shape.propertyNames && !scalarFits(shape.propertyNames, key))
    return invalid(`must have a name that is ${wanted(shape.propertyNames)}`);
  return typeof shape.additionalProperties === "object" ? walk(shape.additionalProperties, value) : null;
}

function unknownField(name: string, known: readonly string[]): Found {
  const likely = nearest(name, known);
  const advice = likely ? `Did you mean '${likely}'?` : "Remove it, or correct its name";
  return { code: "unknown_field", path: [], words: `is not a known field. ${advice}` };
}

function walkArray(shape: Shape, value: unknown[], unsupported?: Unsupported): Found | null {
  if (value.length < (shape.minItems ?? 0) || value.length > (shape.maxItems ?? Number.POSITIVE_INFINITY))
    return invalid(`must be ${wanted(shape)}, but is ${shown(value)}`);
  if (!shape.items) return null;
  for (let index = 0; index < value.length; index++) {
    const found = walk(shape.items, value[index], unsupported);
    if (found) return below(index, found);
  }
  return null;
}

function kindOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function isKind(shape: Shape, value: unknown): boolean {
  if (shape.type === undefined) return true;
  if (shape.type === "integer") return Number.isInteger(value);
  return kindOf(value) === shape.type;
}

function scalarFits(shape: Shape, value: unknown): boolean {
  if ("const" in shape && value !== shape.const) return false;
  if (shape.enum && !shape.enum.includes(value)) return false;
  if (typeof value === "number") return value >= (shape.minimum ?? value) && value <= (shape.maximum ?? value);
  if (typeof value !== "string") return true;
  if (shape.pattern !== undefined && !new RegExp(shape.pattern, "u").test(value)) return false;
  // Code points, as JSON Schema counts; a string of megabytes is not spread to be counted.
  const length = value.length > 100_000 ? value.length : [...value].length;
  return length >= (shape.minLength ?? 0) && length <= (shape.maxLength ?? Number.POSITIVE_INFINITY);
}

/** What a shape asks for, in words: "a number from 0 to 2". */
function wanted(shape: Shape): string {
  if (shape["x-must-be"]) return shape["x-must-be"];
  if (shape.anyOf) return joinedByOr(shape.anyOf.filter((branch) => branch.type !== "null").map(wanted));
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
      return "an object";
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

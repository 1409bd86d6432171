/**
 * One row says everything about one setting: its type, bounds and default, and what it is for. The types of the
 * configuration, the checks, the defaults, sluice.schema.json and the tables of docs/configuration.md are derived from
 * it. Pure.
 *
 * A row is JSON Schema with a few annotations. Descriptions are Markdown: links are written as on
 * docs/configuration.md.
 */
import type { Shape } from "../../core/schema/shape.ts";

/** Whether a setting must be in the file, has a default if it is left out, or has no value if it is left out. */
type Presence = "required" | "defaulted" | "optional";

export interface Row<Value = unknown, Is extends Presence = Presence> extends Shape {
  description?: string;
  default?: unknown;
  /** Says what a value must be, in place of the words that are derived from its type and bounds. */
  patternErrorMessage?: string;
  /** The same as `patternErrorMessage`, but without "must be": for the schemas of the HTTP interfaces. */
  "x-must-be"?: string;
  /** Says what the names of a mapping must be. */
  "x-key"?: string;
  /**
   * Marks a secret: no message shows its value. If the setting is an environment variable, `NAME_FILE` can name a file
   * that contains the secret.
   */
  writeOnly?: boolean;
  isRequired?: true;
  /** Says what applies if a setting without a default is left out. */
  absent?: string;
  /** `start`: a new value of the section takes effect only at the next start. Absent: at a reload. */
  applies?: "start";
  /** The variable of the environment that overrides a setting of the file. */
  variable?: string;
  /** Another variable, without which this one has no effect. */
  needs?: string;
  /** The bounds of an amount of money, whose value is decimal text. */
  "x-amount"?: { minimum: number; maximum: number; decimals: number };
  /** Former settings of a group, each with what to use instead. */
  "x-gone"?: Record<string, string>;
  /**
   * Returns the problem of a variable's text, or of an item in it, that a schema cannot express; null if there is none.
   */
  problem?: (text: string) => string | null;
  /** These two fields carry only types, and are never set. */
  "~value"?: Value;
  "~presence"?: Is;
}

// biome-ignore lint/suspicious/noExplicitAny: a row of any value
export type Rows = Record<string, Row<any>>;

export interface Group<Fields extends Rows = Rows, Is extends Presence = Presence> extends Row<Written<Fields>, Is> {
  properties: Fields;
}

type ValueOf<One> = One extends Row<infer Value> ? Value : never;
type PresenceIn<One> = One extends Row<unknown, infer Is> ? Is : never;
type NamesOf<Fields, Is extends Presence> = {
  [Name in keyof Fields]: PresenceIn<Fields[Name]> extends Is ? Name : never;
}[keyof Fields];
type Flat<Type> = { [Name in keyof Type]: Type[Name] };

/** The type of a group's settings as a file has them. */
export type Written<Fields> = Flat<
  { [Name in NamesOf<Fields, "required">]: ValueOf<Fields[Name]> } & {
    [Name in NamesOf<Fields, "defaulted" | "optional">]?: ValueOf<Fields[Name]>;
  }
>;

/** The type of a group's settings with all defaults filled in. */
export type Filled<Fields> = Flat<
  { [Name in NamesOf<Fields, "required" | "defaulted">]: ValueOf<Fields[Name]> } & {
    [Name in NamesOf<Fields, "optional">]?: ValueOf<Fields[Name]>;
  }
>;

/** The written settings, with defaults for those that are missing. */
export function filled<Fields extends Rows>(rows: Fields, written: Partial<Written<Fields>> = {}): Filled<Fields> {
  const defaults = Object.entries(rows).flatMap(([name, row]) =>
    row.default === undefined ? [] : [[name, row.default]],
  );
  return { ...Object.fromEntries(defaults), ...written } as Filled<Fields>;
}

interface Options<Value> {
  default?: Value;
  isRequired?: true;
  absent?: string;
  variable?: string;
  writeOnly?: true;
  applies?: "start";
  needs?: string;
  problem?: (text: string) => string | null;
  "x-gone"?: Record<string, string>;
}
type PresenceOf<Given> = Given extends { default: unknown }
  ? "defaulted"
  : Given extends { isRequired: true }
    ? "required"
    : "optional";

interface Bounds extends Options<number> {
  minimum: number;
  maximum: number;
}

/** Makes the function that makes rows of this type. */
function rowsOf<Value, Given extends Options<Value>>(type: "integer" | "number" | "boolean" | "string") {
  return <const Own extends Given>(given: Own, description: string) =>
    ({ type, ...given, description }) as Row<Value, PresenceOf<Own>>;
}

export const whole = rowsOf<number, Bounds>("integer");
export const number = rowsOf<number, Bounds>("number");
export const flag = rowsOf<boolean, Options<boolean>>("boolean");
export const text = rowsOf<string, TextOptions>("string");

/** The row of an amount of money, a decimal number. It is read from the text of the file, never from a double. */
export function amount<const Given extends AmountOptions>(
  given: Given,
  description: string,
): Row<string, PresenceOf<Given>> {
  const { minimum, maximum, decimals, ...presence } = given;
  const least = minimum === 0 ? "0" : minimum.toFixed(decimals);
  const patternErrorMessage = `must be an amount from ${least} to ${maximum}, with ${decimals} decimals at most`;
  const bounds = { patternErrorMessage, "x-amount": { minimum, maximum, decimals } };
  const texts = { type: "string", pattern: "^[0-9]{1,7}([.][0-9]+)?$", ...bounds } as Row;
  const numbers = { type: "number", minimum, maximum, ...bounds } as Row;
  return { anyOf: [numbers, texts], ...bounds, ...presence, description } as Row<string, PresenceOf<Given>>;
}

interface AmountOptions {
  minimum: number;
  maximum: number;
  decimals: number;
  isRequired?: true;
  absent?: string;
}

export function choice<const Name extends string, const Given extends Options<NoInfer<Name>> = object>(
  names: readonly Name[],
  given: Given,
  description: string,
): Row<Name, PresenceOf<Given>> {
  return { type: "string", enum: [...names], ...given, description };
}

interface TextOptions extends Options<string> {
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  patternErrorMessage?: string;
}

interface ListOptions<Item> extends Options<Item[]> {
  minItems?: number;
  maxItems?: number;
  uniqueItems?: true;
}

export function list<Item, Given extends ListOptions<Item>>(
  items: Row<Item>,
  given: Given,
  description: string,
): Row<Item[], PresenceOf<Given>> {
  return { type: "array", items, ...given, description };
}

/** The row of a mapping with fixed names. Other names are refused. */
export function group<Fields extends Rows, const Given extends Options<never> = object>(
  properties: Fields,
  description: string,
  given?: Given,
): Group<Fields, PresenceOf<Given>> {
  const required = Object.keys(properties).filter((name) => properties[name]!.isRequired);
  const needed = required.length > 0 ? { required } : {};
  return { type: "object", ...needed, properties, additionalProperties: false, ...given, description };
}

interface MappingOptions<Value> extends Options<Record<string, Value>> {
  "x-key": string;
  maxProperties: number;
}

/** The row of a mapping whose names the operator chooses, within a pattern. */
export function mapping<Value, Given extends MappingOptions<Value>>(
  values: Row<Value>,
  names: string,
  given: Given,
  description: string,
): Row<Record<string, Value>, PresenceOf<Given>> {
  return { type: "object", patternProperties: { [names]: values }, additionalProperties: false, ...given, description };
}

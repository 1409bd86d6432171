/**
 * Walks a value along with its JSON Schema, and reports the offences with their paths, in document order. The walk goes
 * as deep as the schema, never as deep as the value, so nesting inside free-form parts cannot exhaust the stack.
 *
 * In a union, the walk follows the branch that the value most likely means: by the type of the value, and among objects
 * by the property that is a constant in each branch (`role`, `type`).
 */
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { discriminator, type Shape } from "./shape.ts";

export type Path = (string | number)[];

export interface Offence {
  /**
   * The defect of the value. `misnamed`: the property's name does not have the form that the object requires.
   * `repeated`: an earlier item is equal.
   */
  kind: "wrong" | "missing" | "unknown" | "misnamed" | "repeated";
  path: Path;
  /** The schema at the path. For an unknown or misnamed property, the schema of the object that has the property. */
  shape: Shape;
  value: unknown;
  /** The `x-unsupported` of the shape, or of the union or array around it. */
  unsupported?: Unsupported;
  /** The index of the first item that equals the repeated one. */
  first?: number;
}
type Unsupported = Shape["x-unsupported"];

/** Tests whether a value fits a shape, faster than a walk. */
export type Fits = (shape: Shape, value: unknown) => boolean;

/**
 * Returns the first offences, at most `most` of them. Members of the value that are undefined are skipped. With `fits`,
 * valid items at the beginning of a long array are not walked.
 */
export function offences(schema: Shape, value: unknown, most: number, fits?: Fits): Offence[] {
  const walk = new Walk(most, fits);
  walk.value(schema, value, undefined);
  return walk.found;
}

class Walk {
  readonly found: Offence[] = [];
  readonly #path: Path = [];
  readonly #most: number;
  readonly #fits: Fits | undefined;

  constructor(most: number, fits: Fits | undefined) {
    this.#most = most;
    this.#fits = fits;
  }

  value(shape: Shape, value: unknown, inherited: Unsupported): void {
    const unsupported = shape["x-unsupported"] ?? inherited;
    if (shape.anyOf) this.#union(shape, shape.anyOf, value, unsupported);
    else if (!isKind(shape, value)) this.#add("wrong", shape, value, { unsupported });
    else if (Array.isArray(value)) this.#array(shape, value, unsupported);
    else if (isObject(value)) this.#branches([shape], value, unsupported);
    else if (!Check(shape as TSchema, value)) this.#add("wrong", shape, value, { unsupported });
  }

  #add(kind: Offence["kind"], shape: Shape, value: unknown, more: Pick<Offence, "unsupported" | "first"> = {}): void {
    if (!this.#full) this.found.push({ kind, path: [...this.#path], shape, value, ...more });
  }

  get #full(): boolean {
    return this.found.length >= this.#most;
  }

  #below(step: string | number, walk: () => void): void {
    this.#path.push(step);
    walk();
    this.#path.pop();
  }

  #union(shape: Shape, branches: Shape[], value: unknown, unsupported: Unsupported): void {
    const flat = branches.flatMap((branch) => branch.anyOf ?? [branch]);
    const inherited = unsupported ?? branches.find((branch) => branch.anyOf)?.["x-unsupported"];
    const fitting = flat.filter((branch) => isKind(branch, value));
    const named = flat.filter((branch) => branch.type !== "null");
    const isPlain = fitting.length > 1 && !isObject(value) && !Array.isArray(value);
    if (isPlain && !Check(shape as TSchema, value)) this.#add("wrong", shape, value);
    else if (isPlain) return;
    else if (fitting.length > 1) this.#branches(fitting, value as Record<string, unknown>, inherited);
    else if (fitting.length === 1) this.value(fitting[0]!, value, inherited);
    else if (named.length === 1) this.value(named[0]!, value, inherited);
    else this.#add("wrong", { ...shape, anyOf: named }, value);
  }

  /** Walks an object by the one of several object shapes that its discriminator selects. */
  #branches(branches: Shape[], value: Record<string, unknown>, unsupported: Unsupported): void {
    const key = discriminator(branches);
    const branch =
      key === null ? branches[0] : branches.find(({ properties }) => properties![key]!.const === value[key]);
    if (branch) this.#object(branch, value);
    if (branch || key === null) return;
    const named = branches.map(({ properties }) => properties![key]!);
    const choice: Shape = { type: "string", enum: named.map((each) => each.const) };
    const own = named.length === 1 ? named[0]!["x-unsupported"] : undefined;
    const kind = value[key] === undefined ? "missing" : "wrong";
    this.#below(key, () => this.#add(kind, choice, value[key], { unsupported: own ?? unsupported }));
  }

  #object(shape: Shape, value: Record<string, unknown>): void {
    const names = Object.keys(value);
    const tooMany = names.length > (shape.maxProperties ?? names.length);
    const tooFew = names.length < (shape.minProperties ?? 0);
    if (tooMany || tooFew) this.#add("wrong", shape, value);
    const isOpen = takesAnything(shape);
    for (const name of tooMany ? [] : names) {
      if (isOpen && !Object.hasOwn(shape.properties ?? {}, name)) continue;
      this.#below(name, () => this.#property(shape, name, value[name]));
      if (this.#full) return;
    }
    for (const name of shape.required ?? []) {
      if (Object.hasOwn(value, name)) continue;
      this.#below(name, () => this.#add("missing", shape.properties?.[name] ?? {}, undefined));
    }
  }

  #property(shape: Shape, name: string, value: unknown): void {
    const { properties = {}, patternProperties = {}, propertyNames, additionalProperties } = shape;
    const pattern = Object.keys(patternProperties).find((each) => new RegExp(each, "u").test(name));
    const inner = Object.hasOwn(properties, name) ? properties[name] : pattern && patternProperties[pattern];
    if (propertyNames && !Object.hasOwn(properties, name) && !Check(propertyNames as TSchema, name)) {
      this.#add("misnamed", shape, value);
    } else if (inner) {
      if (value !== undefined) this.value(inner, value, undefined);
    } else if (additionalProperties === false) {
      this.#add(shape.patternProperties ? "misnamed" : "unknown", shape, value);
    } else if (typeof additionalProperties === "object") {
      this.value(additionalProperties, value, undefined);
    }
  }

  /** The number of valid items at the beginning of an array. */
  #goodItems({ items, uniqueItems }: Shape, value: unknown[]): number {
    const fits = this.#fits;
    if (!fits || !items || uniqueItems || value.length < longArray_items) return 0;
    const bad = value.findIndex((item) => !fits(items, item));
    return bad === -1 ? value.length : bad;
  }

  #array(shape: Shape, value: unknown[], unsupported: Unsupported): void {
    const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, items } = shape;
    const isOfSize = value.length >= minItems && value.length <= maxItems;
    if (!isOfSize) this.#add("wrong", shape, value, { unsupported });
    const seen = new Map<unknown, number>();
    for (let index = isOfSize ? this.#goodItems(shape, value) : value.length; index < value.length; index++) {
      if (this.#full) return;
      const item = value[index];
      const first = seen.get(item);
      if (first !== undefined) this.#below(index, () => this.#add("repeated", shape, item, { first }));
      else if (shape.uniqueItems && item !== undefined) seen.set(item, index);
      if (items && item !== undefined) this.#below(index, () => this.value(items, item, unsupported));
    }
  }
}

/**
 * Whether properties that the shape does not name may have any value. The walk then skips these properties, because
 * there may be very many.
 */
function takesAnything({ additionalProperties, patternProperties, propertyNames }: Shape): boolean {
  return (
    typeof (additionalProperties ?? true) === "boolean" &&
    additionalProperties !== false &&
    !patternProperties &&
    !propertyNames
  );
}

/** The length from which a compiled check of the items is worth its cost. */
const longArray_items = 32;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

export function kindOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function isKind(shape: Shape, value: unknown): boolean {
  if (shape.type === undefined) return true;
  if (shape.type === "integer") return Number.isInteger(value);
  return kindOf(value) === shape.type;
}

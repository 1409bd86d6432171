/**
 * YAML nodes → a value of a schema, with everything that is wrong said by field and place. Guided by the schema alone:
 * what it does not know is not entered, so aliases cannot blow up and the depth is the schema's.
 */
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";
import { didYouMean } from "./closest.ts";
import type { Place, Problems } from "./problem.ts";
import { substitute } from "./substitute.ts";
import type { YamlText } from "./yaml.ts";

/** What the reader looks at of a JSON Schema: the keywords that schema.ts uses. */
interface Shape {
  type?: string;
  properties?: Record<string, Shape>;
  patternProperties?: Record<string, Shape>;
  required?: string[];
  maxProperties?: number;
  "x-key"?: string;
  items?: Shape;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  patternErrorMessage?: string;
  writeOnly?: boolean;
}

/** How a field was written: where, and as what, before `${NAME}` was put in. Null text must not be shown. */
export interface Written {
  place: Place | null;
  text: string | null;
}

export interface ReadResult {
  value: unknown;
  /** By path, such as `models[3].id`. */
  written: ReadonlyMap<string, Written>;
}

export function readValue(
  yaml: YamlText,
  schema: TSchema,
  environment: Readonly<Record<string, string | undefined>>,
  problems: Problems,
): ReadResult {
  const reader = new Reader(yaml, environment, problems);
  return { value: reader.read(yaml.root, schema as Shape, "", null), written: reader.written };
}

class Reader {
  readonly written = new Map<string, Written>();
  readonly #yaml: YamlText;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #problems: Problems;

  constructor(yaml: YamlText, environment: Readonly<Record<string, string | undefined>>, problems: Problems) {
    this.#yaml = yaml;
    this.#environment = environment;
    this.#problems = problems;
  }

  /** `around` is the place to name where the node itself has none (a name without a value). */
  read(written: Node | null, shape: Shape, path: string, around: Place | null): unknown {
    const place = this.#yaml.placeOf(written) ?? around;
    const node = isAlias(written) ? this.#yaml.target(written) : written;
    this.written.set(path, { place, text: shape.writeOnly || !isScalar(node) ? null : sourceOf(node) });
    if (isAlias(written) && node === null) {
      this.#problems.add(
        path,
        "is an alias (*) of an anchor (&) that does not stand before it; a text needs quotes",
        place,
      );
      return undefined;
    }
    if (shape.type === "object") return this.#mapping(node, shape, path, place);
    if (shape.type === "array") return this.#list(node, shape, path, place);
    return this.#scalar(node, shape, path, place);
  }

  #mapping(node: Node | null, shape: Shape, path: string, place: Place | null): Record<string, unknown> | undefined {
    if (!isMap(node)) {
      this.#problems.add(path, `${mustBe(shape)}${insteadOf(node, false)}`, place);
      return undefined;
    }
    if (shape.maxProperties !== undefined && node.items.length > shape.maxProperties) {
      this.#problems.add(path, `must hold at most ${shape.maxProperties} names, not ${node.items.length}`, place);
      return undefined;
    }
    const entries: [string, unknown][] = [];
    for (const [name, pair, at] of this.#fields(node, path)) {
      const field = path ? `${path}.${name}` : name;
      const inner = this.#fieldShape(shape, name, field, at);
      if (inner) entries.push([name, this.read(pair.value as Node | null, inner, field, at)]);
    }
    for (const name of shape.required ?? []) {
      if (entries.every(([given]) => given !== name)) {
        this.#problems.add(
          path ? `${path}.${name}` : name,
          `is missing; it ${mustBe(shape.properties?.[name] ?? {})}`,
          place,
        );
      }
    }
    return Object.fromEntries(entries);
  }

  /** The names of a mapping, each once. */
  *#fields(node: YAMLMap, path: string): Generator<[string, Pair, Place | null]> {
    const seen = new Map<string, Place | null>();
    for (const pair of node.items) {
      const key = pair.key as Node | null;
      const at = this.#yaml.placeOf(key);
      const name = isScalar(key) ? sourceOf(key) : null;
      if (name === null || name === "") {
        this.#problems.add(path, "has a name that is no plain text; write name: value", at ?? this.#yaml.placeOf(node));
        continue;
      }
      if (seen.has(name)) {
        const first = seen.get(name);
        const field = path ? `${path}.${name}` : name;
        this.#problems.add(field, `stands here a second time${first ? `; first on line ${first.line}` : ""}`, at);
        continue;
      }
      seen.set(name, at);
      yield [name, pair, at];
    }
  }

  #fieldShape(shape: Shape, name: string, field: string, at: Place | null): Shape | null {
    if (shape.properties && Object.hasOwn(shape.properties, name)) return shape.properties[name]!;
    for (const [pattern, inner] of Object.entries(shape.patternProperties ?? {})) {
      if (new RegExp(pattern).test(name)) return inner;
    }
    if (shape.patternProperties) {
      this.#problems.add(shortened(field), shape["x-key"] ?? "is not a name that can stand here", at);
      return null;
    }
    const known = Object.keys(shape.properties ?? {});
    const hint = name === "<<" ? "; merge keys are not supported, write the fields out" : didYouMean(name, known);
    this.#problems.add(shortened(field), `is not a known field${hint || `; known are ${known.join(", ")}`}`, at);
    return null;
  }

  #list(node: Node | null, shape: Shape, path: string, place: Place | null): unknown[] | undefined {
    if (!isSeq(node)) {
      this.#problems.add(path, `${mustBe(shape)}${insteadOf(node, false)}`, place);
      return undefined;
    }
    const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = shape;
    if (node.items.length < minItems || node.items.length > maxItems) {
      this.#problems.add(
        path,
        `${mustBe(shape)}, not ${node.items.length === 0 ? "an empty one" : `of ${node.items.length}`}`,
        place,
      );
      return undefined;
    }
    const values = (node as YAMLSeq<Node | null>).items.map((item, index) =>
      this.read(item, shape.items ?? {}, `${path}[${index}]`, place),
    );
    if (shape.uniqueItems) this.#refuseTwins(values, path, place);
    return values;
  }

  #refuseTwins(values: unknown[], path: string, place: Place | null): void {
    values.forEach((value, index) => {
      if (value === undefined || values.indexOf(value) === index) return;
      const { place: at } = this.written.get(`${path}[${index}]`) ?? { place };
      this.#problems.add(`${path}[${index}]`, `repeats ${path}[${values.indexOf(value)}]`, at);
    });
  }

  #scalar(node: Node | null, shape: Shape, path: string, place: Place | null): unknown {
    let value: unknown = isScalar(node) ? node.value : node;
    if (typeof value === "string") {
      const { text, problems } = substitute(value, this.#environment);
      for (const problem of new Set(problems)) this.#problems.add(path, problem, place);
      if (problems.length > 0) return undefined;
      value = text;
    }
    if (Check(shape as TSchema, value)) return value;
    this.#problems.add(path, `${mustBe(shape)}${insteadOf(node, shape.writeOnly === true)}${hint(shape, node)}`, place);
    return undefined;
  }
}

function sourceOf(node: { source?: string | undefined; value: unknown }): string {
  return node.source ?? String(node.value ?? "");
}

/** What a schema asks for, completing "it …". */
function mustBe(shape: Shape): string {
  if (shape.patternErrorMessage) return shape.patternErrorMessage;
  if (shape.enum) return `must be one of ${shape.enum.join(", ")}`;
  switch (shape.type) {
    case "object":
      return shape.properties
        ? `must be a mapping of fields (${Object.keys(shape.properties).join(", ")})`
        : "must be a mapping of names";
    case "array": {
      const { minItems = 0, maxItems } = shape;
      const size = maxItems === undefined ? "" : ` of ${minItems} to ${maxItems} items`;
      return `must be a list${size}`;
    }
    case "integer":
      return `must be a whole number from ${shape.minimum} to ${shape.maximum}`;
    case "boolean":
      return "must be true or false";
    case "number":
      return `must be a number from ${shape.minimum} to ${shape.maximum}`;
    default:
      return shape.maxLength === undefined
        ? "must be text"
        : `must be text of ${shape.minLength ?? 0} to ${shape.maxLength} characters`;
  }
}

/** `, not …`: what stands there, as it was written, so that nothing from the environment shows. */
function insteadOf(node: Node | null, secret: boolean): string {
  if (isMap(node)) return ", not a mapping";
  if (isSeq(node)) return ", not a list";
  if (!isScalar(node) || node.value === null) return ", not empty";
  if (secret) return "";
  return `, not ${JSON.stringify(shortened(sourceOf(node)))}`;
}

function hint(shape: Shape, node: Node | null): string {
  if (!isScalar(node) || typeof node.value !== "string") {
    return shape.type === "string" && isScalar(node) && node.value !== null ? "; put it in quotes" : "";
  }
  if (shape.enum) return didYouMean(node.value, shape.enum);
  const numeric = shape.type === "integer" || shape.type === "number";
  if (numeric && /^[0-9]{1,3}([_, '][0-9]{3})+$/.test(node.value)) return "; write the digits alone";
  if (numeric && /^[0-9.]+$/.test(node.value)) return "; write it without quotes";
  return "";
}

function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** Parses the bytes of a file into plain values, and keeps the position and the original text of each. */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLError,
} from "yaml";
import type { Path } from "../core/schema/walk.ts";
import type { FilePosition, Problems } from "./problem.ts";
import { file_bytes_max, utf8Text } from "./source.ts";
import { type SubstituteSources, substitute } from "./substitute.ts";
import { syntaxMessage } from "./syntax.ts";

/** The deepest nesting that is accepted. sluice.yaml needs seven levels; many more would be an attack on the stack. */
const depth_max = 64;

/** The node at a path. An alias is resolved, but keeps its own position. */
interface Location {
  node: Node | null;
  place: FilePosition | null;
  /** The position of the value's name; null for an item of a list. */
  namePlace: FilePosition | null;
}

export interface YamlFile {
  /** Whether the file has no value: nothing at all, or only comments. */
  empty: boolean;
  /**
   * The value with `${NAME}` and `${file:…}` replaced. Undefined marks a hole: a value whose problem is already
   * reported.
   */
  value: unknown;
  /** The node at a path, or the nearest one around it. */
  locate(path: Path): Location;
}

export function readYaml(
  bytes: Uint8Array,
  sources: SubstituteSources,
  problems: Problems,
  bytes_max = file_bytes_max,
): YamlFile | null {
  const text = decoded(bytes, bytes_max);
  if (typeof text !== "string") {
    problems.add([], text.problem, null);
    return null;
  }
  const counter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    // Duplicate names are found below in linear time, with the positions of both.
    uniqueKeys: false,
    logLevel: "error",
  });
  const placeAt = (offset: number): FilePosition => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  // One mistake causes further errors, so only the first of each line is reported, and at most five lines.
  const firsts = new Map<number, [YAMLError, FilePosition]>();
  for (const error of document.errors.toSorted((one, other) => one.pos[0] - other.pos[0])) {
    const place = placeAt(error.pos[0]);
    if (!firsts.has(place.line)) firsts.set(place.line, [error, place]);
  }
  for (const [error, place] of [...firsts.values()].slice(0, 5)) problems.add([], syntaxMessage(error, text), place);
  if (problems.any) return null;
  const reader = new Reader(sources, problems, (node) => (node?.range ? placeAt(node.range[0]) : null));
  const value = reader.value(document.contents, []);
  return { empty: document.contents === null, value, locate: (path) => reader.locate(document.contents, path) };
}

function decoded(bytes: Uint8Array, bytes_max: number): string | { problem: string } {
  if (bytes.byteLength > bytes_max) {
    return { problem: `is larger than ${bytes_max / 1024 / 1024} MiB; is it the right file?` };
  }
  return utf8Text(bytes) ?? { problem: "is not UTF-8 text; save it as UTF-8" };
}

/**
 * Builds the value of a document, and reads each node once. An alias gets the value object of its anchor, so aliases of
 * aliases cost no more than their text.
 */
class Reader {
  readonly #sources: SubstituteSources;
  readonly #problems: Problems;
  readonly #placeOf: (node: Node | null) => FilePosition | null;
  /** For the name of each anchor, the latest node that has this anchor, and its value. */
  readonly #anchors = new Map<string, { node: Node; value: unknown }>();
  readonly #targets = new Map<Node, Node>();

  constructor(sources: SubstituteSources, problems: Problems, placeOf: (node: Node | null) => FilePosition | null) {
    this.#sources = sources;
    this.#problems = problems;
    this.#placeOf = placeOf;
  }

  value(node: Node | null, path: Path): unknown {
    if (isAlias(node)) return this.#alias(node, path);
    if (isScalar(node)) return this.#anchored(node, this.#scalar(node, path));
    if (!isMap(node) && !isSeq(node)) return null;
    if (path.length > depth_max) {
      this.#problems.add([], `is nested more than ${depth_max} levels deep`, this.#placeOf(node));
      return undefined;
    }
    if (isSeq<Node | null>(node)) {
      const items: unknown[] = this.#anchored(node, []);
      for (const [index, item] of node.items.entries()) items.push(this.value(item, [...path, index]));
      return items;
    }
    // An object without a prototype treats `__proto__` like any other name.
    const fields: Record<string, unknown> = this.#anchored(node, Object.create(null));
    const names = new Map<string, FilePosition | null>();
    for (const pair of node.items as Pair<Node, Node | null>[]) {
      const name = this.#name(pair, path, names);
      if (name !== null) fields[name] = this.value(pair.value, [...path, name]);
    }
    return fields;
  }

  #anchored<Value>(node: Node & { anchor?: string }, value: Value): Value {
    if (node.anchor) this.#anchors.set(node.anchor, { node, value });
    return value;
  }

  #alias(node: Node & { source: string }, path: Path): unknown {
    const target = this.#anchors.get(node.source);
    if (target) this.#targets.set(node, target.node);
    else {
      const message = "is an alias (*) without an earlier anchor (&); if it is text, put it in quotes";
      this.#problems.add(path, message, this.#placeOf(node));
    }
    return target?.value;
  }

  /** The name of a pair; null, after reporting it, if it is not text or occurs twice. */
  #name({ key }: Pair<Node>, path: Path, names: Map<string, FilePosition | null>): string | null {
    const name = nameOf(key);
    const place = this.#placeOf(key);
    const first = names.get(name ?? "");
    if (!name) this.#problems.add(path, "has a name that is not plain text; write name: value", place);
    else if (first !== undefined) {
      this.#problems.add([...path, name], `is a duplicate; first on line ${first?.line}`, place);
    } else {
      names.set(name, place);
      return name;
    }
    return null;
  }

  #scalar(node: { value: unknown } & Node, path: Path): unknown {
    if (typeof node.value !== "string") return node.value;
    const { text, problems } = substitute(node.value, this.#sources);
    for (const problem of new Set(problems)) this.#problems.add(path, problem, this.#placeOf(node));
    return problems.length > 0 ? undefined : text;
  }

  locate(root: Node | null, path: Path): Location {
    let found: Location = { node: this.#resolved(root), place: this.#placeOf(root), namePlace: null };
    for (const step of path) {
      const child = childOf(found.node, step);
      if (!child) break;
      const namePlace = this.#placeOf(child.name);
      const place = this.#placeOf(child.value) ?? namePlace ?? found.place;
      found = { node: this.#resolved(child.value), place, namePlace };
    }
    return found;
  }

  #resolved(node: Node | null): Node | null {
    return (node && this.#targets.get(node)) ?? node;
  }
}

function childOf(node: Node | null, step: Path[number]): { name: Node | null; value: Node | null } | null {
  if (isSeq<Node | null>(node)) {
    const value = node.items[Number(step)];
    return value === undefined ? null : { name: null, value };
  }
  const pair = isMap<Node, Node | null>(node) ? node.items.find(({ key }) => nameOf(key) === step) : undefined;
  return pair ? { name: pair.key, value: pair.value } : null;
}

/** The name as it is written, even if it is a number; null if it is not a scalar. */
function nameOf(key: Node): string | null {
  return isScalar(key) ? sourceOf(key) : null;
}

export function sourceOf(node: { source?: string | undefined; value: unknown }): string {
  return node.source ?? String(node.value ?? "");
}

/** Explains where a file does not fit the schema: what is wrong, and what to write instead. */
import { isMap, isScalar, isSeq, type Node } from "yaml";
import { closestName } from "../core/schema/closest.ts";
import type { Shape } from "../core/schema/shape.ts";
import { type Offence, offences } from "../core/schema/walk.ts";
import { mustBe } from "./must-be.ts";
import { fieldOf, type Problems, problems_kept_max, shortened } from "./problem.ts";
import type { Row } from "./settings/row.ts";
import { sourceOf, type YamlFile } from "./yaml.ts";

/** Adds a problem for each place where the file does not fit the schema, and returns these places. */
export function reportOffences(schema: Shape, yaml: YamlFile, problems: Problems): Offence[] {
  const found = offences(schema, yaml.value, problems_kept_max);
  for (const offence of found) {
    const { node, place, namePlace } = yaml.locate(offence.path);
    const isName = offence.kind === "unknown" || offence.kind === "misnamed";
    problems.add(offence.path, messageFor(offence, node), isName ? namePlace : place);
  }
  return found;
}

/**
 * The message, which completes a sentence that begins with the field. The value of `node` is shown as it is written,
 * before any `${NAME}` is replaced.
 */
function messageFor(offence: Offence, node: Node | null): string {
  const { kind, path, first } = offence;
  const shape: Row = offence.shape;
  const name = String(path.at(-1));
  switch (kind) {
    case "missing":
      return `is missing; it ${mustBe(shape)}`;
    case "repeated":
      return `repeats ${fieldOf([...path.slice(0, -1), first ?? 0])}`;
    case "misnamed":
      if (shape.properties) return unknownName(name, Object.keys(shape.properties));
      return shape["x-key"] ?? (shape.propertyNames ? mustBe(shape.propertyNames) : "is not a valid name here");
    case "unknown": {
      const names = Object.keys(shape.properties ?? {});
      const gone = shape["x-gone"]?.[name];
      if (gone) return `is no more; ${gone}`;
      if (name === "<<") return "is not a known field; merge keys are not supported, write the fields out";
      return unknownName(name, names);
    }
    case "wrong":
      if (isMap(node) && shape.type === "object") {
        return `must hold at most ${shape.maxProperties} names, not ${node.items.length}`;
      }
      return `${mustBe(shape)}${insteadOf(shape, node)}${hint(shape, node)}`;
  }
}

function unknownName(name: string, known: readonly string[]): string {
  return `is not a known field${didYouMean(name, known) || `; known are ${known.join(", ")}`}`;
}

/** A suggestion for a mistyped name: `; did you mean 'x'?`, or "" if no known name is near. */
export function didYouMean(written: string, known: readonly string[]): string {
  const name = closestName(written, known);
  return name === null ? "" : `; did you mean '${name}'?`;
}

/** The end of a message, with the wrong value as it is written: `, not "5"`. */
function insteadOf(shape: Row, node: Node | null): string {
  if (isMap(node)) return ", not a mapping";
  if (isSeq(node) && shape.type === "array") {
    return node.items.length === 0 ? ", not an empty one" : `, not of ${node.items.length}`;
  }
  if (isSeq(node)) return ", not a list";
  if (!isScalar(node) || node.value === null) return ", not empty";
  return shape.writeOnly ? "" : `, not ${JSON.stringify(shortened(sourceOf(node)))}`;
}

function hint(shape: Row, node: Node | null): string {
  if (!isScalar(node) || node.value === null) return "";
  const { value } = node;
  if (typeof value !== "string") return shape.type === "string" ? "; put it in quotes" : "";
  if (shape.enum) return didYouMean(value, shape.enum.map(String));
  const numeric = shape.type === "integer" || shape.type === "number" || shape["x-amount"] !== undefined;
  if (numeric && /^[0-9]{1,3}([_, '][0-9]{3})+$/.test(value)) return "; write only the digits";
  if (numeric && /^[0-9.]+$/.test(value)) return "; write it without quotes";
  return "";
}

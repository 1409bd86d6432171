/** Reads the text of an environment variable as a value of the type that the variable's row states. Pure. */
import type { Shape } from "../core/schema/shape.ts";
import { mustBe } from "./must-be.ts";
import { shortened } from "./problem.ts";
import type { Row } from "./settings/row.ts";

/**
 * Reads the text as a value of the row's type, or returns a `problem` that completes a sentence that begins with the
 * variable's name and never shows a secret.
 */
export function readText(row: Row, text: string): { value: unknown } | { problem: string } {
  if (row.type === "array") return readList(row.items ?? {}, text);
  const problem = row.problem?.(text);
  if (problem) return { problem };
  const value = valueIn(row, text);
  if (value !== undefined) return { value };
  return { problem: mustBe(row) + (row.writeOnly ? "" : `, not ${JSON.stringify(shortened(text))}`) };
}

/** The items of a list, separated by blanks or commas. */
function readList(items: Row, text: string): { value: unknown[] } | { problem: string } {
  const value: unknown[] = [];
  for (const item of text.split(/[\s,]+/).filter(Boolean)) {
    const read = readText(items, item);
    if ("problem" in read) return read;
    value.push(read.value);
  }
  return { value };
}

/** The value that the text stands for; undefined if the text does not fit the shape. */
function valueIn(shape: Shape, text: string): unknown {
  if (shape.anyOf) return shape.anyOf.map((branch) => valueIn(branch, text)).find((value) => value !== undefined);
  if (shape.enum) return shape.enum.find((value) => value === text);
  switch (shape.type) {
    case "boolean":
      return text === "true" ? true : text === "false" ? false : undefined;
    case "integer":
    case "number":
      return numberIn(shape, text);
    default:
      return isText(shape, text) ? text : undefined;
  }
}

function numberIn({ type, minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Shape, text: string): number | undefined {
  const digits = type === "integer" ? /^\d{1,16}$/ : /^\d{1,16}(\.\d{1,16})?$/;
  const value = digits.test(text) ? Number(text) : Number.NaN;
  return value >= minimum && value <= maximum ? value : undefined;
}

function isText({ minLength = 0, maxLength = Number.MAX_SAFE_INTEGER, pattern = "" }: Shape, text: string): boolean {
  return text.length >= minLength && text.length <= maxLength && new RegExp(pattern, "u").test(text);
}

/**
 * Reads amounts of money in sluice.yaml as exact decimal text, in place of the doubles that a YAML parser makes of
 * them.
 */
import { isScalar } from "yaml";
import { wholeOf } from "../admin/store/amounts.ts";
import type { Path } from "../core/schema/walk.ts";
import { mustBe } from "./must-be.ts";
import type { FoundProblems } from "./problem.ts";
import type { Row } from "./settings/row.ts";
import { sourceOf, type YamlFile } from "./yaml.ts";

/**
 * Replaces the value of every amount by its text. Yields the path of each amount that is out of bounds, and the reason.
 */
export function* amountsAsWritten(schema: Row, { value, locate }: YamlFile): FoundProblems {
  for (const { row, path, holder, name } of amountsIn(schema, value, [])) {
    const { node } = locate(path);
    const text = typeof holder[name] === "number" && isScalar(node) ? sourceOf(node) : String(holder[name]);
    if (isWithin(row["x-amount"]!, text)) holder[name] = text;
    else yield [path, `${mustBe(row)}, not ${JSON.stringify(text.slice(0, 40))}`];
  }
}

/** The value of a checked amount, times 10^decimals. */
export function checkedAmount(text: string, decimals: number): number {
  const value = wholeOf(text, decimals);
  if (value === null) throw new Error(`the amount '${text}' was not checked`);
  return value;
}

interface Written {
  row: Row;
  path: Path;
  holder: Record<string, unknown>;
  name: string;
}

/** The amounts in a value. Parts of the value that do not fit the schema are skipped. */
function* amountsIn(row: Row, value: unknown, path: Path): Generator<Written> {
  if (Array.isArray(value) && row.items) {
    for (const [index, item] of value.entries()) yield* amountsIn(row.items, item, [...path, index]);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return;
  const holder = value as Record<string, unknown>;
  const others: Row | undefined = Object.values(row.patternProperties ?? {})[0];
  for (const [name, item] of Object.entries(holder)) {
    const below: Row | undefined = row.properties?.[name] ?? others;
    if (!below) continue;
    const isAmount = below["x-amount"] && (typeof item === "number" || typeof item === "string");
    if (isAmount) yield { row: below, path: [...path, name], holder, name };
    else yield* amountsIn(below, item, [...path, name]);
  }
}

function isWithin({ minimum, maximum, decimals }: NonNullable<Row["x-amount"]>, text: string): boolean {
  const value = wholeOf(text, decimals);
  return value !== null && value >= minimum * 10 ** decimals && value <= maximum * 10 ** decimals;
}

/** An answer of the management interface as values of the program: names in camel case, instants as Dates. Pure. */
import type { Shape } from "../../schema/shape.ts";

/** By the answer's schema: what it leaves open stays as it is (`details` of the audit log). */
export function revived(schema: unknown, value: unknown): unknown {
  const shape = branchOf(schema as Shape & { format?: string }, value);
  if (typeof value === "string") return shape.format === "date-time" ? new Date(value) : value;
  if (Array.isArray(value)) return value.map((item) => revived(shape.items ?? {}, item));
  if (typeof value !== "object" || value === null || !shape.properties) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [camelCase(name), revived(shape.properties![name] ?? {}, inner)]),
  );
}

/** The verbs' arguments, in whose names only the case differs. */
export function argumentsOf(taken: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(taken).map(([name, value]) => [camelCase(name), value]));
}

/** But for units at the end: `firstPart_ms`. */
export function camelCase(name: string): string {
  return name.replace(/_(?!(?:ms|s)$)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function branchOf(shape: Shape & { format?: string }, value: unknown): Shape & { format?: string } {
  if (!shape.anyOf) return shape;
  return shape.anyOf.find(({ type }) => (type === "null") === (value === null)) ?? shape;
}

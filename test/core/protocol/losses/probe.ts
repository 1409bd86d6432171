/** The tables of docs/protocols.md, and the types of the probes (bodies with their expected outcome) of each row. */
import { expect } from "bun:test";
import { join } from "node:path";
import { Fault } from "../../../../src/core/inference/fault.ts";
import type { ClientName, EngineName } from "../pairs/wires.ts";

/** A column of a table: a kind of engine, or of client. */
export type Column = ClientName | EngineName;
/** `–`: the feature does not exist on that side. */
export type Verdict = "carried" | "refused" | "left out" | "–";

/**
 * A pattern of the feature's content on the other side if it is carried, or the path of its field if it is refused;
 * `but` has other values for some columns, or null if the feature does not exist there.
 */
export type Seen = [seen: RegExp | string, but?: Partial<Record<Column, RegExp | string | null>>];
/** Bodies that use the feature, each with the expected content or refused path. */
export type Probe = [body: object, ...Seen][];

const document = await Bun.file(join(import.meta.dir, "../../../../docs/protocols.md")).text();

/** The rows of the table under a heading: the key is a row's first cell, the value its other cells. */
export function table(heading: string): Map<string, string[]> {
  const section = document.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
  return new Map(
    rows.map((row) => row.split("|").map((cell) => cell.trim())).map(([, what, ...cells]) => [what!, cells]),
  );
}

/** The rows of a table of verdicts: the key is each name in a row's first cell, the value the row's verdict. */
export function verdictTable(heading: string): Map<string, string> {
  return new Map(
    [...table(heading)].flatMap(([what, [cell = ""]]) => what.split("; ").map((one) => [one, cell] as const)),
  );
}

/**
 * The verdict for each side (each kind of engine or of client), from a cell: first the verdict for most sides, then in
 * brackets the exceptions, by name.
 */
export function verdictsIn(cell: string, sides: readonly string[]): Verdict[] {
  const [, most = "", exceptions = ""] = /^([^(]*?)(?: \((.*)\))?$/.exec(cell) ?? [];
  const others = new Map(exceptions.split(", ").map((one) => one.toLowerCase().split(": ") as [string, string]));
  return sides.map((side) => (others.get(side) ?? most) as Verdict);
}

/**
 * The outcome for the feature: carried if the other side sees it, refused if its field's path is named, else left out.
 */
export function judge(act: () => unknown, [seen, but]: Seen, column: Column): Verdict {
  const expected = but?.[column] === undefined ? seen : but[column];
  if (expected === null) return "–";
  try {
    const told = JSON.stringify(act());
    return expected instanceof RegExp && expected.test(told) ? "carried" : "left out";
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.code !== "unsupported_feature") throw thrown;
    expect(thrown.details.param).toBe(expected as string);
    return "refused";
  }
}

// ---- what chat and Messages write alike --------------------------------------------------------------------------------

export const user = (...content: unknown[]) => ({ role: "user", content });
export const assistant = (...content: unknown[]) => ({ role: "assistant", content });
export const says = (...messages: unknown[]) => ({ messages });
export const text = (text: string, more: object = {}) => ({ type: "text", text, ...more });
export const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

// Reads TypeScript just well enough to check the rules of its structure: what a file imports (types included, which Bun's
// own scanner does not show), what its code touches, how long its functions are.

export interface Import {
  line: number;
  /** The target as written: a relative path, or a package. */
  target: string;
}

/** The key is a path from the root of the repository, with `/` between its parts; the value is what the file holds. */
export type Tree = ReadonlyMap<string, string>;

const declaration = /^(?:import|export)\b(?:[^"'`;]*?\bfrom\b)?\s*["']([^"'\n]+)["']/gm;
const expression = /\bimport\(\s*["']([^"'\n]+)["']/g;

export function importsOf(source: string): Import[] {
  const found = [...source.matchAll(declaration), ...source.matchAll(expression)];
  return found.map((match) => ({ line: lineAt(source, match.index), target: match[1]! }));
}

/** The file that a relative import means, from the root; null for a package. */
export function resolved(from: string, target: string): string | null {
  if (!target.startsWith(".")) return null;
  const parts = from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The package of an import: `elysia` of `elysia/adapter`, `@a/b` of `@a/b/c`. */
export function packageOf(target: string): string {
  return target
    .split("/")
    .slice(0, target.startsWith("@") ? 2 : 1)
    .join("/");
}

/** The file's code as Bun reads it: no comments, no types, and no text between quotes. */
export function codeOf(source: string): string {
  const code = new Bun.Transpiler({ loader: "ts", deadCodeElimination: false }).transformSync(source);
  return code.replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '""');
}

/** The comments above the first code of a file. */
export function headOf(source: string): string {
  return /^(?:\s*(?:\/\/[^\n]*\n|\/\*[\s\S]*?\*\/))*/.exec(source)?.[0] ?? "";
}

export interface Comment {
  line: number;
  /** The words of the comment without its marks, on one line. */
  text: string;
}

/**
 * Matches a block comment, or a run of comment lines. What looks like a comment inside a string is not matched, because
 * a quote comes before its mark.
 */
const comments = {
  ts: /(?<=^|[\s({,])\/\*\*?\s[\s\S]*?\*\/|^[ \t]*\/\/ .*(?:\n[ \t]*\/\/.*)*|(?<=\s)\/\/ .*/gm,
  sql: /\/\*[\s\S]*?\*\/|^[ \t]*--.*(?:\n[ \t]*--.*)*|(?<=\s)-- .*/gm,
};

/** The comments of a TypeScript or SQL file. */
export function commentsOf(path: string, source: string): Comment[] {
  return [...source.matchAll(path.endsWith(".sql") ? comments.sql : comments.ts)].map((match) => ({
    line: lineAt(source, match.index),
    text: match[0]
      .split("\n")
      .map((line) => line.replace(/^\s*(\/\*\*?|\/\/|--|\*(?!\/))?\s?/, "").replace(/\s*\*\/$/, ""))
      .join(" ")
      .trim(),
  }));
}

export interface Extent {
  name: string;
  path: string;
  lines: number;
}

/** Functions and methods with their length, of a TypeScript or SQL file. */
export function functionsOf(path: string, source: string): Extent[] {
  const found = path.endsWith(".sql") ? sqlFunctions(source) : typescriptFunctions(source);
  return found.map((one) => ({ ...one, path }));
}

type Length = Pick<Extent, "name" | "lines">;

const modifiers = "(?:(?:export|default|async|static|override|get|set|private|readonly) )*";
const heads = [
  String.raw`(?:async )?function\*? (\w+)`,
  String.raw`(?:const|let) (\w+)\b.* = (?:.*=> \{|(?:async )?(?:<.*>)?\()$`,
  String.raw`\*?(#?\w+)(?:<.*>)?\((?!.*=> \{$)(?:.*\{)?$`,
  String.raw`(\w+): (?:async )?\(.*=> \{$`,
];
const opening = new RegExp(`^(\\s*)${modifiers}(?:${heads.join("|")})`);
/**
 * Matches the line where a signature of several lines ends and the body begins. The end of a call is not matched, as it
 * goes on with a dot.
 */
const signatureEnd = /^\s*\)(?:: .*| =>)? ?\{$/;
const statements = new Set(["if", "for", "while", "switch", "catch", "return", "constructor", "test", "describe"]);

/**
 * Finds functions by indentation, which the formatter guarantees: a function ends where a brace closes at its own
 * level.
 */
function typescriptFunctions(source: string): Length[] {
  const lines = source.split("\n");
  return lines.flatMap((line, start) => {
    const [, indent, ...names] = opening.exec(line) ?? [];
    const name = names.find((one) => one !== undefined);
    if (indent === undefined || name === undefined || statements.has(name)) return [];
    const isAtLevel = (other: string, mark: string) => other.startsWith(indent + mark);
    const after = (from: number, mark: string) => lines.findIndex((other, at) => at > from && isAtLevel(other, mark));
    const body = line.endsWith("{") ? start : line.endsWith("(") ? after(start, ")") : -1;
    if (body < 0 || (body > start && !signatureEnd.test(lines[body]!))) return [];
    // The line begins a method whose argument is destructured, or a call with an object. The closing line tells which.
    if (/[([]\{$/.test(line) && !lines[after(start, "}")]?.endsWith("{")) return [];
    // A line that closes and opens at once belongs to the signature: a destructured argument, a type with fields.
    let end = after(body, "}");
    while (end >= 0 && lines[end]!.endsWith("{")) end = after(end, "}");
    return end < 0 ? [] : [{ name, lines: end - start + 1 }];
  });
}

/** Matches an SQL function, from `create` to the dollar sign that ends the body. */
const sqlFunction = /^create (?:or replace )?function ([\w.]+)[\s\S]*?\bas (\$\w*\$)[\s\S]*?\2/gim;

function sqlFunctions(source: string): Length[] {
  return [...source.matchAll(sqlFunction)].map(([whole, name = ""]) => ({ name, lines: whole.split("\n").length }));
}

export function lineAt(source: string, index: number): number {
  return source.slice(0, index).split("\n").length;
}

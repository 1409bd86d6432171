// Parses TypeScript just well enough to check structural rules: which files a file imports (including types, which
// Bun's scanner omits), which globals its code uses, and how long its functions are.

export interface Import {
  line: number;
  /** The imported path or package, as written in the source. */
  target: string;
}

/**
 * Source files: the key is the path from the root of the repository, with `/` as the separator; the value is the
 * content.
 */
export type Tree = ReadonlyMap<string, string>;

const declaration = /^(?:import|export)\b(?:[^"'`;]*?\bfrom\b)?\s*["']([^"'\n]+)["']/gm;
const expression = /\bimport\(\s*["']([^"'\n]+)["']/g;

export function importsOf(source: string): Import[] {
  const found = [...source.matchAll(declaration), ...source.matchAll(expression)];
  return found.map((match) => ({ line: lineAt(source, match.index), target: match[1]! }));
}

/** The path, from the root, of the file that a relative import refers to; null for a package. */
export function resolved(from: string, target: string): string | null {
  if (!target.startsWith(".")) return null;
  const parts = from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The name of an imported package: `elysia` for `elysia/adapter`, `@a/b` for `@a/b/c`. */
export function packageOf(target: string): string {
  return target
    .split("/")
    .slice(0, target.startsWith("@") ? 2 : 1)
    .join("/");
}

/** The code of the file without comments, types and the content of string literals. */
export function codeOf(source: string): string {
  const code = new Bun.Transpiler({ loader: "ts", deadCodeElimination: false }).transformSync(source);
  return code.replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '""');
}

/** The comments before the first line of code. */
export function headOf(source: string): string {
  return /^(?:\s*(?:\/\/[^\n]*\n|\/\*[\s\S]*?\*\/))*/.exec(source)?.[0] ?? "";
}

export interface Comment {
  line: number;
  /** The text of the comment on one line, without `//` or `*`. */
  text: string;
}

/**
 * Matches a block comment, or consecutive line comments. Text that looks like a comment within a string is not matched,
 * because a quote precedes it.
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

/** The functions and methods of a TypeScript or SQL file, with their lengths. */
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
 * Matches the line that ends a signature of several lines and starts the body. The end of a call is not matched,
 * because a dot follows it.
 */
const signatureEnd = /^\s*\)(?:: .*| =>)? ?\{$/;
const statements = new Set(["if", "for", "while", "switch", "catch", "return", "constructor", "test", "describe"]);

/**
 * Finds functions by their indentation, which the formatter guarantees: a function ends at the closing brace with the
 * indentation of its first line.
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
    // This line starts a method with a destructured argument, or a call with an object. The line with the closing brace
    // shows which.
    if (/[([]\{$/.test(line) && !lines[after(start, "}")]?.endsWith("{")) return [];
    // A line that has both a closing and an opening brace belongs to the signature: a destructured argument, or an
    // object type.
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

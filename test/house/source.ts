// Reading TypeScript just well enough to see its walls: what a file imports (types included, which Bun's own scanner
// does not show), what its code touches, how long its functions are.

export interface Import {
  line: number;
  /** As written: a relative path, or a package. */
  target: string;
}

/** Paths from the root of the repository, `/` between their parts, and what the files hold. */
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

/** `elysia` of `elysia/adapter`, `@a/b` of `@a/b/c`. */
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

/** What stands above the first code of a file. */
export function headOf(source: string): string {
  return /^(?:\s*(?:\/\/[^\n]*\n|\/\*[\s\S]*?\*\/))*/.exec(source)?.[0] ?? "";
}

export interface Extent {
  name: string;
  path: string;
  lines: number;
}

/** Functions and methods with their length; read by indentation, which the formatter guarantees. */
export function functionsOf(path: string, source: string): Extent[] {
  const lines = source.split("\n");
  const opening =
    /^(\s*)(?:(?:export |default |async |static |override |get |set |private |readonly )*)(?:function\*? (\w+)|(?:const|let) (\w+) =.*=>|(\w+)(?=\(.*\{$))/;
  const statements = new Set(["if", "for", "while", "switch", "catch", "return", "constructor", "test", "describe"]);
  return lines.flatMap((line, start) => {
    const match = opening.exec(line);
    const name = match?.[2] ?? match?.[3] ?? match?.[4];
    if (match === null || name === undefined || statements.has(name) || !line.endsWith("{")) return [];
    const end = lines.findIndex((other, at) => at > start && other.startsWith(`${match[1]}}`));
    return end < 0 ? [] : [{ name, path, lines: end - start + 1 }];
  });
}

function lineAt(source: string, index: number): number {
  return source.slice(0, index).split("\n").length;
}

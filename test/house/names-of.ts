// Finds the names that a piece of code uses without declaring them. The parser is only good enough for mutants'
// replacements of one or two lines.

export interface Names {
  /** The variables, functions and types that the code uses and does not declare. */
  free: string[];
  /** The names after a dot. */
  properties: string[];
}

const texts = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
const regularExpressions = /(?<=[(,=:!&|?]\s*)\/(?![/*])(?:[^/\\\n[]|\\.|\[(?:[^\]\\]|\\.)*\])+\/[a-z]*/g;
const words = /((?<!\.)\.\s*#?|#)?(?<![\w$])([A-Za-z_$][\w$]*)(\??\s*:(?!:))?/g;
const declarations =
  /\b(?:const|let|var|function|class)\s+(\w+)|(\w+)\s*=>|[{[(,]\s*(\w+)(?=[^()]*\)\s*(?::[^=]*)?=>)|\b(?:const|let)\s*[{[]([^=]*?)[}\]]\s*=/g;

export function namesOf(code: string): Names {
  const read = withoutTexts(code);
  const declared = new Set(
    [...read.matchAll(declarations)].flatMap((match) => match.slice(1).flatMap((some) => some?.match(/\w+/g) ?? [])),
  );
  const free = new Set<string>();
  const properties = new Set<string>();
  const keys = new Set<string>();
  for (const [, mark, name = "", colon] of read.matchAll(words)) {
    if (mark !== undefined) properties.add(name);
    // The key of an object or a type. In a conditional expression, it may also be the name before the colon, which is
    // then wrongly treated as a key; that is rare.
    else if (colon !== undefined) keys.add(name);
    else if (!declared.has(name) && !keywords.has(name)) free.add(name);
  }
  return { free: [...free], properties: [...properties].filter((name) => !keys.has(name)) };
}

/** The code without its string literals. Of a template literal, only the expressions remain. */
function withoutTexts(code: string): string {
  return code
    .replaceAll(
      /`(?:[^`\\]|\\.)*`/g,
      (template) => `(${[...template.matchAll(/\$\{([^}]*)\}/g)].map(([, hole]) => hole).join(", ")})`,
    )
    .replaceAll(texts, " ")
    .replaceAll(regularExpressions, " ");
}

const keywords = new Set(
  (
    "as async await boolean break case catch class const continue default delete do else export extends false finally for " +
    "from function get if implements import in instanceof interface is keyof let new null number never object of override " +
    "private protected public readonly return satisfies set static string super switch symbol this throw true try type " +
    "typeof undefined unknown using var void while yield any bigint"
  ).split(" "),
);

/** The names that exist in every program: global values, and the properties of standard objects. */
export const standard: { free: ReadonlySet<string>; properties: ReadonlySet<string> } = {
  free: new Set(["Record", "Readonly", "ReadonlyArray", "Partial", ...Object.getOwnPropertyNames(globalThis)]),
  properties: new Set(
    Object.getOwnPropertyNames(globalThis).flatMap((name) => {
      const value = (globalThis as Record<string, unknown>)[name];
      return [value, (value as { prototype?: unknown } | null | undefined)?.prototype].flatMap((one) =>
        typeof one === "function" || (typeof one === "object" && one !== null) ? Object.getOwnPropertyNames(one) : [],
      );
    }),
  ),
};

// The names that a piece of code uses without declaring them. The parser is just good enough for replacements of a line or
// two.

export interface Names {
  /** Variables, functions and types that the code does not declare. */
  free: string[];
  /** Names after a dot. */
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
    // The key of an object or a type. It may also be the middle of a conditional expression, before the colon, which is
    // seldom a name of its own.
    else if (colon !== undefined) keys.add(name);
    else if (!declared.has(name) && !keywords.has(name)) free.add(name);
  }
  return { free: [...free], properties: [...properties].filter((name) => !keys.has(name)) };
}

/** The code without its string literals; of a template literal, only the expressions in it. */
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

/** The names that every program has: global values, and the properties of the standard ones. */
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

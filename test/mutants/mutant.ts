// A mutant breaks a line of the product on purpose, and names the tests that must fail. `npm run mutants` tries each one
// in a copy of the tree. The files of this folder declare them (`declared`). Pure.

export interface Mutant {
  /** What goes wrong, as a short sentence. */
  name: string;
  file: string;
  /** Text that occurs in the file exactly once, and what replaces it. */
  find: string;
  replace: string;
  /** Test files, fastest first. `test/a.test.ts > words` runs only the tests whose names contain the words. */
  caughtBy: readonly string[];
  /** The rule that the mutant breaks: a page and its heading, as comments cite it. */
  rule: string;
  /** Why the mutant is not tried for now. */
  skip?: string;
}

/** The key is a module (`room`), in the order of the modules; the value is its mutants. */
export type Mutants = Readonly<Record<string, readonly Mutant[]>>;

export interface Named {
  room: string;
  mutant: Mutant;
}

export function named(mutants: Mutants): Named[] {
  return Object.entries(mutants).flatMap(([room, some]) => some.map((mutant) => ({ room, mutant })));
}

/**
 * The mutants that a file of test/mutants declares. A line's first character says what the rest of the line, after one
 * blank, is:
 *
 *     @ file that the following mutants break
 *     = rule that they break
 *     > test that catches them; several tests are several lines
 *     # name of a mutant
 *     - line of the text to find
 *     + line of the text in its place; none: nothing
 *     ! why the mutant is not tried for now
 *
 * A rule and tests count until the next ones; a file begins without them. Throws an Error that names the line that does
 * not fit.
 */
export function declared(text: string): Mutant[] {
  const mutants: { of: Omit<Mutant, "find" | "replace">; find: string[]; replace: string[] }[] = [];
  let [file, rule, tests, before] = ["", "", [] as string[], ""];
  for (const [at, line] of text.split("\n").entries()) {
    const [mark = "", rest] = [line[0], line.slice(2)];
    const last = mutants.at(-1);
    if (mark === "@") [file, rule, tests] = [rest, "", []];
    else if (mark === "=") rule = rest;
    else if (mark === ">") tests = before === ">" ? [...tests, rest] : [rest];
    else if (mark === "#") mutants.push({ of: { name: rest, file, rule, caughtBy: tests }, find: [], replace: [] });
    else if (mark === "-" && "#-".includes(before)) last!.find.push(rest);
    else if (mark === "+" && "-+".includes(before)) last!.replace.push(rest);
    else if (mark === "!" && "-+".includes(before)) last!.of.skip = rest;
    else if (mark !== "") throw new Error(`line ${at + 1} does not fit: ${line}`);
    if (mark !== "") before = mark;
  }
  return mutants.map(({ of, find, replace }) => ({ ...of, find: find.join("\n"), replace: replace.join("\n") }));
}

/** The file's text with the mutant's defect. Throws an Error that says why the mutant no longer fits the file. */
export function mutated(source: string, { file, find, replace }: Mutant): string {
  const places = source.split(find).length - 1;
  if (find === "" || places === 0) throw new Error(`${file} no longer contains the text to replace`);
  if (places > 1) throw new Error(`${file} contains the text to replace ${places} times`);
  const defective = source.replace(find, () => replace);
  if (!file.endsWith(".ts")) return defective;
  const transpiler = new Bun.Transpiler({ loader: "ts", deadCodeElimination: false });
  if (transpiler.transformSync(defective) === transpiler.transformSync(source))
    throw new Error(`${file} means the same with the replacement`);
  return defective;
}

/**
 * Draws `count` items, in the order of the list. Consecutive seeds draw different items in turn, so that each item is
 * drawn before long.
 */
export function sampled<T>(all: readonly T[], count: number, seed: number, nameOf: (one: T) => string): T[] {
  const shuffled = all.map((one) => ({ one, order: Bun.hash(nameOf(one)) as bigint }));
  shuffled.sort((a, b) => (a.order < b.order ? -1 : 1));
  const taken = new Set<T>();
  for (let place = seed * count; taken.size < Math.min(count, all.length); place++)
    taken.add(shuffled[place % all.length]!.one);
  return all.filter((one) => taken.has(one));
}

/**
 * The mutants whose module (`room`) is one of the words, or whose name contains one. Throws an Error for a word that
 * matches none.
 */
export function chosen(all: readonly Named[], words: readonly string[]): Named[] {
  const means = (word: string) => (one: Named) => one.room === word || one.mutant.name.includes(word);
  for (const word of words)
    if (!all.some(means(word))) throw new Error(`No mutant is named '${word}', and no room with mutants.`);
  return words.length === 0 ? [...all] : all.filter((one) => words.some((word) => means(word)(one)));
}

/** The mutants that break one of the files, or that a test in one of them must catch. */
export function ofFiles(all: readonly Named[], files: ReadonlySet<string>): Named[] {
  const isMeant = ({ file, caughtBy }: Mutant) => [file, ...caughtBy.map(fileOf)].some((one) => files.has(one));
  return all.filter(({ mutant }) => isMeant(mutant));
}

/** The file of a test that `caughtBy` names. */
export function fileOf(test: string): string {
  return test.split(" > ")[0]!;
}

/** The arguments of `bun test` that run the tests that one entry of `caughtBy` names. */
export function testWords(test: string): string[] {
  const [file = "", words] = test.split(" > ", 2);
  return words === undefined ? [`./${file}`] : [`./${file}`, `--test-name-pattern=${RegExp.escape(words)}`];
}

/**
 * Whether the output of `bun test` shows a failed test, or a failed hook after tests that ran. A failure before any
 * test, such as of a file or service that cannot start, proves nothing.
 */
export function notices(output: string): boolean {
  return /^\(fail\) (?!.*\(unnamed\))/m.test(output) || /^\(pass\) [\s\S]*^\(fail\) /m.test(output);
}

// Generates inputs that are almost valid: seeds from files, with pieces removed, inserted and repeated. Depending on
// the fuzzer, a file is one seed, or has one seed per line.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";

const folder = join(import.meta.dir, "seeds");

/** The contents of the files in seeds/NAME, in the order of the files' names. */
export function seedsOf(name: string): string[] {
  const files = readdirSync(join(folder, name)).sort();
  return files.map((file) => readFileSync(join(folder, name, file), "utf8"));
}

/** The lines of seeds/NAME.txt; a line that begins with # is a comment. */
export function linesOf(name: string): string[] {
  const lines = readFileSync(join(folder, `${name}.txt`), "utf8").split("\n");
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

/** A seed with up to six edits; `pieces` are texts that are risky for the parser under test. */
export function mutated(seeds: readonly string[], pieces: readonly string[]): fc.Arbitrary<string> {
  const edit = fc.record({
    at: fc.nat(),
    gone: fc.oneof(fc.constant(0), fc.nat(4), fc.nat(400)),
    put: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom("", ...pieces) },
      { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 4 }) },
    ),
    times: fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.nat(300) }),
  });
  return fc.tuple(fc.constantFrom(...seeds), fc.array(edit, { maxLength: 6 })).map(([seed, edits]) =>
    edits.reduce((text, { at, gone, put, times }) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + put.repeat(times) + text.slice(place + gone);
    }, seed),
  );
}

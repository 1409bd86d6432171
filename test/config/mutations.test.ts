// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tests need `${…}` in plain strings
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { parse, stringify } from "yaml";
import { loadConfiguration } from "../../src/config/load.ts";
import { ConfigurationError } from "../../src/config/problem.ts";
import { example } from "./reading.ts";

const secret = "hunter2-hunter2";
// Long enough for a busy machine.
setDefaultTimeout(60_000);

/**
 * Checks that any bytes give a configuration, or errors of one line each that name the file and, unless they concern
 * the whole file, the position in it.
 */
function sound(bytes: Uint8Array): void {
  const result = loadConfiguration({
    env: { MAIN_KEY: secret },
    readFile: (path) => (path === "./sluice.yaml" ? bytes : null),
  });
  if (!(result instanceof ConfigurationError)) {
    for (const model of result.catalog.models.values()) expect(model.routes.length).toBeGreaterThan(0);
    return;
  }
  expect(result.problems.length).toBeGreaterThan(0);
  expect(result.problems.length).toBeLessThanOrEqual(21);
  for (const problem of result.problems) {
    expect(problem).toMatch(/^\.\/sluice\.yaml(:[1-9]\d*:[1-9]\d*)?: (?!undefined)[^\p{Cc}]{5,}$/u);
    if (!/: (is empty;|is not UTF-8|is larger|and \d+ more)/.test(problem)) expect(problem).toMatch(/yaml:\d+:\d+: /);
    expect(problem).not.toContain(secret);
  }
}

const encoded = (text: string) => new TextEncoder().encode(text);

describe("any change of a valid file is a configuration or says where it is wrong", () => {
  test("characters cut out, put in or moved", () => {
    const piece = fc.oneof(
      fc.constantFrom(..."\t\n{}[]\"'#%~", ": ", "- ", "&a ", "*a", "!!", "---\n", "${"),
      fc.string({ unit: "grapheme-ascii", maxLength: 4 }),
      fc.constantFrom(
        "${MAIN_KEY}",
        ..."null,-1,1e999,.nan,<<: *a".split(","),
        "__proto__: ",
        "? ",
        "|\n",
        "\u2028",
        "\0",
      ),
    );
    const edit = fc.record({ at: fc.nat(example.length), remove: fc.nat(40), put: piece });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), (edits) => {
        let text = example;
        for (const { at, remove, put } of edits) text = text.slice(0, at) + put + text.slice(at + remove);
        sound(encoded(text));
      }),
      { numRuns: 60 },
    );
  });

  test("values replaced, at any depth", () => {
    const value = fc.oneof(
      fc.constantFrom<unknown>(null, "", 0, -1, 1.5, 1e300, true, [], {}, [[]]),
      fc.constantFrom("main", "simulator", "acme/writer-1", "tools"),
      fc.jsonValue({ maxDepth: 3 }),
    );
    const paths = [...places(parse(example))];
    const change = fc.record({ at: fc.constantFrom(...paths), value, name: fc.option(fc.string(), { freq: 6 }) });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        const file = parse(example);
        for (const { at, value, name } of changes) replace(file, at, value, name);
        sound(encoded(stringify(file)));
      }),
      { numRuns: 60 },
    );
  });

  test("any bytes at all", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => sound(bytes)),
      { numRuns: 200 },
    );
  });
});

type Path = (string | number)[];

function* places(value: unknown, path: Path = []): Generator<Path> {
  if (path.length > 0) yield path;
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* places(item, [...path, index]);
  else if (value && typeof value === "object") {
    for (const [name, item] of Object.entries(value)) yield* places(item, [...path, name]);
  }
}

/**
 * Sets the value at the path, under another name if one is given. Does nothing if an earlier mutation removed the
 * parent.
 */
function replace(file: Record<string | number, unknown>, path: Path, value: unknown, name: string | null): void {
  let at: unknown = file;
  for (const step of path.slice(0, -1)) at = (at as Record<string | number, unknown> | null)?.[step];
  if (at === null || typeof at !== "object") return;
  (at as Record<string | number, unknown>)[name !== null && !Array.isArray(at) ? name : path.at(-1)!] = value;
}

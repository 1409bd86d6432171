import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Check } from "typebox/value";
import { closestName } from "../../../src/core/schema/closest.ts";
import { discriminator, type Shape } from "../../../src/core/schema/shape.ts";
import { offences } from "../../../src/core/schema/walk.ts";
import { forAll } from "../protocol/for-all.ts";

const cat: Shape = {
  type: "object",
  properties: { kind: { const: "cat", type: "string" }, lives: { type: "integer", minimum: 1, maximum: 9 } },
  required: ["kind", "lives"],
  additionalProperties: false,
};
const dog: Shape = {
  type: "object",
  properties: { kind: { const: "dog", type: "string" }, tricks: { type: "array", items: { type: "string" } } },
  required: ["kind"],
  additionalProperties: false,
};
const schema: Shape = {
  type: "object",
  properties: {
    pets: { type: "array", items: { anyOf: [cat, dog, { type: "null" }] }, maxItems: 3 },
    tags: { type: "array", items: { type: "string" }, uniqueItems: true },
    owners: { type: "object", patternProperties: { "^[a-z]+$": { type: "string" } }, additionalProperties: false },
    ages: { type: "object", additionalProperties: { type: "integer" } },
  },
  required: ["pets"],
  additionalProperties: false,
};
const found = (value: unknown, most = 100) =>
  offences(schema, value, most).map(({ kind, path }) => `${kind} ${path.join(".")}`);

describe("what does not fit is found with its path, in document order", () => {
  test.each<[value: unknown, found: string[]]>([
    [{ pets: [{ kind: "cat", lives: 9 }, null] }, []],
    [7, ["wrong "]],
    [{}, ["missing pets"]],
    [{ pest: [], pets: [] }, ["unknown pest"]],
    [
      {
        pets: [
          { kind: "cat", lives: 10 },
          { kind: "dog", lives: 1 },
        ],
      },
      ["wrong pets.0.lives", "unknown pets.1.lives"],
    ],
    [{ pets: [{ lives: 1 }, { kind: "cow" }, "cat"] }, ["missing pets.0.kind", "wrong pets.1.kind", "wrong pets.2"]],
    [{ pets: [null, null, null, 7] }, ["wrong pets"]],
    [{ pets: [], tags: ["a", 7, "a"] }, ["wrong tags.1", "repeated tags.2"]],
    [{ pets: [], owners: { ada: "x", Bob: "y", eve: 7 } }, ["misnamed owners.Bob", "wrong owners.eve"]],
    [{ pets: [], ages: { ada: "x", bob: 7 } }, ["wrong ages.ada"]],
  ])("%j", (value, expected) => {
    expect(found(value)).toEqual(expected);
    expect(found(value, 1)).toEqual(expected.slice(0, 1));
  });

  test("something is found exactly where the schema says no", () => {
    const name = fc.constantFrom("pets", "tags", "owners", "ages", "kind", "lives", "tricks", "ada", "Bob");
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.constantFrom<unknown>(null, 0, 9, 9.5, "cat", "dog", "", true),
        fc.array(tie("any"), { maxLength: 4 }),
        fc.dictionary(name, tie("any"), { maxKeys: 3 }),
      ),
    })).any;
    forAll([value], 500, (each) => expect(found(each).length === 0).toBe(Check(schema as object, each)));
  });

  test("a list, also one without repetitions, is looked at whole, however long it is, and whether its head is quickly seen to fit", () => {
    const tags = Array.from({ length: 5_000 }, (_, at) => `tag-${at}`);
    const fits = (shape: Shape, value: unknown) => Check(shape as object, value);
    const paths = (value: unknown) =>
      offences(schema, value, 100, fits).map(({ kind, path }) => `${kind} ${path.join(".")}`);
    expect(paths({ pets: [], tags })).toEqual([]);
    expect(paths({ pets: [], tags: [...tags, "tag-7", 8] })).toEqual(["repeated tags.5000", "wrong tags.5001"]);
    const tricks = [...tags, "tag-7", 8];
    expect(paths({ pets: [{ kind: "dog", tricks }] })).toEqual(["wrong pets.0.tricks.5001"]);
  });

  test("a value that may also be null is refused by what else it may be", () => {
    const level: Shape = { type: "string", enum: ["low", "high"] };
    const [offence, ...others] = offences({ anyOf: [level, { type: "null" }] }, "middle", 10);
    expect([offence?.kind, offence?.shape, others]).toEqual(["wrong", level, []]);
  });

  test("a union is told apart by a property that tells in each of its branches", () => {
    const branch = (kind: string, version: Shape): Shape => ({
      type: "object",
      properties: { version, kind: { type: "string", const: kind } },
      required: ["version", "kind"],
    });
    const branches = [branch("cat", { type: "string", const: "1" }), branch("dog", { type: "string" })];
    expect(discriminator(branches)).toBe("kind");
    expect(offences({ anyOf: branches }, { version: "2", kind: "dog" }, 10)).toEqual([]);
  });

  test("nesting in the value does not nest the walk", () => {
    let deep: unknown = [];
    for (let level = 0; level < 100_000; level++) deep = [deep];
    expect(found({ pets: deep, deep })).toEqual(["wrong pets.0", "unknown deep"]);
  });
});

describe("the name that was meant", () => {
  const known = ["max_output_tokens", "temperature", "top_p", "tools"];
  test.each([
    ["maxOutputTokens", "max_output_tokens"],
    ["max-output-token", "max_output_tokens"],
    ["temprature", "temperature"],
    ["tempearture", "temperature"],
    ["tool", "tools"],
    ["tolos", "tools"],
  ])("%s is %s", (written, meant) => expect(closestName(written, known)).toBe(meant));

  test.each(["", "colour", "top_k_min", "t", "x".repeat(100_000)])("%s is none of them", (written) => {
    expect(closestName(written, known)).toBe(null);
  });
});

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Compile } from "typebox/schema";
import { satisfying } from "../../../src/features/simulator/schema.ts";
import { random } from "../../../src/features/simulator/text.ts";

type Schema = Record<string, unknown>;

/** Generates a value for a schema, and returns it with an independent validator's verdict. */
function verdict(schema: Schema, seed = 1): { value: unknown; fits: boolean } {
  const value = satisfying(schema, random(seed));
  return { value, fits: Compile(schema).Check(value) };
}

describe("a value satisfies the schema that it was made for", () => {
  // Keywords and edge cases that the property below does not cover.
  test.each<[string, Schema]>([
    ["nothing asked", {}],
    ["const", { const: { a: [1] } }],
    ["a nullable type", { type: ["null", "integer"] }],
    ["bounds", { type: "integer", minimum: -3, exclusiveMaximum: -1 }],
    ["exclusive bounds close together", { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.001 }],
    ["only a maximum", { type: "integer", maximum: -1000 }],
    ["a length of zero", { type: "string", maxLength: 0 }],
    ["a date", { type: "string", format: "date-time" }],
    ["a uuid", { type: "string", format: "uuid" }],
    ["a mail address", { type: "string", format: "email" }],
    ["a tuple", { type: "array", prefixItems: [{ type: "integer" }, { type: "null" }], items: false, minItems: 2 }],
    ["required without properties", { type: "object", required: ["a"], additionalProperties: { type: "integer" } }],
    ["allOf", { allOf: [{ required: ["a"], properties: { a: { type: "integer" } } }, { required: ["b"] }] }],
    ["anyOf beside properties", { properties: { a: { type: "integer" } }, anyOf: [{ required: ["a"] }] }],
    ["a reference with siblings", { $ref: "#/$defs/a~1b", description: "x", $defs: { "a/b": { type: "integer" } } }],
    ["names of Object's own", { type: "object", properties: JSON.parse('{"__proto__":{"type":"integer"}}') }],
  ])("%s", (_, schema) => {
    for (let seed = 0; seed < 20; seed++) expect(verdict(schema, seed)).toMatchObject({ fits: true });
  });

  test("each value of an enum comes up, over the seeds", () => {
    const values = ["a", 2, null];
    const made = Array.from({ length: 60 }, (_, seed) => verdict({ enum: values }, seed).value);
    expect(new Set(made)).toEqual(new Set(values));
  });

  const recursive: Schema = {
    $ref: "#/$defs/node",
    $defs: {
      node: {
        type: "object",
        properties: {
          name: { type: "string" },
          next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
          children: { type: "array", items: { $ref: "#/$defs/node" } },
        },
        required: ["name", "next", "children"],
        additionalProperties: false,
      },
    },
  };

  test("recursive schemas end, and fit", () => {
    for (let seed = 0; seed < 10; seed++) {
      const { value, fits } = verdict(recursive, seed);
      expect(fits).toBe(true);
      expect(JSON.stringify(value).length).toBeLessThan(20_000);
    }
  });

  const leaf = fc.oneof(
    fc.constant<Schema>({ type: "null" }),
    fc.constant<Schema>({ type: "boolean" }),
    fc.record({ type: fc.constant("integer"), minimum: fc.integer({ min: -50, max: 50 }) }),
    fc.tuple(fc.integer({ min: -50, max: 50 }), fc.nat(9)).map(([minimum, more]): Schema => {
      return { type: "number", minimum, maximum: minimum + more };
    }),
    fc.tuple(fc.nat(30), fc.nat(30)).map(([minLength, more]): Schema => {
      return { type: "string", minLength, maxLength: minLength + more };
    }),
    fc.record({ enum: fc.array(fc.jsonValue(), { minLength: 1, maxLength: 3 }) }),
  );
  const { any } = fc.letrec<{ any: Schema }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.tuple(fc.dictionary(fc.string({ maxLength: 5 }), tie("any"), { maxKeys: 4 }), fc.boolean()).map(
        ([properties, closed]): Schema => ({
          type: "object",
          properties,
          required: Object.keys(properties).filter((_, index) => index % 2 === 0),
          ...(closed ? { additionalProperties: false } : {}),
        }),
      ),
      fc.tuple(tie("any"), fc.nat(3), fc.nat(3)).map(([items, minItems, more]): Schema => {
        return { type: "array", items, minItems, maxItems: minItems + more };
      }),
      fc.record({ anyOf: fc.array(tie("any"), { minLength: 1, maxLength: 3 }) }),
    ),
  }));

  test("for any combination of keywords", () => {
    fc.assert(
      fc.property(any, fc.nat(), (schema, seed) => {
        expect(verdict(schema, seed)).toMatchObject({ fits: true });
      }),
      { numRuns: 300 },
    );
  });

  test("the same seed makes the same value", () => {
    expect(satisfying(recursive, random(7))).toEqual(satisfying(recursive, random(7)));
  });
});

describe("hostile schemas cost a bounded time", () => {
  const doubling: Schema = { $defs: {} };
  for (let level = 0; level < 40; level++) {
    const next = { $ref: `#/$defs/${level + 1}` };
    (doubling.$defs as Schema)[level] = { type: "object", required: ["a", "b"], properties: { a: next, b: next } };
  }
  test.each<[string, unknown]>([
    ["a reference to itself", { $ref: "#" }],
    ["a value that needs itself", { type: "object", required: ["a"], properties: { a: { $ref: "#" } } }],
    ["branches that need themselves", { anyOf: [{ $ref: "#" }, { allOf: [{ $ref: "#" }, { $ref: "#" }] }] }],
    ["doubling without end", { ...doubling, $ref: "#/$defs/0" }],
    ["a million items", { type: "array", minItems: 1e6, items: { type: "array", minItems: 1e6 } }],
    ["an endless string", { type: "string", minLength: 1e12 }],
    ["a reference to nowhere", { $ref: "#/$defs/%zz/nothing" }],
    ["nonsense", { type: 7, enum: [], required: "a", properties: [], minimum: "x", pattern: 4, items: 3 }],
    ["not a schema", ["a"]],
  ])("%s", (_, schema) => {
    const before = process.cpuUsage();
    JSON.stringify(satisfying(schema, random(1)));
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(2000);
  });

  test("anything at all makes some value and throws nothing", () => {
    const keyword = fc.constantFrom("type", "items", "properties", "anyOf", "allOf", "$ref", "minItems", "pattern");
    const schema = fc.oneof(fc.jsonValue({ maxDepth: 4 }), fc.dictionary(keyword, fc.jsonValue({ maxDepth: 3 })));
    fc.assert(fc.property(schema, (each) => expect(() => satisfying(each, random(3))).not.toThrow()));
  });
});

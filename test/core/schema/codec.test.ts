/**
 * One schema defines the writing and the reading of a value: the names of its members, the format of its instants,
 * which members may be missing, and that no other members are written.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import Type from "typebox";
import { nullable } from "../../../src/core/protocol/shapes/contract.ts";
import { camelName, decode, encode, jsonOf, snakeName } from "../../../src/core/schema/codec.ts";
import { forAll } from "../protocol/for-all.ts";

const instant = Type.Codec(Type.String({ format: "date-time" }))
  .Decode((text) => new Date(text))
  .Encode((at) => at.toISOString());
const Part = Type.Object({ first_part_ms: Type.Number(), ended_at: nullable(instant) });
const Thing = Type.Object({
  id: Type.String(),
  created_at: instant,
  parts: nullable(Type.Array(Part)),
  labels: Type.Record(Type.String(), Type.String()),
  details: Type.Unknown(),
});

const part = fc.record({
  firstPart_ms: fc.integer(),
  endedAt: fc.option(fc.date({ noInvalidDate: true })),
});
const thing = fc.record({
  id: fc.string(),
  createdAt: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(253_402_300_799_999) }),
  parts: fc.option(fc.array(part, { maxLength: 3 })),
  labels: fc.dictionary(fc.string(), fc.string()),
  details: fc.jsonValue(),
});

describe("a value", () => {
  test("survives the way through its JSON; names of a record and what is open stay as they are", () => {
    forAll([thing], 100, (value) => {
      expect(decode(Thing, JSON.parse(JSON.stringify(encode(Thing, value))))).toEqual({
        ...value,
        labels: JSON.parse(JSON.stringify(value.labels)),
        details: JSON.parse(JSON.stringify(value.details)),
      });
    });
  });

  test("is written in the order of its schema, and nothing else of it leaves", () => {
    const value = { details: {}, secret: "s", parts: null, labels: {}, createdAt: new Date(0), id: "a" };
    expect(JSON.stringify(encode(Thing, value))).toBe(
      '{"id":"a","created_at":"1970-01-01T00:00:00.000Z","parts":null,"labels":{},"details":{}}',
    );
  });

  test("that lacks a member is a defect, unless the member may be missing", () => {
    expect(() => encode(Part, { endedAt: null } as never)).toThrow("firstPart_ms");
    const Row = Type.Object({ team_id: Type.Optional(Type.String()), day: Type.Optional(Type.String()) });
    // If members may be missing, they are written in the value's order rather than the schema's.
    expect(JSON.stringify(encode(Row, { day: "d", teamId: "t" }))).toBe('{"day":"d","team_id":"t"}');
    expect(encode(Row, {})).toEqual({});
  });

  test("that somebody gives keeps its unknown members, so that they can be refused", () => {
    const given = { createdAt: "2030-01-01", labels: { aB: "1" }, Stray: 1, id: undefined };
    expect(jsonOf(Thing, given)).toEqual({ created_at: "2030-01-01", labels: { aB: "1" }, Stray: 1 });
    for (const odd of [null, 7, "text", [1]]) expect(jsonOf(Thing, odd)).toEqual(odd);
  });
});

test("a unit or a bound at the end of a name stays", () => {
  for (const [snake, camel] of [
    ["first_part_ms", "firstPart_ms"],
    ["duration_ms", "duration_ms"],
    ["requests_max", "requests_max"],
    ["key_lifetime_max_days", "keyLifetimeMaxDays"],
    ["id", "id"],
  ] as const) {
    expect([camelName(snake), snakeName(camel)]).toEqual([camel, snake]);
  }
});

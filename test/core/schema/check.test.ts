// A check of values against a schema costs nothing when a process starts: the schema is compiled once, when the first
// value is checked.

import { expect, test } from "bun:test";
import Type from "typebox";
import { checkOf } from "../../../src/core/schema/check.ts";

test("a schema is not looked at before the first value, and not compiled again for the next", () => {
  let looks = 0;
  const watched = new Proxy(Type.Object({ count: Type.Integer() }), {
    get(schema, key, receiver) {
      looks += 1;
      return Reflect.get(schema, key, receiver);
    },
  });
  const check = checkOf(watched);
  expect(looks).toBe(0);
  expect(check({ count: 1 })).toBe(true);
  const compiled = looks;
  expect(compiled).toBeGreaterThan(0);
  expect(check({ count: "1" })).toBe(false);
  expect(looks).toBe(compiled);
});

import { expect, test } from "bun:test";
import { compact } from "../../../src/core/protocol/json.ts";

test("only what is absent is left out: zero, false and nothing are values", () => {
  const fields = { number: 0, flag: false, text: "", list: [], missing: undefined, none: null };
  expect(compact(fields)).toStrictEqual({ number: 0, flag: false, text: "", list: [] });
  expect(Object.keys(fields)).toContain("missing");
});

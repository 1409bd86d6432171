/** "Try it" offers only keys of the organization that the page shows. */
import { expect, test } from "bun:test";
import { callingKeys } from "../../../console/core/calling-keys.ts";

const key = (id: string, organization: string, state = "active", scopes = ["inference:create"]) => ({
  ...{ id, organization, state, scopes },
});
const idsFor = (organization: string | null, ...keys: ReturnType<typeof key>[]) =>
  callingKeys(keys, organization).map(({ id }) => id);

test("the keys of the organization that was chosen before are not offered, nor charged", () => {
  const before = [key("a1", "a"), key("a2", "a")];
  expect(idsFor("b", ...before)).toEqual([]);
  expect(idsFor("a", ...before)).toEqual(["a1", "a2"]);
  expect(idsFor(null, ...before)).toEqual([]);
});

test("only active keys with the right to inference are offered", () => {
  const reader = key("reads", "a", "active", ["usage:read"]);
  expect(idsFor("a", key("gone", "a", "revoked"), reader, key("calls", "a"))).toEqual(["calls"]);
});

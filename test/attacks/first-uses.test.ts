/** A valid key is served at its first use, whoever sends made-up ones meanwhile (docs/design/keys.md, Keys that exist). */
import { expect, setDefaultTimeout, test } from "bun:test";
import { firstUses, served } from "./first-uses.ts";

setDefaultTimeout(120_000);
const keys = 20;

test("on a node that starts while forty addresses send made-up keys, each below its limit", async () => {
  const attackers = { addresses: 40, per_second: 4, honestAddress: "127.0.0.1" };
  const { attacked, answered } = await firstUses(attackers, keys, false);
  // The 503s show that the bounds of unknown keys were full all the while.
  expect(answered["503"]).toBeGreaterThan(0);
  expect(served(attacked)).toBe(keys);
});

test("from an address that has sent more made-up keys than it may", async () => {
  const attackers = { addresses: 1, per_second: 200, honestAddress: "127.9.0.1", failures_max: 20 };
  const { attacked, answered } = await firstUses(attackers, keys, false);
  expect(answered["429"]).toBeGreaterThan(0);
  expect(served(attacked)).toBe(keys);
});

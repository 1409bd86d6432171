/**
 * A valid key is accepted at its first use, even while others send made-up keys (docs/design/keys.md, Keys that exist).
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { firstUses, served } from "./first-uses.ts";

setDefaultTimeout(120_000);
const keys = 20;

test("on a node that starts while forty addresses send made-up keys, each below its limit", async () => {
  const attackers = { addresses: 40, per_second: 4, honestAddress: "127.0.0.1" };
  const { attacked, answered } = await firstUses(attackers, keys, false);
  // The 503s show that the limits on look-ups of unknown keys were exhausted during the whole test.
  expect(answered["503"]).toBeGreaterThan(0);
  expect(served(attacked)).toBe(keys);
});

test("from an address that has sent more made-up keys than it may", async () => {
  const attackers = { addresses: 1, per_second: 200, honestAddress: "127.9.0.1", failures_max: 20 };
  const { attacked, answered } = await firstUses(attackers, keys, false);
  expect(answered["429"]).toBeGreaterThan(0);
  expect(served(attacked)).toBe(keys);
});

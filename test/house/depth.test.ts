/**
 * Tests of the helpers for property tests: when a property's time is up, none of its cases runs on in the background.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { holds } from "../harness/depth.ts";

test("the case under way when the time is up has ended before the next test begins", async () => {
  let begun = 0;
  let ended = 0;
  const law = fc.asyncProperty(fc.nat(), async () => {
    begun += 1;
    await Bun.sleep(30);
    ended += 1;
  });
  await holds(law, 1_000, 100);
  expect(begun).toBeGreaterThan(0);
  expect(begun).toBeLessThan(100);
  expect(ended).toBe(begun);
});

test("a law that is broken is told", async () => {
  const law = fc.asyncProperty(fc.nat(), async (value) => value < 5);
  await expect(holds(law, 1_000)).rejects.toThrow("Counterexample");
});

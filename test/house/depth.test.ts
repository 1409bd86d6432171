/**
 * Tests of how tests try properties: a property that is tried until its time is up leaves nothing running behind it.
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

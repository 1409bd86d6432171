/** The runtime's garbage collector does what the node asks of it. Rule: docs/design/runtime.md, Memory. */
import { fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { runtimeCollector } from "../../../src/core/http/garbage.ts";
import { until } from "../../harness/until.ts";

const count = 1_000;
/**
 * The tolerance of the counts: a register may still seem to hold some objects, and the first use of a class creates
 * some by itself.
 */
const some = 100;
const made = () => Array.from({ length: count }, () => new Headers());
const there = () => heapStats().objectTypeCounts.Headers ?? 0;

/**
 * Leaves headers to which nothing refers any more, but which were still referred to during the collector's last two
 * runs, so that it counts them as old.
 */
function leaveOld(): void {
  const held = made();
  fullGC();
  fullGC();
  held.length = 0;
}

test("objects that were held for long are freed before the call returns", () => {
  fullGC();
  const before = there();
  leaveOld();
  expect(there() - before).toBeGreaterThan(count - some);
  runtimeCollector.collect();
  expect(there() - before).toBeLessThanOrEqual(some);
});

test("new objects are freed soon, without a call that waits for it", async () => {
  fullGC();
  const before = there();
  made();
  expect(there() - before).toBeGreaterThan(count - some);
  runtimeCollector.collectNew();
  await until(() => there() - before <= some, 5_000, "what is new to be freed");
});

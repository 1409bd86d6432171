/**
 * A refusal that cost the caller nothing is sent after a wait. The wait ends when the caller leaves, and another
 * refusal may then wait in its place.
 */
import { expect, test } from "bun:test";
import { slowness } from "../../../src/core/http/slowness.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";

const limits = (wait_ms: number) => ({ waiting_max: 1, shortest_ms: wait_ms, longest_ms: wait_ms });

test("a client that waits to the end is answered, and beyond the places no client waits", async () => {
  const slow = slowness(limits(20), () => 0);
  const first = slow.wait(new Cancellation());
  expect(await slow.wait(new Cancellation())).toBe(false);
  expect(await first).toBe(true);
  expect(await slow.wait(new Cancellation())).toBe(true);
});

test("a client that leaves waits no longer, and its place is free", async () => {
  const slow = slowness(limits(3_600_000), () => 0);
  const leaving = new Cancellation();
  const first = slow.wait(leaving);
  leaving.abort(new Error("the caller left"));
  expect(await first).toBe(false);
  const next = new Cancellation();
  const second = slow.wait(next);
  expect(Bun.peek.status(second)).toBe("pending");
  next.abort(new Error("the caller left"));
  expect(await second).toBe(false);
  expect(await slow.wait(next)).toBe(false);
});

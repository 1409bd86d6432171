// A deadline limits the other side, which is asked, and not this process: it does not fire because this process stood
// still.

import { expect, test } from "bun:test";
import { within } from "../../../src/core/time/cancellation.ts";

const after = (ms: number) => new Promise<string>((resolve) => setTimeout(resolve, ms, "answered"));
function standStill(ms: number): void {
  const end_ms = performance.now() + ms;
  while (performance.now() < end_ms);
}

test("what is late is given up, and said to be", async () => {
  const begun_ms = performance.now();
  await expect(within(after(60_000), 80, "Redis")).rejects.toThrow("Redis did not answer within 80 ms");
  expect(performance.now() - begun_ms).toBeGreaterThanOrEqual(75);
});

test("a process that stood still has most of the time left for what it had not sent yet", async () => {
  const sent = new Promise<void>((resolve) => setImmediate(resolve)).then(() => after(30));
  const answer = within(sent, 400, "Redis");
  standStill(600);
  expect(await answer).toBe("answered");
});

test("what answered in time keeps no process alive until its deadline", async () => {
  const program = `import { within } from "./src/core/time/cancellation.ts"; await within(Promise.resolve(), 3_600_000, "Redis");`;
  const child = Bun.spawn([process.execPath, "--eval", program], { stdout: "ignore", stderr: "pipe" });
  expect([await new Response(child.stderr).text(), await child.exited]).toEqual(["", 0]);
});

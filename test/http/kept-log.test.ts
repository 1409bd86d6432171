/** The writer of an answer's log, before a store that is slow. */
import { expect, test } from "bun:test";
import { LogWriter } from "../../src/api/kept/log-writer.ts";
import type { LogEntry } from "../../src/store/answer-log.ts";

const name = { requestId: "req_1", organizationId: "org_1" };
const text = "x".repeat(100_000);

test("an answer waits for a store that is slower than its engine, and nothing of it is lost", async () => {
  const stored: LogEntry[] = [];
  let isOpen = false;
  let letGo = () => {};
  const append = async (_: unknown, __: number, entry: LogEntry) => {
    if (!isOpen) await new Promise<void>((resolve) => (letGo = resolve));
    stored.push(entry);
    return "appended" as const;
  };
  const logs = { append, read: async () => [], remove: async () => {} };
  const lost: unknown[] = [];
  const writer = new LogWriter({ logs, name, bytes_max: 16 * 1024 * 1024, lost: (cause) => void lost.push(cause) });
  isOpen = true;
  await writer.open("head");
  isOpen = false;
  for (let time = 0; time < 10; time++) writer.write(text);
  let hasRoom = false;
  const room = writer.room().then(() => {
    hasRoom = true;
  });
  await Bun.sleep(20);
  expect(hasRoom).toBeFalse();
  isOpen = true;
  letGo();
  await room;
  await writer.end();
  expect(stored.map((entry) => entry.text).join("")).toBe(`head${text.repeat(10)}`);
  expect([stored.at(-1)!.isEnd, lost]).toEqual([true, []]);
});

test("an answer whose log is lost waits for nothing", async () => {
  const logs = { append: async () => "appended" as const, read: async () => [], remove: async () => {} };
  const writer = new LogWriter({ logs, name, bytes_max: 1_000_000, lost: () => {} });
  await writer.open("head");
  for (let time = 0; time < 20; time++) writer.write(text);
  await writer.room();
  expect(writer.isLost).toBeTrue();
});

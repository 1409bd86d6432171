// Answer logs (stored texts of answers): one contract for every store that keeps them.

import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { AnswerLogs, LogEntry, LogName } from "../../../src/features/responses/store/answer-log.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { type LogStore, logStores } from "./answer-logs.ts";
import { newHex, newRequestId } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

const part = (text: string): LogEntry => ({ text, isEnd: false });
const last: LogEntry = { text: "", isEnd: true };
const newLog = (): LogName => ({ requestId: newRequestId(), organizationId: `org_${newHex()}` });

const databases: readonly string[] = databaseKinds(import.meta.path);
const others = Object.entries(logStores).filter(([kind]) => kind !== "pglite" || databases.includes(kind));

for (const [kind, open] of others) {
  describe(`logs of answers on ${kind}`, () => {
    let store: LogStore;
    let logs: AnswerLogs;
    let log: LogName;
    beforeAll(async () => {
      store = await open();
      logs = store.logs;
    });
    afterAll(() => store.close());
    beforeEach(() => {
      log = newLog();
    });

    test("what was appended is read in order, from any position, by any node, whatever its text holds", async () => {
      const texts = ["data: 水 \n\n", 'data: {"a":"\\u0000"}\r\n\n', "", "x".repeat(100_000), "  "];
      for (const [number, text] of texts.entries()) expect(await logs.append(log, number, part(text))).toBe("appended");
      expect(await store.another.read(log, 0)).toEqual(texts.map(part));
      expect(await store.another.read(log, 3)).toEqual(texts.slice(3).map(part));
      expect(await logs.append(log, 5, last)).toBe("appended");
      expect(await store.another.read(log, 4)).toEqual([part("  "), last]);
    });

    test("a log that does not exist, or goes on later, has no entries yet", async () => {
      expect(await logs.read(log, 0)).toEqual([]);
      await logs.append(log, 0, part("a"));
      expect(await logs.read(log, 1)).toEqual([]);
    });

    test("a long log is read piece by piece", async () => {
      for (let number = 0; number < 150; number++) await logs.append(log, number, part(`${number}`));
      await logs.append(log, 150, last);
      const all: LogEntry[] = [];
      while (!all.at(-1)?.isEnd) {
        const some = await logs.read(log, all.length);
        if (some === "lost") throw new Error("lost");
        expect(some.length).toBeGreaterThan(0);
        all.push(...some);
      }
      expect(all.map(({ text }) => text)).toEqual([...Array.from({ length: 150 }, (_, number) => `${number}`), ""]);
    });

    test("an entry that is sent again is stored once", async () => {
      await logs.append(log, 0, part("a"));
      expect(await logs.append(log, 0, part("a"))).toBe("appended");
      await logs.append(log, 1, part("b"));
      expect(await logs.append(log, 0, part("a"))).toBe("appended");
      await logs.append(log, 2, last);
      expect(await logs.append(log, 2, last)).toBe("appended");
      expect(await logs.read(log, 0)).toEqual([part("a"), part("b"), last]);
    });

    test("nothing comes after the end, from any writer", async () => {
      await logs.append(log, 0, part("a"));
      expect(await store.another.append(log, 1, { text: "failed", isEnd: true })).toBe("appended");
      expect(await logs.append(log, 1, part("b"))).toBe("ended");
      expect(await logs.append(log, 2, part("c"))).toBe("ended");
      expect(await logs.read(log, 0)).toEqual([part("a"), { text: "failed", isEnd: true }]);
    });

    test("a log that was ended before it began takes nothing", async () => {
      await store.another.append(log, 0, last);
      expect(await logs.append(log, 0, part("a"))).toBe("ended");
    });

    test("of two nodes that end a log at once, one does", async () => {
      for (let round = 0; round < 5; round++) {
        const one = newLog();
        await logs.append(one, 0, part("a"));
        const ends = await Promise.all([
          logs.append(one, 1, { text: "by one", isEnd: true }),
          store.another.append(one, 1, { text: "by another", isEnd: true }),
        ]);
        expect(ends.sort()).toEqual(["appended", "ended"]);
      }
    });

    test("after a gap nothing is appended, and a reader learns of it", async () => {
      await logs.append(log, 0, part("a"));
      expect(await logs.append(log, 2, part("c"))).toBe("lost");
      await logs.remove([log]);
      expect(await logs.append(log, 1, part("b"))).toBe("lost");
      expect(await logs.read(log, 0)).toEqual([]);
    });

    test("removal takes the named logs alone", async () => {
      const [other, none] = [newLog(), newLog()];
      for (const one of [log, other]) await logs.append(one, 0, part("a"));
      await logs.remove([log, none]);
      expect(await logs.read(log, 0)).toEqual([]);
      expect(await logs.read(other, 0)).toEqual([part("a")]);
      await logs.remove([]);
    });
  });
}

/**
 * The components of a node with several workers: shares of limits, surplus connections, merged log lines, and questions
 * to all workers.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { coresOf } from "../../../src/config/machine.ts";
import { filled } from "../../../src/config/settings/row.ts";
import { sections } from "../../../src/config/settings/sections.ts";
import { limitsOfOne, tooSmall, workersIn } from "../../../src/config/workers.ts";
import { wholeLines } from "../../../src/features/workers/lines.ts";
import { questions } from "../../../src/features/workers/questions.ts";
import { surplusOf } from "../../../src/features/workers/surplus.ts";

const MiB = 1024 * 1024;

test("auto is as many as there are cores and memory for, one at least", () => {
  expect(workersIn("auto", { cores: 4, memory_bytes: 8192 * MiB })).toBe(4);
  expect(workersIn("auto", { cores: 16, memory_bytes: 1024 * MiB })).toBe(4);
  expect(workersIn("auto", { cores: 16, memory_bytes: 10 * MiB })).toBe(1);
  expect(workersIn("auto", { cores: 512, memory_bytes: 1e12 })).toBe(64);
  expect(workersIn(7, { cores: 1, memory_bytes: 10 * MiB })).toBe(7);
});

test("workers that would have too little memory each are told with the figures", () => {
  const said = (workers: number, memory: number) => tooSmall(workers, { cores: 4, memory_bytes: memory * MiB });
  expect(said(4, 600)).toBe(
    "each of 4 workers has 150 MiB of memory, and needs 256 MiB: set fewer (SLUICE_WORKERS), or give them more",
  );
  expect([said(4, 1024), said(1, 10)]).toEqual([null, null]);
});

test("what workers share is divided, and what is a process's own is not", () => {
  const node = { ...filled(sections.limits.properties), memory_bytes: 1000, in_flight_bytes_max: 101 };
  const one = limitsOfOne(node, 4);
  expect(one).toEqual({
    ...node,
    memory_bytes: 250,
    in_flight_bytes_max: 26,
    key_in_flight_bytes_max: 0,
    failed_authentications_per_minute: 75,
  });
});

test("the cores of a container are those that its groups pay for", () => {
  const files = (some: Record<string, string>) => (path: string) => some[path] ?? null;
  expect(coresOf(files({}), 8)).toBe(8);
  expect(coresOf(files({ "/sys/fs/cgroup/cpu.max": "max 100000\n" }), 8)).toBe(8);
  expect(coresOf(files({ "/sys/fs/cgroup/cpu.max": "250000 100000\n" }), 8)).toBe(2);
  expect(coresOf(files({ "/sys/fs/cgroup/cpu.max": "50000 100000\n" }), 8)).toBe(1);
  const nested = { "/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "300000 100000" };
  expect(coresOf(files(nested), 8)).toBe(3);
  const legacy = {
    "/proc/self/cgroup": "4:cpu,cpuacct:/a\n",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "400000\n",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
  };
  expect(coresOf(files(legacy), 8)).toBe(4);
  expect(coresOf(files({ "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n" }), 8)).toBe(8);
});

describe("surplus", () => {
  test("is nobody's who is near the mean, or has few", () => {
    for (const [open, mean] of [
      [0, 0],
      [7, 1],
      [35, 32],
      [10, 40],
    ] as const)
      expect(surplusOf(open, mean)).toBe(0);
  });

  test("brings any uneven split of 64 connections to 40:60 or better, wherever the kernel deals what was let go", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 64 }), fc.infiniteStream(fc.boolean()), (first, draws) => {
        let open = [first, 64 - first];
        for (let second = 0; second < 60; second++) {
          const gone = open.map((one) => surplusOf(one, 32));
          open = open.map((one, index) => one - gone[index]!);
          for (let moved = gone[0]! + gone[1]!; moved > 0; moved--) open[draws.next().value ? 0 : 1]! += 1;
          if (gone[0]! + gone[1]! === 0) break;
        }
        // A share above 60 % is allowed only if all random draws are equal: then every connection that is moved returns
        // to the crowded worker.
        const share = Math.max(...open) / 64;
        return share <= 0.6 || new Set(Array.from({ length: 8 }, () => draws.next().value)).size === 1;
      }),
      { numRuns: 500 },
    );
  });
});

test("lines of several writers come whole, however they are cut, and nothing is lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: fc.constantFrom("a", "\n", "ä", "b") })), async (chunks) => {
      const written: string[] = [];
      async function* cut() {
        for (const chunk of chunks) yield Buffer.from(chunk);
      }
      await wholeLines(cut(), (text) => void written.push(Buffer.from(text).toString()));
      expect(written.join("")).toBe(chunks.join(""));
      for (const text of written.slice(0, -1)) expect(text).toEndWith("\n");
    }),
  );
});

test("a question is answered by all, or without those that are gone or late", async () => {
  const asking = questions<string>(50);
  let number = -1;
  const note = (question: number) => {
    number = question;
  };
  const all = asking.ask([1, 2, 3], note);
  asking.told(1, number, "one");
  asking.told(1, number, "one again");
  asking.told(9, number, "nobody");
  asking.gone(2);
  asking.told(3, number, "three");
  expect([...(await all)]).toEqual([
    [1, "one"],
    [2, null],
    [3, "three"],
  ]);
  const late = asking.ask([1, 2], note);
  asking.told(2, number, "two");
  expect([...(await late)]).toEqual([
    [1, null],
    [2, "two"],
  ]);
  expect([...(await asking.ask([], note))]).toEqual([]);
});

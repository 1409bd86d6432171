import { expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { descriptorLimit, lowestFreeDescriptor, memoryLimitBytes, memoryMarkBytes } from "../../src/config/machine.ts";

const reading = (files: Record<string, string>) => (path: string) => files[path] ?? null;

test.each<[string, Record<string, string>, number | null]>([
  [
    "version 2, inside a container",
    { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "536870912\n" },
    536870912,
  ],
  [
    "version 2, the least of the group and the root",
    {
      "/proc/self/cgroup": "0::/system.slice/sluice.service\n",
      "/sys/fs/cgroup/memory.max": "max\n",
      "/sys/fs/cgroup/system.slice/sluice.service/memory.max": "1000000\n",
    },
    1000000,
  ],
  [
    "version 1",
    {
      "/proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "2000000\n",
    },
    2000000,
  ],
  ["no limit", { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" }, null],
  ["no Linux", {}, null],
])("the limit of a control group: %s", (_, files, bytes) => {
  expect(memoryLimitBytes(reading(files))).toBe(bytes);
});

test("the mark is 85 % of the container's limit, or half of the machine", () => {
  const container = reading({ "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1000000000\n" });
  expect(memoryMarkBytes(container, 8e9)).toBe(850_000_000);
  expect(memoryMarkBytes(reading({}), 8e9)).toBe(4e9);
  // A container's limit above the machine's memory has no effect.
  expect(memoryMarkBytes(container, 5e8)).toBe(2.5e8);
});

test("descriptors: the soft limit, and the lowest one that is free", () => {
  const text =
    "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 4096                 files\n";
  expect(descriptorLimit(reading({ "/proc/self/limits": text }))).toBe(1024);
  expect(descriptorLimit(reading({}))).toBeNull();
  const free = lowestFreeDescriptor();
  const taken = openSync("/dev/null", "r");
  expect(taken).toBe(free);
  expect(lowestFreeDescriptor()).toBeGreaterThan(free);
  closeSync(taken);
});

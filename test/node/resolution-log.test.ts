/** An operator reads of each change of an engine's addresses once, and of a problem when it begins, changes and ends. */
import { expect, test } from "bun:test";
import type { Log } from "../../src/core/http/log.ts";
import type { Problem, Resolution } from "../../src/core/routing/resolution.ts";
import type { Upstream } from "../../src/core/upstream/target.ts";
import { logResolved } from "../../src/node/resolution-log.ts";

function state(addresses: readonly string[], problem: Problem | null = null): Resolution {
  return { addresses, problem, emptySince_ms: addresses.length === 0 ? 0 : null };
}

/** The lines of one change: level, event and fields. */
function lines(before: Resolution, after: Resolution, cause?: unknown): [string, string, object][] {
  const written: [string, string, object][] = [];
  const log: Log = {
    request() {},
    event: (level, message, fields = {}) => void written.push([level, message, fields]),
    flush() {},
  };
  logResolved(log, { name: "engine" } as Upstream, { before, after, cause });
  return written;
}

test("a problem is a warning with its reason when it begins or changes, and nothing while it lasts", () => {
  const [[level, event, fields] = []] = lines(state(["a"]), state(["a"], "failed"), new Error("no answer"));
  expect([level, event]).toEqual(["warn", "upstream_unresolved"]);
  expect(fields).toMatchObject({ problem: "failed", addresses: 1, cause: "Error: no answer" });
  expect(lines(state(["a"], "failed"), state(["a"], "failed"))).toEqual([]);
  const changed = lines(state(["a"], "failed"), state(["a"], "own"));
  expect(changed.map(([, name, { problem }]: [string, string, { problem?: string }]) => [name, problem])).toEqual([
    ["upstream_unresolved", "own"],
  ]);
});

test("the last address of a name that is lost is a warning, though its problem is not new", () => {
  const lost = lines(state(["a"], "empty"), state([], "empty"));
  expect(lost.map(([level, name]) => [level, name])).toEqual([
    ["warn", "upstream_unresolved"],
    ["info", "upstream_resolved"],
  ]);
});

test("the end of a problem is told, though the addresses are those of before", () => {
  expect(lines(state(["a"], "failed"), state(["a"]))).toEqual([
    ["info", "upstream_resolved", { upstream: "engine", addresses: 1, added: [], lost: [] }],
  ]);
});

test("of many addresses, sixteen are named and the others are counted", () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => `10.0.0.${at}`);
  const added = (count: number) => lines(state([]), state(many(count))).map(([, , fields]) => fields);
  expect(added(16)).toEqual([{ upstream: "engine", addresses: 16, added: many(16), lost: [] }]);
  expect(added(18)).toEqual([{ upstream: "engine", addresses: 18, added: [...many(16), "and 2 more"], lost: [] }]);
});

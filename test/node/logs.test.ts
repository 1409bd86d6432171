/**
 * Log lines about dropped parts of requests and about engines' addresses: a part that is not sent to the engine is
 * logged once an hour for each route and kind of part; each change of addresses once; and a problem when it begins,
 * changes and ends.
 */
import { expect, test } from "bun:test";
import type { Log } from "../../src/core/http/log.ts";
import type { Loss } from "../../src/core/protocol/codec.ts";
import { defaultTimeouts, type Upstream } from "../../src/core/upstream/target.ts";
import type { LostField } from "../../src/core/usage/record.ts";
import type { Problem, Resolution } from "../../src/features/probing/resolution.ts";
import { lossLog } from "../../src/node/loss-log.ts";
import { logResolved } from "../../src/node/resolution-log.ts";
import { seldom } from "../../src/node/seldom.ts";

test("a loss is counted each time, and logged once an hour for each route and kind", () => {
  let now_ms = 0;
  const counted: string[] = [];
  const logged: unknown[] = [];
  const lost = lossLog(
    {
      metrics: { partLost: (upstream, loss) => void counted.push(`${upstream} ${loss}`) },
      log: { event: (level, event, fields) => void logged.push([level, event, fields?.model, fields?.loss]) },
    },
    () => now_ms,
  );
  const upstream = {
    name: "main",
    url: "http://a/v1",
    protocol: "openai-chat",
    apiKey: null,
    timeouts: defaultTimeouts,
  } as const;
  const says = (model: string, loss: Loss): void => {
    const one: LostField = { model: `acme/${model}`, route: { upstream, model, priority: 0, weight: 1 }, loss };
    lost(one);
  };
  says("one", "thoughts");
  says("one", "thoughts");
  says("one", "order");
  says("two", "thoughts");
  now_ms = 3_599_999;
  says("one", "thoughts");
  now_ms = 3_600_000;
  says("one", "thoughts");
  expect(counted).toHaveLength(6);
  expect(logged).toEqual([
    ["warn", "request_part_lost", "acme/one", "thoughts"],
    ["warn", "request_part_lost", "acme/one", "order"],
    ["warn", "request_part_lost", "acme/two", "thoughts"],
    ["warn", "request_part_lost", "acme/one", "thoughts"],
  ]);
});

function state(addresses: readonly string[], problem: Problem | null = null): Resolution {
  return { addresses, problem, emptySince_ms: addresses.length === 0 ? 0 : null };
}

/** The log lines of one change: level, event and fields. */
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

test("each thing once an interval, and things that are over make room for others", () => {
  let now_ms = 0;
  const isNew = seldom(1_000, { now_ms: () => now_ms });
  const heard = (prefix: string) =>
    Array.from({ length: 1_200 }, (_, at) => isNew(`${prefix}${at}`)).filter(Boolean).length;
  expect([isNew("a"), isNew("a"), isNew("b")]).toEqual([true, false, true]);
  // At most 1000 keys are remembered, so that names from outside cannot fill the memory.
  expect(heard("x")).toBe(998);
  now_ms = 999;
  expect([isNew("a"), isNew("c")]).toEqual([false, false]);
  now_ms = 1_000;
  expect([isNew("a"), isNew("c"), isNew("c")]).toEqual([true, true, false]);
  expect(heard("y")).toBe(998);
});

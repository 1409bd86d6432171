/**
 * The breaker of a route: when the route is no longer used, and when it is used again, as a table of events and the
 * resulting state.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Route } from "../../../src/core/routing/catalog.ts";
import {
  admits,
  type Breaker,
  begun,
  closed,
  type EndKind,
  ended,
  health,
  probation_ms_max,
  probation_ms_min,
} from "../../../src/core/routing/health.ts";

/** Events with their times. The end of an attempt also has the time at which the attempt began, if that was earlier. */
type Events = [at_ms: number, event: EndKind | "begun", begun_ms?: number][];

const after = (events: Events): Breaker =>
  events.reduce(
    (breaker, [at, event, begun_ms = at]) =>
      event === "begun" ? begun(breaker, at) : ended(breaker, { kind: event }, begun_ms, at),
    closed,
  );

const thrice: [number, EndKind][] = [
  [0, "failed"],
  [0, "broken"],
  [0, "unreachable"],
];

/** Attempts whose ends the letters give: `f` is a failure, `a` an answer. */
function mixed(letters: string): [number, EndKind][] {
  return [...letters].map((letter) => [0, letter === "f" ? "failed" : "answered"]);
}

const table: [string, Events, at_ms: number, admits: boolean][] = [
  ["well at first", [], 0, true],
  ["two failures", thrice.slice(0, 2), 0, true],
  ["three in a row", thrice, probation_ms_min - 1, false],
  ["three in a row, a probation later", thrice, probation_ms_min, true],
  ["two, an answer, and one more", [...thrice.slice(0, 2), [0, "answered"], [0, "failed"]], 0, true],
  ["a probe is under way: no second one", [...thrice, [1000, "begun"]], 1001, false],
  ["the probe was answered", [...thrice, [1000, "begun"], [1100, "answered"]], 1100, true],
  ["the probe was full: it is alive", [...thrice, [1000, "begun"], [1100, "busy"]], 1100, true],
  ["the probe failed: twice the time", [...thrice, [1000, "begun"], [1100, "failed"]], 3099, false],
  ["the probe failed, and that time is over", [...thrice, [1000, "begun"], [1100, "failed"]], 3100, true],
  ["the probe was left: the next request is one", [...thrice, [1000, "begun"], [1100, "abandoned"]], 1100, true],
  ["a request from before fails late", [...thrice, [500, "failed", -9]], 1000, true],
  ["a request from before ends well late", [...thrice, [500, "answered", -9]], 999, false],
  ["one from before fails while the probe runs", [...thrice, [1000, "begun"], [1001, "failed", -9]], 9999, false],
  ["callers that leave", Array.from({ length: 9 }, () => [0, "abandoned"] as [number, EndKind]), 0, true],
  ["requests at fault", Array.from({ length: 9 }, () => [0, "rejected"] as [number, EndKind]), 0, true],
  ["inputs too long", Array.from({ length: 9 }, () => [0, "too_long"] as [number, EndKind]), 0, true],
  ["full again and again", Array.from({ length: 9 }, () => [0, "busy"] as [number, EndKind]), 0, true],
  ["half of ten, never three in a row", mixed("fafafafafa"), 0, true],
  ["half of ten, and the last failed", mixed("affafaafaf"), 0, false],
  ["four of ten", mixed("afafaafaaf"), 0, true],
  ["half of the last twenty, after many answers", [...mixed("a".repeat(40)), ...mixed("faf".repeat(6))], 0, false],
  ["failures that are twenty attempts old", [...mixed("ffaffa"), ...mixed("a".repeat(20)), ...mixed("ff")], 0, true],
  [
    "three answers far later than its peers'",
    Array.from({ length: 3 }, () => [0, "slow"] as [number, EndKind]),
    0,
    false,
  ],
  ["wrong keys", Array.from({ length: 3 }, () => [0, "refused"] as [number, EndKind]), 0, false],
];

describe("a route is asked", () => {
  for (const [what, events, at_ms, admitted] of table) {
    test(`${what}: ${admitted}`, () => expect(admits(after(events), at_ms)).toBe(admitted));
  }

  test("a full engine is left alone as long as it says, and never longer than a minute", () => {
    const rested = (retryAfter_ms: number) => ended(closed, { kind: "busy", retryAfter_ms }, 0, 0);
    expect([admits(rested(2000), 1999), admits(rested(2000), 2000)]).toEqual([false, true]);
    expect([admits(rested(1e12), 59_999), admits(rested(1e12), 60_000)]).toEqual([false, true]);
    expect(rested(1e12).state).toBe("closed");
  });

  test("however long it was ill, it is asked again within the longest probation", () => {
    let breaker = after(thrice);
    for (let now_ms = 0; now_ms < 600_000; now_ms += 100) {
      if (admits(breaker, now_ms)) breaker = ended(begun(breaker, now_ms), { kind: "failed" }, now_ms, now_ms);
      expect(breaker.restUntil_ms - now_ms).toBeLessThanOrEqual(probation_ms_max);
    }
  });
});

const route = (name: string): Route =>
  ({ upstream: { name, url: "http://e/v1" }, model: "m", priority: 0, weight: 1 }) as unknown as Route;

test("routes that are all ill are all asked", () => {
  const known = health();
  const routes = [route("one"), route("two")];
  for (const one of routes) for (let count = 0; count < 3; count++) known.ended(one, { kind: "failed" }, 1, 1);
  expect(known.usable(routes, 2)).toEqual(routes);
  expect(known.usable([routes[0]!, route("sound")], 2).map(({ upstream }) => upstream.name)).toEqual(["sound"]);
});

test("a check that is answered again lets an open route's probe through at once, and one only", () => {
  const known = health();
  const [one, other] = [
    route("one"),
    { ...route("other"), upstream: { ...route("other").upstream, url: "http://f/v1" } },
  ];
  for (const each of [one, other])
    for (let count = 0; count < 3; count++) known.ended(each, { kind: "unreachable" }, 1, 1);
  const sound = { ...route("sound"), upstream: { ...route("sound").upstream, url: "http://g/v1" } };
  const usable = (now_ms: number) => known.usable([one, other, sound], now_ms).map(({ upstream }) => upstream.name);
  known.checked("http://e/v1", false, 10);
  known.checked("http://e/v1", true, 20);
  expect(usable(20)).toEqual(["one", "sound"]);
  known.begun(one, 20);
  expect([usable(20), known.stateOf(one, 20)]).toEqual([["sound"], "half-open"]);
  // The route's probe fails, so the route stays unused for twice as long as before, whatever a check says.
  known.ended(one, { kind: "failed" }, 20, 20);
  expect([usable(2_019), usable(2_020)]).toEqual([
    ["other", "sound"],
    ["one", "other", "sound"],
  ]);
});

test("far later than its peers is a failure; without peers that are known, nothing is late", () => {
  const [one, two, three] = [route("one"), route("two"), route("three")] as const;
  const routes = [one, two, three];
  const known = health();
  const shown = (which: Route, taken_ms: number, count = 1) => {
    for (let done = 0; done < count; done++) known.shown(which, routes, taken_ms, 1, 1);
    return known.stateOf(which, 1);
  };
  expect(shown(one, 60_000, 20)).toBe("closed");
  const fresh = health();
  Object.assign(known, fresh);
  shown(one, 500, 10);
  shown(two, 800, 10);
  expect(shown(three, 5_000, 10)).toBe("closed");
  expect(shown(two, 3_900, 20)).toBe("closed");
  const late = health();
  Object.assign(known, late);
  shown(one, 500, 10);
  shown(two, 800, 10);
  expect(shown(three, 5_300, 3)).toBe("open");
  // Peers that fail as well are no standard of comparison.
  for (const peer of [one, two]) for (let count = 0; count < 3; count++) known.ended(peer, { kind: "failed" }, 2, 2);
  expect(known.stateOf(one, 2)).toBe("open");
});

test("a route is not late because one of another priority is quicker", () => {
  const [own, hosted] = [route("own"), { ...route("hosted"), priority: 1 }] as const;
  const known = health();
  for (let count = 0; count < 10; count++) known.shown(hosted, [own, hosted], 400, 1, 1);
  for (let count = 0; count < 3; count++) known.shown(own, [own, hosted], 6_000, 1, 1);
  expect(known.stateOf(own, 1)).toBe("closed");
});

test("an engine whose check fails is not asked, unless there is no other", () => {
  const known = health();
  const routes = [route("one"), { ...route("two"), upstream: { name: "two", url: "http://f/v1" } } as Route];
  known.checked("http://f/v1", false, 1);
  expect([known.usable(routes, 1), known.stateOf(routes[1]!, 1)]).toEqual([[routes[0]!], "down"]);
  known.checked("http://e/v1", false, 1);
  expect(known.usable(routes, 1)).toEqual(routes);
  known.checked("http://f/v1", true, 1);
  expect(known.usable(routes, 1)).toEqual([routes[1]!]);
});

test("whatever happens, some route may be asked, and never do two requests meet one that is half-open", () => {
  const ill = route("ill");
  const routes = [ill, route("sound")];
  const kinds = fc.constantFrom<EndKind>("failed", "slow", "failed", "answered", "abandoned", "busy", "rejected");
  const step = fc.record({ advance_ms: fc.integer({ min: 1, max: 3000 }), kind: kinds, ends: fc.nat(5) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const known = health();
      const isAsked = (at_ms: number) => known.usable(routes, at_ms).includes(ill);
      let open: number[] = [];
      let opened_ms: number | null = null;
      let now_ms = 0;
      for (const { advance_ms, kind, ends } of steps) {
        now_ms += advance_ms;
        expect(known.usable(routes, now_ms).length).toBeGreaterThan(0);
        if (isAsked(now_ms)) {
          known.begun(ill, now_ms);
          open.push(now_ms);
        }
        if (opened_ms !== null) expect(open.filter((begun_ms) => begun_ms > opened_ms!).length).toBeLessThanOrEqual(1);
        const begun_ms = open[ends];
        if (begun_ms === undefined) continue;
        open = open.filter((one) => one !== begun_ms);
        known.ended(ill, { kind }, begun_ms, now_ms);
        const isCurrent = opened_ms === null || begun_ms > opened_ms;
        if (isCurrent && (kind === "failed" || kind === "slow") && !isAsked(now_ms)) opened_ms = now_ms;
        else if (isCurrent && !["failed", "slow", "abandoned"].includes(kind)) opened_ms = null;
      }
    }),
    { numRuns: 2_000 },
  );
});

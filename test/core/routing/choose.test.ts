/**
 * The choice of the first route: one of the best priority, by weight and by the requests in flight, whose context is
 * large enough for the request.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Route } from "../../../src/core/routing/catalog.ts";
import { type Burden, bound, choose, fitting, foremost } from "../../../src/core/routing/choose.ts";

const route = (model: string, priority: number, weight: number, contextTokens?: number): Route =>
  ({
    upstream: { name: model, url: `http://${model}/v1` },
    model,
    priority,
    weight,
    contextTokens,
  }) as unknown as Route;

const anyRoutes = fc
  .array(fc.record({ priority: fc.nat(3), weight: fc.nat(4) }), { minLength: 1, maxLength: 8 })
  .map((all) => all.map(({ priority, weight }, index) => route(`m${index}`, priority, weight)));
const idle = (): Burden => ({ tokens: 0, requests: 0, sessions: 0 });
const homeless = { isHome: () => false, tokens: 100 };
const draws =
  (...numbers: number[]) =>
  () =>
    numbers.shift() ?? 0;

test("the best priority that has weight goes first", () => {
  fc.assert(
    fc.property(anyRoutes, (routes) => {
      const open = routes.some(({ weight }) => weight > 0) ? routes.filter(({ weight }) => weight > 0) : routes;
      const best = Math.min(...open.map(({ priority }) => priority));
      expect(foremost(routes)).toEqual(open.filter(({ priority }) => priority === best));
    }),
  );
});

test("without a session weight decides, among routes that are idle", () => {
  const routes = [route("a", 0, 1), route("b", 0, 3), route("d", 0, 4)];
  const counts: Record<string, number> = {};
  for (let step = 0; step < 800; step++) {
    const { model } = choose(routes, { ...homeless, key: null }, idle, draws(step / 800, 0))!;
    counts[model] = (counts[model] ?? 0) + 1;
  }
  expect(counts).toEqual({ a: 100, b: 300, d: 400 });
});

test("of two drawn the one with less to do, for its weight", () => {
  const routes = [route("a", 0, 1), route("b", 0, 2)];
  const chosen = (a: number, b: number) =>
    choose(
      routes,
      { ...homeless, key: null },
      ({ model }) => ({ tokens: model === "a" ? a : b, requests: 1, sessions: 0 }),
      draws(0),
    )?.model;
  expect([chosen(100, 150), chosen(100, 250)]).toEqual(["b", "a"]);
});

test("of none, none is chosen", () => expect(choose([], { ...homeless, key: 1 }, idle, () => 0.5)).toBeNull());

test("sessions spread by weight, and one route less moves its own alone", () => {
  const routes = [route("a", 0, 1), route("b", 0, 1), route("c", 0, 2)];
  const placed = (among: Route[]) =>
    Array.from({ length: 4000 }, (_, key) => choose(among, { ...homeless, key }, roomy, () => 0)!.model);
  // Every route already has so many sessions that the bound on its share of sessions never applies.
  const roomy = ({ weight }: Route): Burden => ({ tokens: 0, requests: 0, sessions: 1e6 * weight });
  const before = placed(routes);
  const count = (model: string) => before.filter((one) => one === model).length;
  expect(Math.abs(count("a") - 1000)).toBeLessThan(150);
  expect(Math.abs(count("c") - 2000)).toBeLessThan(150);
  const after = placed(routes.slice(0, 2));
  expect(before.every((model, key) => model === "c" || model === after[key])).toBe(true);
  // The sessions of the lost route go to both remaining routes.
  const moved = after.filter((_, key) => before[key] === "c");
  expect(Math.abs(moved.filter((model) => model === "a").length - moved.length / 2)).toBeLessThan(150);
});

test("a session stays at home until that holds far more than its share", () => {
  const routes = [route("a", 0, 1), route("b", 0, 1), route("c", 0, 1), route("d", 0, 1)];
  const [home] = routes;
  const chosen = (busy: number, others: number) =>
    choose(
      routes,
      { key: 1, isHome: (one) => one === home, tokens: 1 },
      (one) => ({ tokens: one === home ? busy : others, requests: one === home ? busy : others, sessions: 10 }),
      draws(0.5, 0.9),
    );
  expect(chosen(0, 0)).toBe(home!);
  expect(chosen(1, 0)).toBe(home!);
  expect(chosen(1000, 1000)).toBe(home!);
  expect(chosen(1_000_000, 1_000_000 / bound + 20_000)).toBe(home!);
  expect(chosen(1_000_000, 700_000)).not.toBe(home!);
});

test("whatever is in flight, one of the routes is chosen, none far beyond its share of work while another has room, and none beyond its share of sessions", () => {
  const burdens = fc.array(
    fc.record({ tokens: fc.nat(1e6), requests: fc.integer({ min: 1, max: 50 }), sessions: fc.nat(50) }),
    { minLength: 2, maxLength: 8 },
  );
  fc.assert(
    fc.property(burdens, fc.nat(), fc.boolean(), fc.nat(7), (all, key, isKeyed, at) => {
      const routes = all.map((_, index) => route(`m${index}`, 0, 1));
      const home = routes[at];
      const burdenOf = (one: Route) => all[routes.indexOf(one)]!;
      const seeking = { key: isKeyed ? key : null, isHome: (one: Route) => one === home, tokens: 1000 };
      const chosen = choose(routes, seeking, burdenOf, () => 0.3)!;
      expect(routes).toContain(chosen);
      const sum = (value: (one: Burden) => number) => all.reduce((total, one) => total + value(one), 0);
      const inFlight = sum(({ tokens }) => tokens) + 1000;
      const mean = inFlight / all.length;
      const chance = Math.sqrt((mean * inFlight * (1 - 1 / all.length)) / (sum(({ requests }) => requests) + 1));
      // A request that is large compared to all requests in flight exceeds the bound of every route. Then it stays at
      // its home, the route of its session.
      const isFree = (one: Route, deviations: number) =>
        burdenOf(one).tokens === 0 || burdenOf(one).tokens + 1000 <= bound * mean + deviations * chance;
      if (!isKeyed) return;
      const live = sum(({ sessions }) => sessions) + (home ? 0 : 1);
      const hasPlace = (one: Route) => burdenOf(one).sessions < Math.ceil((bound * live) / all.length);
      const isAnyOpen = routes.some((one) => isFree(one, 2.999) && hasPlace(one));
      if (home ? isAnyOpen || isFree(home, 2.999) : isAnyOpen) expect(isFree(chosen, 3.001)).toBe(true);
      if (chosen !== home) expect(hasPlace(chosen)).toBe(true);
    }),
    { numRuns: 20_000 },
  );
});

test("a request goes where it fits; where it fits nowhere, to the largest", () => {
  const routes = [route("small", 0, 1, 1000), route("middle", 0, 1, 2000), route("large", 0, 1, 4000)];
  const names = (tokens: number) => fitting(routes, tokens, (one) => one.contextTokens!).map(({ model }) => model);
  expect(names(1000)).toEqual(["small", "middle", "large"]);
  expect(names(1001)).toEqual(["middle", "large"]);
  expect(names(9000)).toEqual(["large"]);
});

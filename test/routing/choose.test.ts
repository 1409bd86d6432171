/** Which route goes first: the best priority, by weight, the same one for the same conversation, and one that it fits. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Route } from "../../src/routing/catalog.ts";
import { affinity, choose, fitting } from "../../src/routing/choose.ts";

const route = (model: string, priority: number, weight: number, contextTokens?: number): Route =>
  ({ upstream: { name: model }, model, priority, weight, contextTokens }) as unknown as Route;

const anyRoutes = fc
  .array(fc.record({ priority: fc.nat(3), weight: fc.nat(4) }), { minLength: 1, maxLength: 8 })
  .map((all) => all.map(({ priority, weight }, index) => route(`m${index}`, priority, weight)));
const anyDraw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test("the best priority that has weight goes first, whatever the draw", () => {
  fc.assert(
    fc.property(anyRoutes, anyDraw, (routes, draw) => {
      const open = routes.some(({ weight }) => weight > 0) ? routes.filter(({ weight }) => weight > 0) : routes;
      expect(choose(routes, draw)?.priority).toBe(Math.min(...open.map(({ priority }) => priority)));
    }),
  );
});

test("within a priority weight decides", () => {
  const routes = [route("a", 0, 1), route("b", 0, 3), route("c", 0, 0), route("d", 0, 4), route("e", 1, 100)];
  const counts: Record<string, number> = {};
  for (let step = 0; step < 800; step++) {
    const { model } = choose(routes, step / 800)!;
    counts[model] = (counts[model] ?? 0) + 1;
  }
  expect(counts).toEqual({ a: 100, b: 300, d: 400 });
});

test("of none, none is chosen", () => expect(choose([], 0.5)).toBeNull());

test("the same key gives the same number, and many keys spread", () => {
  const numbers = Array.from({ length: 1000 }, (_, index) => affinity(`conversation ${index}`));
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
  expect(affinity("conversation 7")).toBe(numbers[7]!);
  expect(Math.abs(numbers.filter((number) => number < 0.5).length - 500)).toBeLessThan(100);
});

test("a request goes where it fits; where it fits nowhere, to the largest", () => {
  const routes = [route("small", 0, 1, 1000), route("middle", 0, 1, 2000), route("large", 0, 1, 4000)];
  const names = (tokens: number) => fitting(routes, tokens, (one) => one.contextTokens!).map(({ model }) => model);
  expect(names(1000)).toEqual(["small", "middle", "large"]);
  expect(names(1001)).toEqual(["middle", "large"]);
  expect(names(9000)).toEqual(["large"]);
});

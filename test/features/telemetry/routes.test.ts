/** The models that are reported to operators as having no usable route. */
import { expect, test } from "bun:test";
import type { RouteView } from "../../../src/core/routing/view.ts";
import { modelsWithoutRoute } from "../../../src/features/telemetry/routes.ts";

const view = (model: string, state: RouteView["state"]): RouteView => {
  return { model, upstream: "main", state, requests: 0, tokens: 0, waiting: 0 };
};

test("a model is without a route where none of its routes is well, and is named once", () => {
  expect(modelsWithoutRoute([])).toEqual([]);
  const routes = [
    ...[view("acme/open", "open"), view("acme/open", "drained"), view("acme/trial", "half-open")],
    ...[view("acme/well", "open"), view("acme/well", "closed"), view("acme/crowded", "crowded")],
  ];
  expect(modelsWithoutRoute(routes)).toEqual(["acme/open", "acme/trial"]);
});

/**
 * Metrics show operators, for each model, how far the engines' reports differ from the service's own counts of tokens.
 */
import { expect, test } from "bun:test";
import { divergence } from "../../../src/features/telemetry/divergence.ts";

const rows = (model: string, half: number, most: number) => [
  { model, quantile: "0.5", ratio: half },
  { model, quantile: "0.99", ratio: most },
];

test("the middle and the 99th percentile are those of the last 256 answers of each model", () => {
  const { observe, read } = divergence();
  expect(read()).toEqual([]);
  observe("acme/other", 1);
  for (let at = 0; at < 10; at++) observe("acme/writer", 100);
  for (let at = 1; at <= 256; at++) observe("acme/writer", at / 100);
  expect(read()).toEqual([...rows("acme/other", 1, 1), ...rows("acme/writer", 1.29, 2.54)] as never);
});

test("the model whose last answer is oldest is forgotten if there are too many", () => {
  const { observe, read } = divergence(2);
  for (const model of ["a", "b", "a", "c"]) observe(model, 1);
  expect(read().map(({ model }) => model)).toEqual(["a", "a", "c", "c"]);
});

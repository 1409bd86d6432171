/** The example of docs/engines.md is a sluice.yaml as it stands, and has a model of each kind but chat. */
import { expect, test } from "bun:test";
import { configured } from "../config/reading.ts";
import { blocksOf } from "./blocks.ts";

test("the example of models for embeddings, rerank and completions is read as it stands", () => {
  const [example] = blocksOf("docs/engines.md").filter(({ text }) => text.includes("kind: embedding"));
  const models = [...configured(example!.text).catalog.models.values()];
  expect(models.map(({ kind }) => kind)).toEqual(["embedding", "rerank", "completion"]);
});

test("the example of a second engine is read as it stands, and its model has a route to each", () => {
  const [example] = blocksOf("docs/engines.md").filter(({ text }) => text.includes("gpu-2:"));
  const [model] = configured(example!.text).catalog.models.values();
  expect(model!.routes.map(({ upstream }) => upstream.name)).toEqual(["gpu-1", "gpu-2"]);
});

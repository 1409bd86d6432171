import { expect, test } from "bun:test";
import { aliasesOf, allowedModel, type CatalogModel } from "../../../src/core/routing/catalog.ts";

const model = { id: "acme/writer-2", aliases: ["acme/writer-1"], routes: [] } as unknown as CatalogModel;
const catalog = { models: new Map([[model.id, model]]), aliases: aliasesOf([model]), plans: new Map() };

test("a key that was limited to a model by an earlier id may still use it, by both of its names", () => {
  for (const name of ["acme/writer-1", "acme/writer-2"])
    expect(allowedModel(catalog, name, { models: ["acme/writer-1"] }, 0)).toBe(model);
  expect(() => allowedModel(catalog, "acme/writer-1", { models: ["acme/other"] }, 0)).toThrow("may not use the model");
});

test("a person's key may use a model that it and the membership name, each by another of its names", () => {
  const allowed = (models: string[], membershipModels: string[]) =>
    allowedModel(catalog, "acme/writer-2", { models, membershipModels }, 0);
  expect(allowed(["acme/writer-2"], ["acme/writer-1"])).toBe(model);
  expect(allowed(["acme/writer-1"], ["acme/writer-2"])).toBe(model);
  expect(() => allowed(["acme/writer-2"], ["acme/other"])).toThrow("may not use the model");
  expect(() => allowed(["acme/other"], ["acme/writer-1"])).toThrow("may not use the model");
});

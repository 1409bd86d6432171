/** Which aliases and retirements of models a sluice.yaml may have. */
import { describe, expect, test } from "bun:test";
import { configured, problemsOf } from "./reading.ts";

const modelOf = ([id, fields]: [string, Record<string, unknown>]) => ({
  ...{ id, created: 1, context_window: 9, prices: { input: 0.001, output: 0.002 } },
  routes: [{ upstream: "main", model: "m" }],
  ...fields,
});
const withModels = (models: Record<string, Record<string, unknown>>) =>
  `upstreams: { main: { url: "http://127.0.0.1:9000/v1" } }\nmetering: { currency: USD }\nmodels: ${JSON.stringify(Object.entries(models).map(modelOf))}\n`;
const said = (models: Record<string, Record<string, unknown>>) =>
  problemsOf(withModels(models)).map((problem) => problem.replace(/^\d+:\d+: models/, ""));
const retiring = { retires_at: "2030-01-31" };

describe("aliases and retirements", () => {
  test("are read: a date is its first moment in UTC, and may be in the past", () => {
    const { catalog } = configured(
      withModels({
        "a/b": { aliases: ["a/c"], retires_at: "2020-01-31", replaced_by: "a/d", redirect: true },
        "a/d": { retires_at: "2030-01-31T12:00:00Z", deprecated_at: "2029-01-31" },
      }),
    );
    expect(catalog.models.get("a/b")).toMatchObject({
      aliases: ["a/c"],
      retirement: { at_ms: Date.UTC(2020, 0, 31), deprecatedAt_ms: Date.UTC(2020, 0, 31), replacedBy: "a/d" },
    });
    expect(catalog.models.get("a/d")?.retirement).toEqual({
      at_ms: Date.UTC(2030, 0, 31, 12),
      deprecatedAt_ms: Date.UTC(2029, 0, 31),
    });
    expect(catalog.aliases?.get("a/c")).toBe("a/b");
  });

  test("an alias means one model", () => {
    expect(said({ "a/b": { aliases: ["a/d"] }, "a/d": {} })).toEqual(["[0].aliases[0]: is the id of another model"]);
    expect(said({ "a/b": { aliases: ["a/b"] } })).toEqual(["[0].aliases[0]: is the model's own id"]);
    expect(said({ "a/b": { aliases: ["a/x"] }, "a/d": { aliases: ["a/x"] } })).toEqual([
      "[1].aliases[0]: is already an alias of 'a/b'",
    ]);
    expect(said({ "a/b": { aliases: ["x"] } })[0]).toStartWith("[0].aliases[0]: must be a model id of the form");
  });

  test("a replacement is another model of the file, and comes to an end", () => {
    const by = (replaced_by: string) => ({ ...retiring, replaced_by });
    expect(said({ "a/b": by("a/b") })).toEqual([expect.stringContaining("[0].replaced_by: leads back to this model")]);
    expect(said({ "a/b": by("a/c"), "a/c": by("a/d"), "a/d": by("a/b") })).toHaveLength(3);
    // A model whose replacement leads into a circle of other models is not reported itself; the circle's models are.
    expect(said({ "a/a": by("a/b"), "a/b": by("a/c"), "a/c": by("a/b") })).toHaveLength(2);
    expect(said({ "a/b": by("a/none") })).toEqual([expect.stringContaining("[0].replaced_by: names no model")]);
    expect(said({ "a/b": by("a/x"), "a/c": { aliases: ["a/x"] } })).toEqual([
      "[0].replaced_by: is an alias; write the id 'a/c'",
    ]);
  });

  test("the settings of a retirement need its date, which has to exist", () => {
    expect(said({ "a/b": { replaced_by: "a/c" }, "a/c": {} })).toEqual(["[0].replaced_by: needs retires_at; add it"]);
    expect(said({ "a/b": { deprecated_at: "2030-01-31" } })).toEqual(["[0].deprecated_at: needs retires_at; add it"]);
    expect(said({ "a/b": { ...retiring, redirect: true } })).toEqual(["[0].redirect: needs replaced_by; add it"]);
    expect(said({ "a/b": { retires_at: "2030-02-30" } })).toEqual([
      "[0].retires_at: is a day or a time that there is not",
    ]);
    expect(said({ "a/b": { retires_at: "31.1.2030" } })[0]).toContain("[0].retires_at: must be a date such as");
    expect(said({ "a/b": { ...retiring, deprecated_at: "2031-01-31" } })).toEqual([
      "[0].deprecated_at: must not be after retires_at (2030-01-31)",
    ]);
  });
});

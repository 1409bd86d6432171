/** The default catalog of models; aliases and retirement dates of models in sluice.yaml; and amounts of money. */
import { describe, expect, test } from "bun:test";
import { defaultModels } from "../../src/config/models.ts";
import { capabilities } from "../../src/config/settings/model.ts";
import { configured, problemsOf, withModel } from "./reading.ts";

const models = defaultModels();

describe("the default catalog", () => {
  test("has 31 models, each vendor/model_name, all different", () => {
    expect(models).toHaveLength(31);
    expect(new Set(models.map((model) => model.id)).size).toBe(31);
    for (const { id } of models) expect(id).toMatch(/^[a-z0-9-]+\/[a-z0-9.-]+$/);
  });

  test("has models with and without each capability, and none that no engine of these has", () => {
    for (const capability of capabilities) {
      const having = models.filter((model) => model.capabilities.has(capability)).length;
      if (capability === "files") expect(having).toBe(0);
      else expect([capability, having > 0 && having < 31]).toEqual([capability, true]);
    }
    expect(new Set(models.map((model) => [...model.capabilities].sort().join())).size).toBeGreaterThan(8);
  });

  test("claims nothing that cannot be: answers fit the window, parallel calls need tools, reasoners give no logprobs", () => {
    for (const model of models) {
      expect(model.outputTokens_max).toBeLessThanOrEqual(model.contextTokens);
      if (model.capabilities.has("parallel_tools")) expect(model.capabilities.has("tools")).toBe(true);
      expect(model.capabilities.has("logprobs")).toBe(!model.capabilities.has("reasoning"));
    }
  });

  test("dates every model within the years of open chat models", () => {
    for (const { created } of models) {
      expect(created % 86_400).toBe(0);
      expect(new Date(created * 1000).getUTCFullYear()).toBeOneOf([2024, 2025]);
    }
  });

  test("prices are whole micro-nanos: a cached token is cheapest, output dearest, and a bigger model of a family costs more", () => {
    for (const { prices } of models) {
      for (const price of Object.values(prices)) expect(Number.isSafeInteger(price) && price > 0).toBe(true);
      expect(prices.cachedInput).toBeLessThan(prices.input);
      expect(prices.input).toBeLessThan(prices.cacheWrite);
      expect(prices.cacheWrite).toBeLessThan(prices.output);
    }
    const price = (id: string) => models.find((model) => model.id === id)?.prices.output ?? Number.NaN;
    expect(price("meta-llama/llama-3.1-8b-instruct")).toBeLessThan(price("meta-llama/llama-3.3-70b-instruct"));
    expect(price("openai/gpt-oss-20b")).toBeLessThan(price("openai/gpt-oss-120b"));
    expect(price("google/gemma-2-9b-it")).toBeLessThan(price("google/gemma-3-27b-it"));
  });
});

const modelOf = ([id, fields]: [string, Record<string, unknown>]) => ({
  ...{ id, created: 1, context_window: 9, prices: { input: 0.001, output: 0.002 } },
  routes: [{ upstream: "main", model: "m" }],
  ...fields,
});
const withModels = (models: Record<string, Record<string, unknown>>) =>
  `upstreams: { main: { url: "http://127.0.0.1:9000/v1" } }\nmetering: { currency: USD }\nmodels: ${JSON.stringify(Object.entries(models).map(modelOf))}\n`;
const said = (models: Record<string, Record<string, unknown>>) =>
  problemsOf(withModels(models)).map((problem) => problem.replace(/^\d+:\d+: models/, ""));
const refused = (says: string, models: Parameters<typeof said>[0]) => expect(said(models)).toEqual([says]);
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
    refused("[0].aliases[0]: is the id of another model", { "a/b": { aliases: ["a/d"] }, "a/d": {} });
    refused("[0].aliases[0]: is the model's own id", { "a/b": { aliases: ["a/b"] } });
    refused("[1].aliases[0]: is already an alias of 'a/b'", {
      "a/b": { aliases: ["a/x"] },
      "a/d": { aliases: ["a/x"] },
    });
    expect(said({ "a/b": { aliases: ["x"] } })[0]).toStartWith("[0].aliases[0]: must be a model id of the form");
  });

  test("a replacement is another model of the file, and comes to an end", () => {
    const by = (replaced_by: string) => ({ ...retiring, replaced_by });
    expect(said({ "a/b": by("a/b") })).toEqual([expect.stringContaining("[0].replaced_by: leads back to this model")]);
    expect(said({ "a/b": by("a/c"), "a/c": by("a/d"), "a/d": by("a/b") })).toHaveLength(3);
    // A model whose chain of replacements leads into a cycle of other models is not reported; the models of the cycle
    // are.
    expect(said({ "a/a": by("a/b"), "a/b": by("a/c"), "a/c": by("a/b") })).toHaveLength(2);
    expect(said({ "a/b": by("a/none") })).toEqual([expect.stringContaining("[0].replaced_by: names no model")]);
    refused("[0].replaced_by: is an alias; write the id 'a/c'", { "a/b": by("a/x"), "a/c": { aliases: ["a/x"] } });
  });

  test("the settings of a retirement need its date, which has to exist", () => {
    refused("[0].replaced_by: needs retires_at; add it", { "a/b": { replaced_by: "a/c" }, "a/c": {} });
    refused("[0].deprecated_at: needs retires_at; add it", { "a/b": { deprecated_at: "2030-01-31" } });
    refused("[0].redirect: needs replaced_by; add it", { "a/b": { ...retiring, redirect: true } });
    refused("[0].retires_at: is a day or a time that there is not", { "a/b": { retires_at: "2030-02-30" } });
    expect(said({ "a/b": { retires_at: "31.1.2030" } })[0]).toContain("[0].retires_at: must be a date such as");
    refused("[0].deprecated_at: must not be after retires_at (2030-01-31)", {
      "a/b": { ...retiring, deprecated_at: "2031-01-31" },
    });
  });
});

const priced = (prices: string) => withModel().replace(/"prices":\{[^}]*\}/, `"prices": ${prices}`);
const pricesOf = (prices: string) => configured(priced(prices)).catalog.models.get("acme/writer-1")!.prices;

describe("a price", () => {
  test("of a million tokens is kept in picos for each", () => {
    const prices = pricesOf("{ input: 0.15, cached_input: 0.0375, cache_write: 0.1875, output: 0.60 }");
    expect(prices).toEqual({ input: 150_000, cachedInput: 37_500, cacheWrite: 187_500, output: 600_000 });
    expect(pricesOf("{ input: 0.000001, output: 90000 }")).toMatchObject({ input: 1, output: 90_000_000_000 });
    expect(pricesOf('{ input: "0.15", output: 0 }')).toMatchObject({ input: 150_000, output: 0 });
  });

  test("is read from the text: a double nearby is another price", () => {
    const message = "must be an amount from 0 to 90000, with 6 decimals at most";
    const wrong = ["0.1500000000000000001", "0.0000001", "1e-1", "0x10", "-1", "90000.000001", ".5", "+1", '"1 USD"'];
    for (const price of wrong)
      expect(problemsOf(priced(`{ input: ${price}, output: 1 }`)).join("\n")).toContain(message);
    expect(pricesOf("{ input: 0.150000000000, output: 1 }").input).toBe(150_000);
  });

  test("needs the currency beside it, because prices were units for a token once", () => {
    const [problem] = problemsOf(withModel({}, "metering: { lease_s: 60 }"));
    expect(problem).toContain("metering.currency: is missing");
    expect(problem).toContain(
      "a new price is the old one times price_per_million_units (without it: divided by 1,000)",
    );
    const [gone] = problemsOf("reports: { currency: EUR, price_per_million_units: 0.5 }").filter((one) =>
      one.includes("price_per_million_units"),
    );
    expect(gone).toContain("a new price is the old one times price_per_million_units");
  });
});

test("a currency is of ISO 4217 and has a million that is enough for a month, or is credits", () => {
  const currency = (name: string) => withModel({}, `metering: { currency: ${name} }`);
  expect(configured(currency("credits")).metering.currency).toBe("credits");
  expect(configured(currency("JPY")).metering.currency).toBe("JPY");
  expect(problemsOf(currency("IDR")).join()).toContain("Use credits");
  expect(problemsOf(currency("DOLLAR")).join()).toContain("ISO 4217");
  expect(problemsOf(currency("ABC")).join()).toContain("ISO 4217");
  expect(configured("plans: {}").metering.currency).toBe("USD");
});

test("a plan holds money", () => {
  const { plans } = configured("plans: { team: { session: 3, week: 15.50, month: 0.000000001 } }").catalog;
  expect(plans.get("team")).toMatchObject({ session: 3e9, week: 15_500_000_000, month: 1 });
  expect(configured("plans: { team: { month: 1000000 } }").catalog.plans.get("team")?.month).toBe(1e15);
});

import { describe, expect, test } from "bun:test";
import { defaultModels } from "../../src/config/models.ts";
import { capabilities } from "../../src/config/settings/model.ts";

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

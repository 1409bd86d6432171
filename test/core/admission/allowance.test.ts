/** Rules that apply to a request before the ledger is asked: the number of output tokens that its context allows. */
import { expect, test } from "bun:test";
import { outputTokensAllowed, outputTokensReserved } from "../../../src/core/admission/allowance.ts";

test("a context has room for a summary, however small it is", () => {
  expect(outputTokensReserved({ contextTokens: 131_072, outputTokens_max: 16_384 })).toBe(4096);
  expect(outputTokensReserved({ contextTokens: 131_072, outputTokens_max: 512 })).toBe(512);
  expect(outputTokensReserved({ contextTokens: 4_096, outputTokens_max: 4_096 })).toBe(1024);
  expect(outputTokensReserved({ contextTokens: 2, outputTokens_max: 2 })).toBe(1);
});

test("an answer has the rest of its context, and never fewer tokens than are reserved: the input is an upper estimate", () => {
  const model = { contextTokens: 131_072, outputTokens_max: 32_000 };
  expect(outputTokensAllowed(model, 1_000)).toBe(32_000);
  expect(outputTokensAllowed(model, 120_000)).toBe(11_072);
  expect(outputTokensAllowed(model, 130_000)).toBe(4_096);
  expect(outputTokensAllowed(model, 200_000)).toBe(4_096);
  expect(outputTokensAllowed({ ...model, outputTokens_max: 256 }, 200_000)).toBe(256);
});

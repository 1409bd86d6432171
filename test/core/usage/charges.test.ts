/** Charges for inputs that no engine reports are right on average, within five percent: docs/metering.md. */
import { describe, expect, test } from "bun:test";
import { tokenizerNames } from "../../../src/core/inference/model.ts";
import { countedError, expectedError } from "./charges.ts";

describe.each(tokenizerNames)("a prompt as %s has it", (tokenizer) => {
  test("is charged as counted where the tokenizer is known", async () => {
    expect(Math.abs(await countedError(tokenizer))).toBeLessThan(0.05);
  }, 60_000);

  test("is charged as expected where it is not: after forty noisy reports, whatever their order", () => {
    const errors = Array.from({ length: 20 }, (_, seed) => expectedError(tokenizer, { from: 40, to: 2_000 }, seed));
    for (const error of errors) expect(Math.abs(error)).toBeLessThan(0.05);
  });
});

// `bun bench/charges.ts`: compares the charges for inputs whose engine reports no usage with the real token counts.
// docs/metering.md has the table.

import { tokenizerNames } from "../src/core/inference/model.ts";
import { countedError, expectedError } from "../test/core/usage/charges.ts";

const percent = (share: number) => `${share >= 0 ? "+" : "−"}${Math.abs(share * 100).toFixed(1)} %`;
const seeds = Array.from({ length: 20 }, (_, seed) => seed);

for (const tokenizer of tokenizerNames) {
  const over = (from: number, to: number) => {
    const errors = seeds.map((seed) => expectedError(tokenizer, { from, to }, seed));
    const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
    return `${percent(mean)} (${percent(Math.min(...errors))} to ${percent(Math.max(...errors))})`;
  };
  console.log(tokenizer);
  console.log("  counted by its tokenizer  ", percent(await countedError(tokenizer)));
  console.log("  expected, first 40 reports", over(0, 40));
  console.log("  expected, from then on    ", over(40, 2_000));
}

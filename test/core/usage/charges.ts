// Compares charges for inputs that no engine reports with their true tokens: the inputs are the corpus of
// test/features/tokenizers, whose true counts are recorded there. An error is (charged − true) ÷ true of all charges
// together.

import type { TokenizerName } from "../../../src/core/inference/model.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { decodeRequest } from "../../../src/core/protocol/anthropic-messages/decode-request.ts";
import { validateCountTokens } from "../../../src/core/protocol/anthropic-messages/validate.ts";
import { inputEstimate } from "../../../src/core/usage/input-estimate.ts";
import { examine } from "../../../src/features/tokenizers/examine.ts";
import { promptCount } from "../../../src/features/tokenizers/prompt-count.ts";
import { vocabularies } from "../../../src/features/tokenizers/vocabularies.ts";
import { chanceOf } from "../../faults/chance.ts";
import { corpus } from "../../features/tokenizers/corpus.ts";
import counts from "../../features/tokenizers/counts.json" with { type: "json" };

export interface Input {
  request: InferenceRequest;
  inputBytes: number;
  trueTokens: number;
}

const model = "acme/writer-1";

export function inputsOf(tokenizer: TokenizerName): Input[] {
  return corpus.map(({ name, ...body }) => {
    const wire = { model, ...body };
    return {
      request: decodeRequest(validateCountTokens(wire), {}),
      inputBytes: new TextEncoder().encode(JSON.stringify({ ...wire, stream: true, max_tokens: 1024 })).byteLength,
      trueTokens: (counts as Record<string, Record<TokenizerName, number>>)[name]![tokenizer],
    };
  });
}

/** The error if every input of the corpus is charged once, and its tokens are counted as for a settlement. */
export async function countedError(tokenizer: TokenizerName): Promise<number> {
  const known = vocabularies();
  const count = promptCount({ examine: (asked) => examine(asked, known) }, { count_ms: 60_000, body_bytes_max: 1e9 });
  const charges = inputsOf(tokenizer).map(async ({ request, inputBytes, trueTokens }) => ({
    charged:
      (await count({
        request,
        inputBytes,
        model: { id: model, tokenizer },
        principal: { organization: { id: "" } },
      })) ?? Number.NaN,
    trueTokens,
  }));
  return errorOf(await Promise.all(charges));
}

/**
 * The error if inputs of the corpus come in random order, and each is charged by an estimate from the engine reports
 * before it. Reports are off by a tenth at most, to either side.
 */
export function expectedError(tokenizer: TokenizerName, reports: { from: number; to: number }, seed: number): number {
  const inputs = inputsOf(tokenizer);
  const estimate = inputEstimate();
  const chance = chanceOf(seed);
  const charges: { charged: number; trueTokens: number }[] = [];
  for (let report = 0; report < reports.to; report++) {
    const { inputBytes, trueTokens } = chance.pick(inputs);
    const charged = estimate.expected({ id: model }, { bytes: 0, tokens: 0 }, inputBytes);
    if (report >= reports.from) charges.push({ charged, trueTokens });
    const inputTokens = Math.round(trueTokens * (0.9 + 0.2 * chance.next()));
    estimate.observe({ id: model }, inputBytes, { bytes: 0 }, { ...noUsage, inputTokens, source: "reported" });
  }
  return errorOf(charges);
}

function errorOf(charges: readonly { charged: number; trueTokens: number }[]): number {
  const sum = (of: (one: { charged: number; trueTokens: number }) => number) =>
    charges.reduce((total, one) => total + of(one), 0);
  return sum(({ charged }) => charged) / sum(({ trueTokens }) => trueTokens) - 1;
}

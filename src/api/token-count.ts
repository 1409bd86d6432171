/**
 * The common part of the operations that count the tokens of an input: the body is read for a worker, and the count is
 * made from its result.
 */
import type { TSchema } from "typebox";
import { readJsonBytes } from "../body/read.ts";
import { reserve, takesTurns } from "../http/shed.ts";
import type { Model } from "../inference/model.ts";
import type { Catalog } from "../routing/catalog.ts";
import { answeringModelOrNull } from "../routing/model-names.ts";
import type { Examined } from "../tokens/examine.ts";
import type { Dependencies } from "./dependencies.ts";
import type { RequestBody } from "./operation.ts";

/** A body that a worker parses and checks. */
export function countedBody(schema: TSchema): RequestBody<Uint8Array> {
  return {
    schema,
    read(dependencies, call) {
      const hold = (held: number) => reserve(dependencies, call, held);
      return readJsonBytes(call.request, dependencies.limits, hold, takesTurns(dependencies, call));
    },
  };
}

/** The tokenizer of each model that names one, by every name by which requests may ask for it. `now_ms` is since the epoch. */
export function tokenizersOf(catalog: Catalog, now_ms: number): Record<string, string> {
  const named: Record<string, string> = {};
  for (const name of [...catalog.models.keys(), ...(catalog.aliases?.keys() ?? [])]) {
    const tokenizer = answeringModelOrNull(catalog, name, now_ms)?.tokenizer;
    if (tokenizer !== undefined) named[name] = tokenizer;
  }
  return named;
}

/** The input tokens: the worker's count, or the middle estimate for this many bytes if it has none. */
export function inputTokensOf(
  { inputEstimate }: Pick<Dependencies, "inputEstimate">,
  model: Pick<Model, "id">,
  { media, textTokens }: Examined,
  bytes: number,
): number {
  return textTokens === null ? inputEstimate.expected(model, media, bytes) : textTokens + media.tokens;
}

import type { Capability } from "./request.ts";

export const modelKinds = ["chat", "completion", "embedding", "rerank"] as const;
export type ModelKind = (typeof modelKinds)[number];

export const tokenizerNames = ["o200k_harmony", "llama3"] as const;
export type TokenizerName = (typeof tokenizerNames)[number];

export function isTokenizer(name: string): name is TokenizerName {
  return tokenizerNames.includes(name as TokenizerName);
}

export interface Model {
  /** Public id, `<vendor>/<model_name>`. */
  id: string;
  /** Other names that requests and limits may use. */
  aliases?: readonly string[];
  ownedBy: string;
  /** The operation that the model is for. Absent: `chat`. */
  kind?: ModelKind;
  /** The creation time of the model, in Unix seconds. */
  created: number;
  contextTokens: number;
  outputTokens_max: number;
  capabilities: ReadonlySet<Capability>;
  prices: Prices;
  /** Name of a known tokenizer. Absent: tokens that no engine reports are estimated with learned ratios. */
  tokenizer?: string;
  /** Top-level request fields beyond the contract that this model accepts. */
  extraParams: readonly string[];
  /** The largest answer that is passed on, in bytes. */
  answer_bytes_max?: number;
  /**
   * `engine`: the bounds for tools, names and stop texts in requests are those of the model's engine. Absent: those of
   * the contract.
   */
  bounds?: "engine";
}

/** Prices in picos (10⁻¹²) of the currency for each token. */
export interface Prices {
  input: number;
  cachedInput: number;
  cacheWrite: number;
  output: number;
  /** The price of one search in picos, for models that rank. */
  search?: number;
}

/** When a model stops being served, and what replaces it. */
export interface Retirement {
  /** The time at which the id stops being served, in milliseconds since the epoch. */
  at_ms: number;
  /** The time from which clients were asked to stop using the id, in milliseconds since the epoch. */
  deprecatedAt_ms: number;
  replacedBy?: string;
  /** Whether the replacement answers requests for this id after its retirement. */
  redirects?: boolean;
}

/** A model of the catalog: its capabilities, its limits and its prices. */
import type { Capability } from "./request.ts";

/** The operation that a model is for. */
export const modelKinds = ["chat", "completion", "embedding", "rerank"] as const;
export type ModelKind = (typeof modelKinds)[number];

export interface Model {
  /** Public id, `<vendor>/<model_name>`. */
  id: string;
  /** The name of the model's maker. */
  ownedBy: string;
  /** Absent: `chat`. */
  kind?: ModelKind;
  /** Unix seconds. */
  created: number;
  contextTokens: number;
  outputTokens_max: number;
  capabilities: ReadonlySet<Capability>;
  prices: Prices;
  /** Name of a known tokenizer; absent means that counts are estimated and calibrated. */
  tokenizer?: string;
  /** Top-level fields beyond the contract that this model accepts. */
  extraParams: readonly string[];
  /** The largest answer that is passed on. */
  answer_bytes_max?: number;
  /** `engine`: requests may have what the model's engine takes. Absent: what the specification of the service says. */
  bounds?: "engine";
}

/** Prices in picos (10⁻¹²) of the currency for each token. */
export interface Prices {
  input: number;
  cachedInput: number;
  cacheWrite: number;
  output: number;
  /** The price of a search in picos, for models that rank. */
  search?: number;
}

/** The end of a model. */
export interface Retirement {
  /** Since the epoch. From then on the id is not served. */
  at_ms: number;
  /** Since the epoch. When clients were to stop using it. */
  deprecatedAt_ms: number;
  /** The id of another model. */
  replacedBy?: string;
  /** Whether the replacement answers requests for this id after its retirement. */
  redirects?: boolean;
}

/** The charges that a row of a report consists of: one for each kind of token (docs/reports.md, FOCUS). Pure. */
import { nanosOf } from "../../core/inference/money.ts";
import type { Row } from "./report-shape.ts";

/** The sums of a row. Each sum appears in exactly one of the row's charges. */
interface Measures
  extends Partial<
    Pick<
      Row,
      "requests" | "inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "outputTokens" | "reasoningTokens"
    >
  > {
  /** An amount as decimal text. */
  extraUsage?: string;
  uncharged?: string;
}

export interface Charge {
  /** The name of the meter: the kind of token that is counted. */
  meter: string;
  tokens: number;
  nanos: bigint;
  /** The price of a token in picos (thousandths of a nano); null if the charge has no single price. */
  price: bigint | null;
  measures: Measures;
}

const kinds = [
  { meter: "Input Tokens", tokens: "inputTokens", cost: "input" },
  { meter: "Cached Input Tokens", tokens: "cachedInputTokens", cost: "cachedInput" },
  { meter: "Cache Write Tokens", tokens: "cacheWriteTokens", cost: "cacheWrite" },
  { meter: "Output Tokens", tokens: "outputTokens", cost: "output" },
] as const;

/**
 * The meter of a cost that belongs to no kind of token: of an operator's entry, of a hold (the amount reserved for a
 * request) that was charged whole, or of a day that was rolled up without kinds.
 */
const allKinds = "Tokens";

/**
 * The charges of a row, which add up to the row. Each token count is in the charge of its kind; measures that belong to
 * no kind are in the first charge.
 */
export function chargesOf(row: Row): Charge[] {
  const charges: Charge[] = [];
  const total = nanosOf(row.cost.total);
  let nanos_left = total;
  for (const { meter, tokens, cost } of kinds) {
    const nanos = nanosOf(row.cost[cost]);
    if (row[tokens] === 0 && nanos === 0n) continue;
    charges.push({ meter, tokens: row[tokens], nanos, price: null, measures: { [tokens]: row[tokens] } });
    nanos_left -= nanos;
  }
  const { requests, reasoningTokens } = row;
  const sums = { requests, extraUsage: row.cost.extraUsage.amount, uncharged: row.cost.uncharged.amount };
  if (nanos_left === total && nanos_left !== 0n) {
    const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = row;
    const measures = { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens, ...sums };
    const tokens = inputTokens + cachedInputTokens + cacheWriteTokens + outputTokens;
    return [{ meter: allKinds, tokens, nanos: total, price: null, measures }];
  }
  const isWhole = nanosOf(row.cost.uncharged) === 0n;
  for (const charge of charges) charge.price = isWhole ? priceOf(charge) : null;
  if (nanos_left !== 0n || charges.length === 0)
    charges.push({ meter: allKinds, tokens: 0, nanos: nanos_left, price: null, measures: {} });
  Object.assign(charges[0]!.measures, sums);
  const output = charges.find(({ meter }) => meter === "Output Tokens") ?? charges[0]!;
  output.measures.reasoningTokens = reasoningTokens;
  return charges;
}

/**
 * The price of a token in a charge. In FOCUS, price times quantity must equal the cost. If costs were rounded up or
 * prices differed, no price fits, and the result is null.
 */
function priceOf({ tokens, nanos }: Charge): bigint | null {
  if (tokens === 0 || nanos < 0n !== tokens < 0) return nanos === 0n && tokens !== 0 ? 0n : null;
  const picos = nanos * 1000n;
  return picos % BigInt(tokens) === 0n ? picos / BigInt(tokens) : null;
}

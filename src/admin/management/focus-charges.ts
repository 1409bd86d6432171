/** The charges that a row of a report consists of: one for each kind of token (docs/reports.md, FOCUS). Pure. */
import type { Row } from "./report-shape.ts";

/** The sums of a row, each of which stands in one of its charges. */
type Measures = Partial<
  Pick<
    Row,
    | "requests"
    | "inputTokens"
    | "cachedInputTokens"
    | "cacheWriteTokens"
    | "outputTokens"
    | "reasoningTokens"
    | "extraNanos"
    | "unchargedNanos"
  >
>;

export interface Charge {
  /** The name of the meter: the kind of token that is counted. */
  meter: string;
  tokens: number;
  nanos: number;
  measures: Measures;
}

const kinds = [
  { meter: "Input Tokens", tokens: "inputTokens", nanos: "inputNanos" },
  { meter: "Cached Input Tokens", tokens: "cachedInputTokens", nanos: "cachedInputNanos" },
  { meter: "Cache Write Tokens", tokens: "cacheWriteTokens", nanos: "cacheWriteNanos" },
  { meter: "Output Tokens", tokens: "outputTokens", nanos: "outputNanos" },
] as const;

/** Units of no kind: of an entry, of a hold that was charged whole, or of a day that was rolled up without kinds. */
const allKinds = "Tokens";

/**
 * The charges of a row add up to the row: its tokens are in the charges of their kinds, and measures of no kind in the first
 * charge.
 */
export function chargesOf(row: Row): Charge[] {
  const charges: Charge[] = [];
  let nanos_left = row.nanos;
  for (const { meter, tokens, nanos } of kinds) {
    if (row[tokens] === 0 && row[nanos] === 0) continue;
    const measures: Measures = { [tokens]: row[tokens] };
    charges.push({ meter, tokens: row[tokens], nanos: row[nanos], measures });
    nanos_left -= row[nanos];
  }
  if (nanos_left === row.nanos && nanos_left !== 0) return [whole(row)];
  if (nanos_left !== 0 || charges.length === 0) {
    charges.push({ meter: allKinds, tokens: 0, nanos: nanos_left, measures: {} });
  }
  const { requests, reasoningTokens, extraNanos, unchargedNanos } = row;
  Object.assign(charges[0]!.measures, { requests, extraNanos, unchargedNanos });
  const output = charges.find(({ meter }) => meter === "Output Tokens") ?? charges[0]!;
  output.measures.reasoningTokens = reasoningTokens;
  return charges;
}

/** A row whose nanos are of no kind at all. */
function whole(row: Row): Charge {
  const tokens = kinds.reduce((sum, kind) => sum + row[kind.tokens], 0);
  return { meter: allKinds, tokens, nanos: row.nanos, measures: row };
}

/** One request as the book has it: the hold of a running one, the record of an ended one. */
import type { UsageSource } from "../inference/usage.ts";
import { idOf } from "../store/ids.ts";
import type { BillingSource, Operation, Outcome, Receipt, WindowKind } from "../store/ledger.ts";
import { windowKinds } from "../store/ledger.ts";

type WindowColumns = {
  [K in `${WindowKind}_${"starts_at" | "ends_at"}`]: Date | null;
} & {
  [K in `${WindowKind}_${"limit" | "used_before" | "used_after"}`]: number | null;
};

export interface ReceiptRow extends WindowColumns {
  request_id: string;
  organization_id: string;
  key_id: string;
  operation: Operation;
  model: string;
  stream: boolean;
  price_input: number;
  price_cached_input: number;
  price_cache_write: number;
  price_output: number;
  source: BillingSource;
  held: number;
  charged: number;
  uncharged: number;
  admitted_at: Date;
  ended_at: Date | null;
  outcome: Outcome | "running";
  stopped_by: "usage_window" | null;
  error_code: string | null;
  recovered: boolean;
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  usage_source: UsageSource;
  upstream: string | null;
  attempts: number | null;
  first_part_ms: number | null;
}

const shared = `request_id, organization_id, key_id, operation, model, stream,
  price_input, price_cached_input, price_cache_write, price_output, source, admitted_at,
  input_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, usage_source,
  session_starts_at, session_ends_at, session_limit, week_starts_at, week_ends_at, week_limit,
  month_starts_at, month_ends_at, month_limit`;

/** Of request $2, of organization $1 where it is given. The record first: where a settlement comes between, it is found by either. */
export const receiptQuery = `
  select ${shared}, output_tokens, held, charged, uncharged, ended_at, outcome, stopped_by, error_code, recovered,
    session_used_before, session_used_after, week_used_before, week_used_after, month_used_before, month_used_after,
    upstream, attempts, first_part_ms
  from usage_record where request_id = $2 and ($1::uuid is null or organization_id = $1) and operation <> 'adjustment'
  union all
  select ${shared}, produced_tokens, units, 0, 0, null, 'running', null, null, false,
    session_used, null, week_used, null, month_used, null, null, null, null
  from usage_hold where request_id = $2 and ($1::uuid is null or organization_id = $1)`;

export function receiptOf(row: ReceiptRow): Receipt {
  return {
    requestId: idOf(row.request_id, "req_"),
    organizationId: idOf(row.organization_id, "org_"),
    keyId: idOf(row.key_id, "key_"),
    operation: row.operation,
    model: row.model,
    stream: row.stream,
    createdAt: row.admitted_at,
    endedAt: row.ended_at,
    outcome: row.outcome,
    stoppedBy: row.stopped_by,
    errorCode: row.error_code,
    recovered: row.recovered,
    usage: {
      inputTokens: row.input_tokens,
      cachedInputTokens: row.cached_input_tokens,
      cacheWriteTokens: row.cache_write_tokens,
      outputTokens: row.output_tokens,
      reasoningTokens: row.reasoning_tokens,
      source: row.usage_source,
    },
    prices: {
      input: row.price_input,
      cachedInput: row.price_cached_input,
      cacheWrite: row.price_cache_write,
      output: row.price_output,
    },
    units: { held: row.held, charged: row.charged, uncharged: row.uncharged },
    source: row.source,
    windows: windowsOf(row),
    route:
      row.upstream === null || row.attempts === null
        ? null
        : { upstream: row.upstream, attempts: row.attempts, firstPartMs: row.first_part_ms },
  };
}

function windowsOf(row: ReceiptRow): Receipt["windows"] {
  const windows: Partial<NonNullable<Receipt["windows"]>> = {};
  for (const kind of windowKinds) {
    const startsAt = row[`${kind}_starts_at`];
    const resetAt = row[`${kind}_ends_at`];
    if (startsAt === null || resetAt === null) return null;
    windows[kind] = {
      startsAt,
      resetAt,
      limit: row[`${kind}_limit`],
      usedBefore: row[`${kind}_used_before`] ?? 0,
      usedAfter: row[`${kind}_used_after`],
    };
  }
  return windows as NonNullable<Receipt["windows"]>;
}

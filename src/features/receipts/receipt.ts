/** A receipt in its public form. It names no upstream. Pure. */

import { type Currency, moneyOf, percentOf } from "../../core/inference/money.ts";
import { noUsage, type Usage } from "../../core/inference/usage.ts";
import { pricesShown } from "../../core/operations/models.ts";
import type { Receipt, ReceiptWindow } from "../../core/store/ledger.ts";
import type { RefusedRequest } from "../../core/store/refused.ts";
import type { RequestReceipt } from "./receipt-shape.ts";

export function receiptShown(receipt: Receipt, currency: Currency): RequestReceipt {
  const { usage, searches, prices, nanos, windows } = receipt;
  return {
    object: "service.request",
    id: receipt.requestId,
    operation: receipt.operation,
    model: receipt.model,
    stream: receipt.stream,
    key_id: receipt.keyId,
    person_id: receipt.personId,
    created_at: receipt.createdAt.toISOString(),
    ended_at: receipt.endedAt?.toISOString() ?? null,
    outcome: receipt.outcome,
    stopped_by: receipt.stoppedBy && "usage_window",
    error_code: receipt.errorCode,
    limited_by: receipt.stoppedBy?.limitedBy ?? null,
    limited_models: receipt.stoppedBy?.models ?? null,
    attempts: receipt.route?.attempts ?? null,
    continued: receipt.route?.tried?.some(({ continued }) => continued === true) ?? false,
    recovered: receipt.recovered,
    settled_late_at: receipt.settledLateAt?.toISOString() ?? null,
    detached: receipt.detached,
    replay_of: receipt.replayOf,
    input_count: receipt.inputs,
    usage: usageShown(usage, searches),
    prices: prices && pricesShown(prices, currency),
    cost: costShown(nanos, currency),
    billing_source: receipt.source,
    windows: windows && {
      session: windowShown(windows.session),
      week: windowShown(windows.week),
      month: windowShown(windows.month),
    },
  };
}

function costShown({ held, charged, uncharged }: Receipt["nanos"], currency: Currency): RequestReceipt["cost"] {
  return {
    held: moneyOf(held, currency),
    charged: moneyOf(charged, currency),
    uncharged: moneyOf(uncharged, currency),
  };
}

function windowShown({ usedBefore, usedAfter, limit, resetAt }: ReceiptWindow) {
  return {
    usage_percent_before: percentOf(usedBefore, limit),
    usage_percent_after: usedAfter === null ? null : percentOf(usedAfter, limit),
    reset_at: resetAt.toISOString(),
  };
}

/** The receipt of a refused request: it used nothing, so it has no price and no windows. */
export function refusedShown(refused: RefusedRequest, currency: Currency): RequestReceipt {
  const at = refused.refusedAt.toISOString();
  return {
    object: "service.request",
    id: refused.requestId,
    operation: refused.operation,
    model: refused.model,
    stream: refused.stream,
    key_id: refused.keyId,
    person_id: refused.personId,
    created_at: at,
    ended_at: at,
    outcome: "refused",
    stopped_by: null,
    error_code: refused.errorCode,
    limited_by: refused.limit?.limitedBy ?? null,
    limited_models: refused.limit?.models ?? null,
    attempts: null,
    continued: false,
    recovered: false,
    settled_late_at: null,
    detached: false,
    replay_of: null,
    input_count: null,
    usage: usageShown(noUsage, 0),
    prices: null,
    cost: costShown({ held: 0, charged: 0, uncharged: 0 }, currency),
    billing_source: null,
    windows: null,
  };
}

function usageShown(usage: Usage, searches: number): RequestReceipt["usage"] {
  return {
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
    searches,
    source: usage.source,
  };
}

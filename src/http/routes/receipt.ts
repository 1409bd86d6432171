/** GET /v1/service/requests/{id}: what one request of the calling organization used and cost. It names no upstream. */
import { percentOf } from "../../admission/windows.ts";
import { Fault } from "../../inference/fault.ts";
import { encodeFault } from "../../protocol/openai-chat/fault.ts";
import { uuidOf } from "../../store/ids.ts";
import type { Receipt, ReceiptWindow } from "../../store/ledger.ts";
import { admitted } from "../admitted.ts";
import type { RequestReceipt } from "../contract/receipt.ts";
import { type Route, routeNotFound } from "../door.ts";
import type { House } from "../house.ts";
import { json } from "../json.ts";

const prefix = "/v1/service/requests/";

export function receiptRoute(house: House): Route {
  return {
    path: `${prefix}{id}`,
    methods: {
      async GET(call) {
        const principal = await admitted(house, call, "usage:read");
        const id = new URL(call.request.url).pathname.slice(prefix.length);
        if (id === "" || id.includes("/")) throw routeNotFound();
        const receipt = uuidOf(id, "req_") ? await house.ledger.receipt(principal.organization.id, id) : null;
        if (receipt) return json(200, shown(receipt));
        throw new Fault(
          "request_not_found",
          "There is no such request in this organization. Only authenticated inference requests have receipts.",
          { param: "id" },
        );
      },
    },
    faultBody: encodeFault,
  };
}

function shown(receipt: Receipt): RequestReceipt {
  const { usage, prices, units, windows } = receipt;
  return {
    object: "service.request",
    id: receipt.requestId,
    operation: receipt.operation,
    model: receipt.model,
    stream: receipt.stream,
    key_id: receipt.keyId,
    created_at: receipt.createdAt.toISOString(),
    ended_at: receipt.endedAt?.toISOString() ?? null,
    outcome: receipt.outcome,
    stopped_by: receipt.stoppedBy,
    error_code: receipt.errorCode,
    recovered: receipt.recovered,
    usage: {
      input_tokens: usage.inputTokens,
      cached_input_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      output_tokens: usage.outputTokens,
      reasoning_tokens: usage.reasoningTokens,
      source: usage.source,
    },
    prices: {
      input: prices.input,
      cached_input: prices.cachedInput,
      cache_write: prices.cacheWrite,
      output: prices.output,
    },
    units: { held: units.held, charged: units.charged, uncharged: units.uncharged },
    billing_source: receipt.source,
    windows: windows && {
      session: windowShown(windows.session),
      week: windowShown(windows.week),
      month: windowShown(windows.month),
    },
  };
}

function windowShown({ usedBefore, usedAfter, limit, resetAt }: ReceiptWindow) {
  return {
    usage_percent_before: percentOf(usedBefore, limit),
    usage_percent_after: usedAfter === null ? null : percentOf(usedAfter, limit),
    reset_at: resetAt.toISOString(),
  };
}

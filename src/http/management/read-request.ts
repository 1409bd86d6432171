/** A request as another node answered it, as the verb's result: records.ts the other way round. Pure. */
import type { FoundRequest } from "../../management/usage.ts";
import type { Receipt } from "../../store/ledger.ts";
import type { RefusedRequest } from "../../store/refused.ts";

type Same =
  | "keyId"
  | "operation"
  | "createdAt"
  | "endedAt"
  | "stoppedBy"
  | "errorCode"
  | "recovered"
  | "usage"
  | "units";

export interface ReadRequest extends Pick<Receipt, Same> {
  id: string;
  model: string | null;
  stream: boolean | null;
  outcome: Receipt["outcome"] | "refused";
  prices: Receipt["prices"] | null;
  billingSource: Receipt["source"] | null;
  windows: Receipt["windows"] | Record<"session" | "week" | "month", ReadWindow> | null;
  organizationId: string;
  organization: string | null;
  route: (NonNullable<Receipt["route"]> & { tried: NonNullable<NonNullable<Receipt["route"]>["tried"]> }) | null;
  reportRejected: Receipt["reportRejected"];
}

interface ReadWindow {
  startsAt: Date;
  resetAt: Date;
  limit: number | null;
  usedBefore: number;
  usedAfter: number | null;
}

export function readRequest(value: ReadRequest): FoundRequest {
  const organization = value.organization === null ? null : { slug: value.organization };
  if (value.outcome === "refused") return { organization, receipt: null, refused: refusedOf(value) };
  const { outcome } = value;
  return { organization, receipt: receiptOf(value, outcome), refused: null };
}

function receiptOf(value: ReadRequest, outcome: Receipt["outcome"]): Receipt {
  const { keyId, operation, createdAt, endedAt, stoppedBy, errorCode, recovered, usage, units, windows, route } = value;
  return {
    ...{ keyId, operation, createdAt, endedAt, outcome, stoppedBy, errorCode, recovered, usage, units },
    requestId: value.id,
    organizationId: value.organizationId,
    model: value.model!,
    stream: value.stream!,
    prices: value.prices!,
    source: value.billingSource!,
    windows: windows && {
      session: windowOf(windows.session),
      week: windowOf(windows.week),
      month: windowOf(windows.month),
    },
    route: route && {
      ...{ upstream: route.upstream, attempts: route.attempts, firstPart_ms: route.firstPart_ms },
      ...(route.tried.length > 0 ? { tried: route.tried } : {}),
    },
    reportRejected: value.reportRejected,
  };
}

function windowOf({ startsAt, resetAt, limit, usedBefore, usedAfter }: ReadWindow) {
  return { startsAt, resetAt, limit, usedBefore, usedAfter };
}

function refusedOf(value: ReadRequest): RefusedRequest {
  const { id, organizationId, keyId, operation, model, stream, errorCode, createdAt } = value;
  return {
    requestId: id,
    organizationId,
    keyId,
    operation,
    model,
    stream,
    errorCode: errorCode!,
    refusedAt: createdAt,
  };
}

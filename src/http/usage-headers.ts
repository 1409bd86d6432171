/** Account state of successful inference responses, as the grant saw it: this request not yet counted (decisions.md). */
import { percentOf } from "../admission/windows.ts";
import { type BillingSource, type WindowReadings, windowKinds } from "../store/ledger.ts";

export function usageHeaders(windows: WindowReadings, source: BillingSource): Record<string, string> {
  const headers: Record<string, string> = { "x-service-usage-source": source };
  for (const kind of windowKinds) {
    const { used, limit, resetAt } = windows[kind];
    headers[`x-service-usage-${kind}-percent`] = String(percentOf(used, limit));
    headers[`x-service-usage-${kind}-reset-at`] = resetAt.toISOString();
  }
  return headers;
}

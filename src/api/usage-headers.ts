/** The windows as the grant saw them, without this request: docs/design/service.md, Identifiers and headers. */
import { windowHeaders } from "../admission/refusal.ts";
import type { BillingSource, WindowReadings } from "../store/ledger.ts";

export function usageHeaders(windows: WindowReadings, source: BillingSource): Record<string, string> {
  return { "x-service-usage-source": source, ...windowHeaders(windows) };
}

/**
 * An inference request that failed: where it was refused after its caller was known, that is counted, and has a receipt
 * that says so (docs/design/usage.md, Receipts). Nothing waits for that. What ends later has its record in the ledger.
 */

import type { Call } from "../http/call.ts";
import type { Fault } from "../inference/fault.ts";
import type { Operation } from "../store/ledger.ts";
import type { Dependencies } from "./dependencies.ts";

export function refused(dependencies: Dependencies, call: Call, operation: Operation, { code, status }: Fault): void {
  const { source, organization, key, model, stream } = call.notes;
  if (source !== undefined || organization === undefined || key === undefined) return;
  dependencies.metrics.decision("refused", code);
  // What fails for want of a store, or by a defect, was not refused; the ledger knows what it was asked.
  if (status >= 500) return;
  dependencies.refused.add({
    requestId: call.requestId,
    organizationId: organization,
    keyId: key,
    operation,
    model: model ?? null,
    stream: stream ?? null,
    errorCode: code,
  });
}

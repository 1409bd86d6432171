/**
 * Records an inference request that failed. If it was refused after its caller was known, it is counted and has a
 * receipt that says so (docs/design/usage.md, Receipts), which nothing waits for. A later end has its record in the
 * ledger.
 */

import type { Call } from "../http/call.ts";
import type { Fault } from "../inference/fault.ts";
import type { Operation } from "../store/ledger.ts";
import type { Dependencies } from "./dependencies.ts";

export function refused(dependencies: Dependencies, call: Call, operation: Operation, { code, status }: Fault): void {
  const { source, organization, key, model, stream } = call.notes;
  if (source !== undefined || organization === undefined || key === undefined) return;
  dependencies.metrics.decision("refused", code);
  // A request that failed by a defect or for want of a store was not refused; the ledger knows about it.
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

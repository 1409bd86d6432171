/**
 * Records the refusal of an inference request after its caller was authenticated: in the metrics, and in a receipt
 * (docs/design/usage.md, Receipts), without waiting for it. Once a request is admitted, the ledger has its record
 * instead.
 */

import type { Call } from "../http/call.ts";
import type { Fault } from "../inference/fault.ts";
import { unquoted } from "../protocol/engine-text.ts";
import type { Operation } from "../store/ledger.ts";
import type { Dependencies } from "./dependencies.ts";

export function refused(dependencies: Dependencies, call: Call, operation: Operation, fault: Fault): void {
  const { code, status, message } = fault;
  const { limit } = fault.details;
  const { source, organization, key, model, stream } = call.notes;
  if (source !== undefined || organization === undefined || key === undefined) return;
  dependencies.metrics.decision("refused", code);
  // A failure by a defect or an outage (5xx) is no refusal.
  if (status >= 500) return;
  dependencies.refused.add({
    requestId: call.requestId,
    organizationId: organization,
    keyId: key,
    operation,
    model: model ?? null,
    stream: stream ?? null,
    errorCode: code,
    // Only the refusal of a body can quote the body.
    message: status === 400 ? unquoted(message) : message,
    ...(limit && { limit }),
  });
}

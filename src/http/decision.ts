/**
 * The decision over an inference request, counted; and where it was refused after its caller was known, a receipt that
 * says so (docs/design/usage.md, Receipts). Nothing waits for that. What ends later has its record in the ledger.
 */
import { asFault } from "../inference/fault.ts";
import type { Operation } from "../store/ledger.ts";
import type { Call } from "./call.ts";
import type { Dependencies } from "./dependencies.ts";

export async function decided<T>(
  dependencies: Dependencies,
  call: Call,
  operation: Operation,
  work: () => Promise<T>,
): Promise<T> {
  const { notes } = call;
  try {
    return await work();
  } catch (thrown) {
    const { code, status } = asFault(thrown);
    const { organization, key } = notes;
    if (notes.source === undefined && organization !== undefined && key !== undefined) {
      dependencies.metrics.decision("refused", code);
      // What fails for want of a store, or by a defect, was not refused; the ledger knows what it was asked.
      if (status < 500) {
        dependencies.refused.add({
          requestId: call.requestId,
          organizationId: organization,
          keyId: key,
          operation,
          model: notes.model ?? null,
          stream: notes.stream ?? null,
          errorCode: code,
        });
      }
    }
    throw thrown;
  }
}

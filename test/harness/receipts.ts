/** Reads receipts of requests as a client does. */
import type { RequestReceipt } from "../../src/features/receipts/receipt-shape.ts";
import type { Sluice } from "./sluice.ts";
import { until } from "./until.ts";

export const requestIdOf = ({ headers }: Response) => headers.get("x-service-request-id")!;

/** Waits until the request has ended, and returns its receipt. Uses the service's key unless another one is given. */
export async function endedReceipt(
  { fetch }: Pick<Sluice, "fetch">,
  id: string | undefined,
  { deadline_ms = 15_000, ...init }: { deadline_ms?: number; key?: string } = {},
): Promise<RequestReceipt> {
  let receipt: RequestReceipt | null = null;
  const isEnded = async () => {
    const response = await fetch(`/v1/service/requests/${id}`, init);
    receipt = response.status === 200 ? ((await response.json()) as RequestReceipt) : null;
    return receipt !== null && receipt.outcome !== "running";
  };
  await until(isEnded, deadline_ms, `the receipt of ${id}`);
  return receipt!;
}

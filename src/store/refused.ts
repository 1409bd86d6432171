/**
 * Inference requests that were refused after their caller was known: they cost nothing and stand in no sum, but their ids
 * have receipts too (docs/design/usage.md, Receipts). The store keeps them for 30 days at least.
 */
import type { Operation } from "./ledger.ts";

export interface RefusedRequest {
  requestId: string;
  organizationId: string;
  keyId: string;
  operation: Operation;
  /** Public model id; null: the body was refused before it was understood, or names no model that there is. */
  model: string | null;
  stream: boolean | null;
  errorCode: string;
  refusedAt: Date;
}

/** One that is to be kept, and how long ago it was refused: the store's clock says when that was. */
export interface NewRefused extends Omit<RefusedRequest, "refusedAt"> {
  age_ms: number;
}

/** The refusals of an organization that are kept from each second. */
export const refused_per_second_max = 10;

export interface RefusedRequests {
  /** Keeps those that there is room for. Sent twice, they count once. */
  keep(requests: readonly NewRefused[]): Promise<void>;
  find(requestId: string): Promise<RefusedRequest | null>;
  /** Drops some of those that need be kept no longer; answers whether there may be more. */
  forget(): Promise<boolean>;
}

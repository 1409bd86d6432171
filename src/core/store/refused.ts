/**
 * Inference requests that were refused after their caller was authenticated. They cost nothing and count in no total,
 * but have receipts like other requests (docs/design/usage.md, Receipts). The store keeps them for at least 30 days.
 */
import type { LimitMet } from "../inference/fault.ts";
import type { Operation } from "./ledger.ts";

export interface RefusedRequest {
  requestId: string;
  organizationId: string;
  keyId: string;
  /** The person who owns the key; null: no person owns it. */
  personId: string | null;
  operation: Operation;
  /** The public model id; null if the body was refused before it was understood, or names an unknown model. */
  model: string | null;
  stream: boolean | null;
  errorCode: string;
  /** The message that the client read, without quotations of the request's content. */
  message: string;
  limit?: LimitMet;
  refusedAt: Date;
}

/** A refusal to store, with its age, from which the store's clock computes when it happened. */
export interface NewRefused extends Omit<RefusedRequest, "refusedAt" | "personId"> {
  age_ms: number;
}

export const refused_per_second_max = 10;

export interface RefusedRequests {
  /** Stores the refusals for which there is room. A refusal that is sent twice is stored once. */
  keep(requests: readonly NewRefused[]): Promise<void>;
  find(requestId: string): Promise<RefusedRequest | null>;
  personOf(keyId: string): Promise<string | null>;
  /** Deletes some of the expired refusals. Returns whether there may be more. */
  forget(): Promise<boolean>;
}

/**
 * Inference requests that were refused after their caller was authenticated. They cost nothing and are in no sum, but their
 * ids have receipts too (docs/design/usage.md, Receipts). The store keeps them for at least 30 days.
 */
import type { LimitMet } from "../inference/fault.ts";
import type { Operation } from "./ledger.ts";

export interface RefusedRequest {
  requestId: string;
  organizationId: string;
  keyId: string;
  /** The person whose key it is. */
  personId: string | null;
  operation: Operation;
  /** The public model id; null if the body was refused before it was understood, or names an unknown model. */
  model: string | null;
  stream: boolean | null;
  errorCode: string;
  /** The message that the client read, without what it quotes of the request's content. */
  message: string;
  /** Absent: it was no limit. */
  limit?: LimitMet;
  refusedAt: Date;
}

/** A refusal to keep, and how long ago it happened: the store's clock decides when that was. */
export interface NewRefused extends Omit<RefusedRequest, "refusedAt" | "personId"> {
  age_ms: number;
}

/** The refusals of an organization that are kept for each second. */
export const refused_per_second_max = 10;

export interface RefusedRequests {
  /** Keeps those for which there is room. Sent twice, they count once. */
  keep(requests: readonly NewRefused[]): Promise<void>;
  find(requestId: string): Promise<RefusedRequest | null>;
  /** The person whose key it is; null: it is nobody's. */
  personOf(keyId: string): Promise<string | null>;
  /** Deletes some that have expired. Returns whether there may be more. */
  forget(): Promise<boolean>;
}

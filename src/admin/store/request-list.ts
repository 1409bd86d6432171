/** Inference requests as a list, the newest first: running, ended and refused requests. */
import type { Operation } from "../../core/store/ledger.ts";

export const listedOutcomes = ["running", "completed", "cancelled", "failed", "refused"] as const;
export type ListedOutcome = (typeof listedOutcomes)[number];

export interface RequestQuery {
  organizationId?: string | undefined;
  keyId?: string | undefined;
  /** Only requests with a key of this person. */
  personId?: string | undefined;
  teamId?: string | undefined;
  model?: string | undefined;
  operation?: Operation | undefined;
  outcome?: ListedOutcome | undefined;
  upstream?: string | undefined;
  /**
   * Only requests that were admitted or refused at `from` or later, and before `to`; reports have the same half-open
   * span.
   */
  from?: Date | undefined;
  to?: Date | undefined;
  /** Only requests that are older than the request with this id. */
  before?: string | undefined;
  limit: number;
}

export interface ListedRequest {
  requestId: string;
  organizationId: string;
  /** The key of the request; null if the key is no longer in the records. */
  keyId: string | null;
  /** The person to whom the key belongs. */
  personId: string | null;
  /** The team of the key when the request was made. */
  teamId: string | null;
  /**
   * The names of the key, the person and the team; for a person without a name, the e-mail address. Null: it no longer
   * exists, or has no name.
   */
  key: string | null;
  person: string | null;
  team: string | null;
  operation: Operation;
  /** The requested model; null: the request was refused before its model was known. */
  model: string | null;
  stream: boolean | null;
  outcome: ListedOutcome;
  errorCode: string | null;
  stoppedBy: string | null;
  recovered: boolean;
  /** The upstream that answered last. Null: no upstream was asked, or the request still runs. */
  upstream: string | null;
  attempts: number | null;
  firstPart_ms: number | null;
  createdAt: Date;
  endedAt: Date | null;
  inputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  reasoningTokens: number;
  /** `held`: the amount that is reserved for the request while it runs; `charged` is 0 until the request ends. */
  held: number;
  charged: number;
  uncharged: number;
}

export interface RequestPage {
  /**
   * At most `limit` requests. Because a page reads a bounded number of rows, there may be fewer, or none, even if more
   * requests follow.
   */
  items: ListedRequest[];
  /** The id to give as `before` for the next page. Null: this is the last page. */
  next: string | null;
}

export interface RequestList {
  listRequests(query: RequestQuery): Promise<RequestPage>;
}

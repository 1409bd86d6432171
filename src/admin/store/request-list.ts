/** Inference requests as a list, the newest first: those that run, those that ended, and those that were refused. */
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
  /** When it was admitted, or refused: `from` and later, and before `to`. A report has the same spans. */
  from?: Date | undefined;
  to?: Date | undefined;
  /** Older than the request with this id. */
  before?: string | undefined;
  limit: number;
}

export interface ListedRequest {
  requestId: string;
  organizationId: string;
  /** Null for a key that is gone from the record. */
  keyId: string | null;
  /** The person whose key it is. */
  personId: string | null;
  /** The team that the key was in. */
  teamId: string | null;
  /** Their names; a person's is the e-mail address where there is no name. Null: it is gone, or has none. */
  key: string | null;
  person: string | null;
  team: string | null;
  operation: Operation;
  /** Null: refused before it was understood. */
  model: string | null;
  stream: boolean | null;
  outcome: ListedOutcome;
  errorCode: string | null;
  stoppedBy: string | null;
  recovered: boolean;
  /** The upstream that answered last. Null: none was asked, or it runs. */
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
  /** While it runs, `charged` is 0 and `held` is its hold. */
  held: number;
  charged: number;
  uncharged: number;
}

export interface RequestPage {
  /** At most `limit`. There may be fewer, or none, though more follow: a page reads a bounded number of rows. */
  items: ListedRequest[];
  /** The id before which the list goes on. Null: this is its end. */
  next: string | null;
}

export interface RequestList {
  listRequests(query: RequestQuery): Promise<RequestPage>;
}

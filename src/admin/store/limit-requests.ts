/**
 * LIMIT REQUESTS: people whom a limit stopped ask for more (docs/limits.md, Asking for more). An approval makes a
 * temporary increase of the limit (`limits.ts`). Implemented by `postgres`.
 */
import type { Budget } from "../../core/store/budget.ts";
import type { Actor } from "../../core/store/directory.ts";
import type { LimitSubject, LimitsChange, SubjectLimits } from "./limits.ts";
import type { Page, PageOf } from "./page.ts";

export const limitRequestStates = ["open", "approved", "declined", "withdrawn", "expired"] as const;
export type LimitRequestState = (typeof limitRequestStates)[number];

/** The limit for which somebody asks for more. */
export interface AskedLimit extends Pick<LimitSubject, "subject" | "organizationId"> {
  subjectId: string;
  /** The pattern of the models to which the limit applies; "": all models. */
  models: string;
  limit: keyof Budget;
}

export interface NewLimitRequest extends AskedLimit {
  /** `lreq_` + UUIDv7 hex. */
  id: string;
  personId: string;
  /** The value of the limit at the time of the limit request, in the limit's unit (nanos for money). */
  value: number;
  /** The requested value; null: the administrator who decides chooses it. */
  asked: number | null;
  message: string;
  /** The refused inference request that led to the limit request; null: the person named none. */
  requestId: string | null;
}

export interface StoredLimitRequest extends NewLimitRequest {
  organization: string;
  /** The name, else the e-mail address, of the person who asks; null: the person's identity was erased. */
  person: string | null;
  /** The name of the subject, for an organization its slug; null: the subject no longer exists, or has no name. */
  name: string | null;
  createdAt: Date;
  expiresAt: Date;
  state: LimitRequestState;
  decidedAt: Date | null;
  decidedBy: Actor | null;
  /** The granted value, and the instant at which it ends; null: nothing was granted. */
  granted: number | null;
  until: Date | null;
  /** The reason why the request was declined. */
  reason: string | null;
}

/** The most limit requests that a person can have open in an organization. */
export const openLimitRequests_max = 3;
/**
 * The most limit requests of a person in an organization within a day. They are bounded because each one is sent to
 * every destination of notices.
 */
export const limitRequestsADay_max = 20;
export const limitRequest_days = 7;
/** The days for which a limit request is kept after it is no longer open. */
export const limitRequestKept_days = 400;

export interface LimitRequestQuery extends Page {
  organizationId?: string | undefined;
  personId?: string | undefined;
  state?: LimitRequestState | undefined;
}

/** An approval: the granted value, its end, and the change of limits that grants it. */
export interface Approval {
  actor: Actor;
  granted: number;
  until: Date;
  patch(now: SubjectLimits, organization: SubjectLimits): LimitsChange;
  told: Told;
}

/** The details of the mail that tells the decision to the person who asked; null: the service sends no mail. */
type Told = Record<string, unknown> | null;

/**
 * The reason why a request cannot be decided: it is no longer open (`not_open`), its subject no longer exists (`gone`),
 * or its organization is closed.
 */
type Undecided = "not_open" | "gone" | "closed";

export interface LimitRequestAdministration {
  /**
   * Opens a request. `details`: the details of the notice that the organization gets. `too_many`: too many requests of
   * this person are open. `too_often`: the person has made too many requests within a day. `already`: a request for the
   * same limit is open.
   */
  openLimitRequest(
    wanted: NewLimitRequest,
    act: { actor: Actor; details: Record<string, unknown> },
  ): Promise<StoredLimitRequest | "too_many" | "too_often" | "already">;
  findLimitRequest(id: string): Promise<StoredLimitRequest | null>;
  /** Pages through the requests in the order in which they were made. */
  pageLimitRequests(query: LimitRequestQuery): Promise<PageOf<StoredLimitRequest>>;
  /** Raises the limit and closes the request in one transaction. */
  approveLimitRequest(request: StoredLimitRequest, approval: Approval): Promise<StoredLimitRequest | Undecided>;
  /** Closes the request without a change of limits. `reason`: the reason why it is declined. */
  closeLimitRequest(
    id: string,
    closing: { actor: Actor; state: "declined" | "withdrawn"; reason: string | null; told: Told },
  ): Promise<StoredLimitRequest | Exclude<Undecided, "closed">>;
}

/**
 * Sliding rates: a request and its tokens count for the 60 seconds after the request. The store's clock decides, in
 * whole milliseconds, and intervals are half-open: what was taken at t counts until just before t + 60 s. Rules:
 * docs/design/usage.md, Sliding limits; docs/design/metering.md, Sliding limits in stores.
 */

import { type Limited, matchesModel } from "./budget.ts";

/** Limits per minute. Null means no limit. */
export interface RateLimits {
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
}

/**
 * A subject whose limits apply to a request: the request's organization, its key, the key's person or team; or one of
 * these with its limits for the request's model.
 */
export interface RateSubject extends Limited {
  /** The id of the subject, or of its limits for models. */
  id: string;
  limits: RateLimits;
}

export interface RateRequest {
  organizationId: string;
  requestId: string;
  /**
   * The subjects, at least one, the narrowest first: key, person, team, organization. A request is counted for all of
   * them or for none.
   */
  subjects: readonly RateSubject[];
  /**
   * `tokens`: the number that the request is expected to take, which is corrected when the request ends. `tokens_min`:
   * the number with which it may start. If there is room for a number in between, all of that room is taken.
   */
  tokens: number;
  tokens_min: number;
}

/** The state of one limit after a decision, with this request if it was counted. */
export interface RateReading {
  limit: number;
  remaining: number;
  /** The time until the whole limit is free again, if no other request comes. */
  reset_ms: number;
}
/** For each limit, the reading of the subject with the least left. Null: no subject has such a limit. */
export interface RateReadings {
  requests: RateReading | null;
  tokens: RateReading | null;
}
export type RateLimitName = keyof RateReadings;

export type RateAnswer = RateTaken | RateRefused | RateHopeless;

export interface RateTaken {
  answer: "taken";
  readings: RateReadings;
  /**
   * Takes the request out of the counts, because it does not run after all. Called at most once. Never rejects, and
   * need not be waited for.
   */
  giveBack(): Promise<void>;
  /**
   * Reports the tokens that the request really took. Called at most once. Never rejects, and need not be waited for.
   */
  correct(tokens: number): Promise<void>;
}
/**
 * A refusal. If several subjects have no room, the refusal names the subject that will have room last; if several will
 * have room at the same time, the narrowest of them.
 */
export interface RateRefused extends Limited {
  answer: "refused";
  limit: RateLimitName;
  /** The reading of the limit that has no room. */
  reading: RateReading;
  /** The time until there is room for the request, if nothing more is taken: above 0, at most 60,000. */
  retry_ms: number;
  readings: RateReadings;
}
/**
 * A refusal that no waiting helps: even the fewest tokens of the request (`tokens_min`) exceed a whole limit. The
 * refusal names the smallest limit that they exceed; if several limits are equal, that of the narrowest subject.
 */
export interface RateHopeless extends Limited {
  answer: "never";
  tokensPerMinute: number;
}

export interface Rates {
  /**
   * Counts a request, or refuses it and counts nothing. Rejects if the store does not answer; it is then unknown
   * whether the request was counted.
   */
  take(request: RateRequest): Promise<RateAnswer>;
  /** Reads what each subject has left, in the order of the subjects, and counts nothing. Rejects as `take` does. */
  read(organizationId: string, subjects: readonly RateSubject[]): Promise<RateReadings[]>;
  /** Sends the corrections that still wait, and closes. */
  close(): Promise<void>;
}

export const minute_ms = 60_000;

/**
 * The stored value of a limit that is switched off: then there is no limit, and none is inherited. A stored null means
 * that the limit is inherited.
 */
export const not_limited = 0;

/** The higher of a limit and its raise (a temporary increase). A limit of null (none) stays null. */
export function raisedTo(limit: number | null, raise: number | null | undefined): number | null {
  return limit !== null && raise != null && raise > limit ? raise : limit;
}

/**
 * The limit in force: the organization's own, else its plan's, or the raise (a temporary increase) if that is higher.
 */
export function overPlan(plan: number | null, own?: number | null, raise?: number | null): number | null {
  const base = own ?? plan;
  return raisedTo(base === not_limited ? null : base, raise);
}

/** An organization's own limits per minute, and the raise of them (a temporary increase). */
export interface RatesOverPlan {
  own: RateLimits;
  raise: RateLimits;
}

export function ratesOverPlan(plan: RateLimits, over?: RatesOverPlan | null): RateLimits {
  const inForce = (rate: keyof RateLimits) => overPlan(plan[rate], over?.own[rate], over?.raise[rate]);
  return { requestsPerMinute: inForce("requestsPerMinute"), tokensPerMinute: inForce("tokensPerMinute") };
}

/** A caller, with its limits per minute beside those of its plan. */
export interface RateCaller {
  readonly organization: { readonly id: string };
  /** The subjects other than the organization, for all models; the narrowest first. */
  readonly rates?: readonly RateSubject[];
  readonly overPlan?: RatesOverPlan | null;
}

/** The subjects (key, person, team, organization) whose limits count for a request, the narrowest first. */
export function rateSubjectsOf(
  plan: RateLimits,
  { organization, rates = none, overPlan }: RateCaller,
  { id, aliases = none }: { id: string; aliases?: readonly string[] },
): readonly RateSubject[] {
  const isIts = (models: string) => [id, ...aliases].some((name) => matchesModel(models, name));
  const own = rates.filter(({ models }) => models === undefined || isIts(models));
  const limits = ratesOverPlan(plan, overPlan);
  if (limits.requestsPerMinute === null && limits.tokensPerMinute === null) return own;
  return [...own, { limitedBy: "organization", id: organization.id, limits }];
}

const none: readonly never[] = [];

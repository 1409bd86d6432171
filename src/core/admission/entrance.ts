/**
 * Turns a request into a reservation, or throws the fault of its refusal. The request first takes from the sliding
 * rates (its limits per minute), which costs nothing if no rate limits it. Then the ledger alone decides, in its next
 * batch of commands. This file computes the command for the ledger.
 */
import { asFault, Fault } from "../inference/fault.ts";
import type { Model } from "../inference/model.ts";
import { type Currency, costOf, type MoneyWords, moneyWords } from "../inference/money.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { noUsage } from "../inference/usage.ts";
import type { Admit, AdmitAnswer, Operation, RequestFacts, SettleAnswer, UsageLimits } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import {
  type RateAnswer,
  type RateCaller,
  type RateRequest,
  type Rates,
  type RateTaken,
  rateSubjectsOf,
} from "../store/rates.ts";
import type { Clock } from "../time/clock.ts";
import { starts } from "../time/turns.ts";
import { Ample, type HoldPlan, holdFor } from "./allowance.ts";
import type { Batcher } from "./batcher.ts";
import { limitHeaders, wordsFor } from "./limit-words.ts";
import { type LimitChanges, noLimitChanges } from "./limits-in-force.ts";
import { admissionRefusal, beyondWholeRate, rateLimitExceeded } from "./refusal.ts";
import { HeldReservation, type Reservation } from "./reservation.ts";

export interface EntranceSettings {
  lease_ms: number;
  checkpoint_ms: number;
  /** The longest wait for a grant, asked for each admission. */
  grant_ms(): number;
  currency: Currency;
}

export interface Entry {
  requestId: string;
  principal: RateCaller & {
    readonly key: { readonly id: string; readonly name?: string };
    readonly organization: { readonly id: string; readonly name?: string };
    readonly person?: { readonly id: string } | null;
    /** The names of the key's team and person, for the words of a refusal. */
    readonly names?: { readonly team: string | null; readonly person: string | null } | undefined;
  };
  operation: Operation;
  /** Whether the request has an idempotency key. */
  isRepeatable?: boolean;
  request: InferenceRequest;
  model: Model;
  /** The plan under which the request is admitted. */
  plan: Plan;
  /** Upper estimate of the whole prompt. */
  inputTokens: number;
}

export interface Admitting {
  /**
   * Returns the organization's current plan, which is the same object until the plan changes. Absent: the plan does not
   * change.
   */
  planNow?: (() => Plan) | undefined;
  /**
   * Called at once if the limits have so much room that an engine may be asked while the ledger decides (allowance.ts).
   * `isSlight`: the same as `isSlight` of a `Reservation`.
   */
  ahead?(isSlight: boolean): void;
}

export interface Entrance {
  /**
   * Admits a request, and resolves when the grant is durable. Throws the Fault of a refusal; then nothing is held, and
   * nothing has to be settled.
   */
  enter(entry: Entry, admitting?: Admitting): Promise<Reservation>;
}

export interface EntranceParts {
  batcher: Batcher;
  clock: Clock;
  rates?: Rates | undefined;
  /** The changes of limits that this node knows of. Absent: only plans change. */
  changes?: LimitChanges | undefined;
  settled?: ((answer: SettleAnswer, requestId: string) => void) | undefined;
  /** Called with the ledger's answer to an admission, and the time it took; `error`: it did not answer in time. */
  waited?: ((answer: "granted" | "refused" | "error", ms: number) => void) | undefined;
}

export function entrance(parts: EntranceParts, settings: EntranceSettings): Entrance & { holds(): number } {
  const { batcher, clock, rates, changes = noLimitChanges } = parts;
  let holds = 0;
  const ample = new Ample(() => clock.now_ms());
  const money = moneyWords(settings.currency);
  /**
   * One answer of a store may let many requests continue, so these start a few at a time: docs/design/runtime.md,
   * Starts give way.
   */
  const counted = starts(clock);
  const decided = starts(clock);

  /**
   * Admits a request. The request first takes from the sliding rates. If the request is then not admitted, it gives
   * back the amount that it took.
   */
  async function enter(prepared: Entry, admitting: Admitting = {}): Promise<Reservation> {
    const hold = holdFor(prepared.inputTokens, prepared.model, prepared.request);
    const taken = rates ? await takenFrom(rates, withPlanInForce(prepared, admitting), hold, money) : null;
    try {
      if (taken) await counted();
      return await reserved(withPlanInForce(prepared, admitting), admitting, hold, taken);
    } catch (refused) {
      void taken?.giveBack();
      throw refused;
    }
  }

  async function reserved(
    entry: Entry,
    { planNow, ahead }: Admitting,
    hold: HoldPlan,
    taken: RateTaken | null,
  ): Promise<Reservation> {
    const { model, plan, request } = entry;
    const facts: RequestFacts = {
      requestId: entry.requestId,
      organizationId: entry.principal.organization.id,
      keyId: entry.principal.key.id,
      operation: entry.operation,
      model: model.id,
      stream: request.stream,
      prices: model.prices,
      ...(request.passed?.makesText === false && { inputs: request.passed.inputs }),
      ...(entry.isRepeatable && { isRepeatable: true }),
    };
    const { inputNanos, outputTokens, outputTokens_min } = hold;
    const { lease_ms, checkpoint_ms } = settings;
    const admit: Admit = {
      verb: "admit",
      ...facts,
      ...(model.aliases && { aliases: model.aliases }),
      limits: plan,
      inputNanos,
      outputTokens,
      outputTokens_min,
      lease_ms,
    };
    const { edition } = changes;
    const sentAt_ms = clock.now_ms();
    const granting = granted(admit, facts, sentAt_ms);
    const nanosWanted = inputNanos + costOf(outputTokens, model.prices.output);
    const { organizationId, keyId } = facts;
    const question = { organizationId, keyId, model: model.id, plan, nanos: nanosWanted, running: holds };
    const isSlight = () => !request.stream && outputTokens === hold.outputTokensCap && ample.isSlight(question);
    if (ample.isAmple(question)) askAhead(() => ahead?.(isSlight()));
    const answer = await granting;
    await decided();
    parts.waited?.(answer.answer === "granted" ? "granted" : "refused", clock.now_ms() - sentAt_ms);
    if (answer.answer !== "granted") {
      const least = inputNanos + costOf(outputTokens_min, model.prices.output);
      const refusal = admissionRefusal(answer, least, wordsFor(entry, money));
      const { limit: limited } = refusal.details;
      if (limited?.models !== undefined) ample.keyRefused(keyId, model.id);
      else if (limited && limited.limitedBy !== "organization") ample.keyRefused(keyId);
      else ample.forget(organizationId);
      throw refusal;
    }
    const { teamId } = answer;
    const { person } = entry.principal;
    const subjects = [organizationId, keyId, ...(teamId === undefined ? [] : [teamId]), ...(person ? [person.id] : [])];
    ample.granted(facts, answer);
    holds += 1;
    return new HeldReservation({
      batcher,
      clock,
      facts,
      plan,
      planNow,
      changes,
      edition,
      subjects,
      hold,
      grant: answer,
      isSlight: isSlight(),
      sentAt_ms,
      lease_ms,
      checkpoint_ms,
      taken,
      settled,
    });
  }

  /**
   * Called for each confirmed settlement. One function for all requests of the entrance: a closure for each request
   * would keep the data of its admission in memory until the request ends.
   */
  function settled(answer: SettleAnswer, requestId: string): void {
    holds -= 1;
    parts.settled?.(answer, requestId);
  }

  async function granted(admit: Admit, facts: RequestFacts, sentAt_ms: number): Promise<AdmitAnswer> {
    try {
      return await batcher.submit(admit, sentAt_ms + settings.grant_ms());
    } catch (error) {
      const fault = asFault(error);
      parts.waited?.("error", clock.now_ms() - sentAt_ms);
      ample.forget(admit.organizationId);
      giveUp(facts, admit.limits, fault);
      throw fault;
    }
  }

  /** Settles a request whose admission may still be carried out: the settlement ends or prevents the admission. */
  function giveUp(facts: RequestFacts, limits: UsageLimits, fault: Fault): void {
    const end = {
      usage: noUsage,
      nanos: 0,
      outcome: "failed",
      stoppedBy: null,
      errorCode: fault.code,
      route: null,
      reportRejected: null,
    } as const;
    batcher.submit({ verb: "settle", ...facts, limits, ...end }).catch(() => {});
  }

  return { enter, holds: () => holds };
}

/**
 * The request with the plan that is in force now. The plan may have changed while the request waited for an earlier
 * request with the same idempotency key, or for the store's answer about its rates.
 */
function withPlanInForce(prepared: Entry, { planNow }: Admitting): Entry {
  const plan = planNow?.() ?? prepared.plan;
  return plan === prepared.plan ? prepared : { ...prepared, plan };
}

function askAhead(ahead: () => void): void {
  try {
    ahead();
  } catch {
    // The engine is then asked after the grant, and throws the same error again.
  }
}

/**
 * Takes a request from the sliding rates; null if no rate limits it. Throws the Fault of a refusal, or
 * `storage_unavailable` (503) if no store can count.
 */
async function takenFrom(
  rates: Rates,
  entry: Entry,
  { outputTokens, outputTokens_min }: HoldPlan,
  money: MoneyWords,
): Promise<RateTaken | null> {
  const { principal, model } = entry;
  const subjects = rateSubjectsOf(entry.plan, principal, model);
  if (subjects.length === 0) return null;
  // `tokens` is all that the request will hold, and `tokens_min` the least with which a hold may start.
  const tokens_min = entry.inputTokens + outputTokens_min;
  const request: RateRequest = {
    organizationId: principal.organization.id,
    requestId: entry.requestId,
    tokens: entry.inputTokens + outputTokens,
    tokens_min,
    subjects,
  };
  let answer: RateAnswer;
  try {
    answer = await rates.take(request);
  } catch (cause) {
    throw new Fault(
      "storage_unavailable",
      "The usage store did not answer in time. Nothing was charged; please try again shortly.",
      { retryAfterSeconds: 5, cause },
    );
  }
  if (answer.answer === "taken") return answer;
  const words = wordsFor(entry, money);
  if (answer.answer === "never") throw beyondWholeRate(answer, tokens_min, words);
  const headers = limitHeaders(entry.operation, answer.readings, Date.now());
  throw rateLimitExceeded(answer, tokens_min, { words, headers });
}

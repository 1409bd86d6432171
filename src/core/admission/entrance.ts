/**
 * Turns a request into a reservation, or throws the fault of its refusal. The ledger alone decides, in the next batch;
 * this file computes the command.
 */
import { asFault, type Fault } from "../inference/fault.ts";
import type { Model } from "../inference/model.ts";
import { type Currency, costOf, moneyWords } from "../inference/money.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { noUsage } from "../inference/usage.ts";
import type { Admit, AdmitAnswer, Operation, RequestFacts, SettleAnswer } from "../store/ledger.ts";
import type { RatesOverPlan } from "../store/over-plan.ts";
import type { Plan } from "../store/plan.ts";
import type { RateReadings, RateSubject, RateTaken } from "../store/rates.ts";
import type { Clock } from "../time/clock.ts";
import { Ample } from "./ample.ts";
import type { Batcher } from "./batcher.ts";
import { FollowedLimits } from "./followed-limits.ts";
import { holdFor } from "./hold.ts";
import { type LimitChanges, noLimitChanges } from "./limit-changes.ts";
import { wordsFor } from "./limit-words.ts";
import { admissionRefusal } from "./refusal.ts";
import { HeldReservation, type Reservation } from "./reservation.ts";

export interface EntranceSettings {
  lease_ms: number;
  checkpoint_ms: number;
  /** How long an admission waits for its grant before it is refused with 503. Called for each admission. */
  grant_ms(): number;
  /** The currency in which refusals say what is left. */
  currency: Currency;
}

export interface Entry {
  requestId: string;
  /**
   * `rates`: the rate limits of the subjects other than the plan (team, person, key), for all models; the narrowest
   * first.
   */
  principal: {
    readonly key: { readonly id: string; readonly name?: string };
    readonly organization: { readonly id: string; readonly name?: string };
    readonly person?: { readonly id: string } | null;
    /** The names of the key's team and person, for the words of a refusal. */
    readonly names?: { readonly team: string | null; readonly person: string | null } | undefined;
    readonly rates?: readonly RateSubject[];
    readonly overPlan?: RatesOverPlan | null;
  };
  operation: Operation;
  /** Whether the request came with an idempotency key. */
  isRepeatable?: boolean;
  request: InferenceRequest;
  model: Model;
  /** The plan under which the request is admitted. */
  plan: Plan;
  /** Upper estimate of the whole prompt. */
  inputTokens: number;
  /** The headers of a refusal by the rates, in the protocol in use. */
  rateHeaders?(readings: RateReadings): Record<string, string>;
}

/** How a request is admitted. */
export interface Admitting {
  /**
   * The organization's plan at each later moment, the same object while nothing changed. Absent: it does not change.
   */
  planNow?: (() => Plan) | undefined;
  /** Called at once if there is so much room that an engine may be asked while the ledger decides (ample.ts). */
  ahead?(): void;
  /** The amount that the request took from sliding rates; null if none limits it. */
  taken?: RateTaken | null;
}

export interface Entrance {
  /**
   * Resolves when the grant is durable. Throws the Fault of a refusal; then nothing is held, and nothing has to be
   * settled.
   */
  enter(entry: Entry, admitting?: Admitting): Promise<Reservation>;
}

export interface CountedEntrance extends Entrance {
  /** The requests that hold nanos: granted, and their settlement not yet confirmed. */
  holds(): number;
}

export interface EntranceParts {
  batcher: Batcher;
  clock: Clock;
  /** The changes of limits that this node knows of. Absent: only plans change. */
  changes?: LimitChanges | undefined;
  /** Called for each settlement that the ledger has confirmed. */
  settled?: ((answer: SettleAnswer, requestId: string) => void) | undefined;
  /** Called with the ledger's answer to an admission, and the time it took; `error`: it did not answer in time. */
  waited?: ((answer: "granted" | "refused" | "error", ms: number) => void) | undefined;
}

export function entrance(parts: EntranceParts, settings: EntranceSettings): CountedEntrance {
  const { batcher, clock, changes = noLimitChanges } = parts;
  let holds = 0;
  const ample = new Ample(() => clock.now_ms());
  const money = moneyWords(settings.currency);

  async function enter(entry: Entry, { planNow, ahead, taken = null }: Admitting = {}): Promise<Reservation> {
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
    const hold = holdFor(entry.inputTokens, model, request);
    const { inputNanos, outputTokens, outputTokens_min } = hold;
    const { lease_ms, checkpoint_ms } = settings;
    const admit: Admit = {
      verb: "admit",
      ...facts,
      limits: plan,
      inputNanos,
      outputTokens,
      outputTokens_min,
      lease_ms,
    };
    const limits = new FollowedLimits(plan, lastKnown(planNow, plan), changes);
    const sentAt_ms = clock.now_ms();
    const granting = granted(admit, sentAt_ms);
    const nanosWanted = inputNanos + costOf(outputTokens, model.prices.output);
    const { organizationId, keyId } = facts;
    const question = { organizationId, keyId, model: model.id, plan, nanos: nanosWanted, running: holds };
    if (ample.isAmple(question)) askAhead(ahead);
    const answer = await granting;
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
    const { nanos, source, windows, at, teamId, subjects } = answer;
    const { person } = entry.principal;
    limits.countsIn([organizationId, keyId, ...(teamId === undefined ? [] : [teamId]), ...(person ? [person.id] : [])]);
    ample.granted(facts, answer);
    const grant = {
      nanos,
      outputTokens: answer.outputTokens,
      source,
      windows,
      at,
      ...(teamId !== undefined && { teamId }),
      ...(subjects !== undefined && { subjects }),
    };
    holds += 1;
    return new HeldReservation({
      batcher,
      clock,
      facts,
      limits,
      hold,
      grant,
      sentAt_ms,
      lease_ms,
      checkpoint_ms,
      taken,
      settled,
    });
  }

  /**
   * One function for all requests of the entrance: a closure of a request would keep all that it was admitted with
   * until its end.
   */
  function settled(answer: SettleAnswer, requestId: string): void {
    holds -= 1;
    parts.settled?.(answer, requestId);
  }

  async function granted(admit: Admit, sentAt_ms: number): Promise<AdmitAnswer> {
    try {
      return await batcher.submit(admit, sentAt_ms + settings.grant_ms());
    } catch (error) {
      const fault = asFault(error);
      parts.waited?.("error", clock.now_ms() - sentAt_ms);
      ample.forget(admit.organizationId);
      giveUp(admit, fault);
      throw fault;
    }
  }

  /** Settles a request whose admission may still be carried out: the settlement ends or prevents the admission. */
  function giveUp(admit: Admit, fault: Fault): void {
    const { requestId, organizationId, keyId, operation, model, stream, prices, limits } = admit;
    const facts: RequestFacts = { requestId, organizationId, keyId, operation, model, stream, prices };
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

/** If `ahead` throws, the engine is asked after the grant, and the error comes up again where the grant is settled. */
function askAhead(ahead: Admitting["ahead"]): void {
  try {
    ahead?.();
  } catch {
    // The error is thrown again when the request runs.
  }
}

/** `planNow` with the last plan that it gave wherever it throws, so that every settlement is reported. */
function lastKnown(planNow: Admitting["planNow"], plan: Plan): () => Plan {
  let last = plan;
  return () => {
    try {
      last = planNow?.() ?? plan;
    } catch {
      // A defect in `planNow`: the last known plan stays in force.
    }
    return last;
  };
}

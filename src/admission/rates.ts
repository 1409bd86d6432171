/**
 * Sliding rates before the entrance: a request takes from them first, gives back what it took when it is then not
 * admitted, and tells at its end what it came to. A plan without rates costs nothing here.
 */
import { Fault } from "../inference/fault.ts";
import { promptTokens } from "../inference/usage.ts";
import type { Plan } from "../store/plan.ts";
import {
  minute_ms,
  type RateAnswer,
  type RateLimitName,
  type RateReadings,
  type RateRefused,
  type RateRequest,
  type Rates,
  type RateTaken,
} from "../store/rates.ts";
import { counted, grouped } from "./amounts.ts";
import type { Entrance, Entry } from "./entrance.ts";
import { bookable, holdFor } from "./hold.ts";
import type { Reservation } from "./reservation.ts";

export interface RatedEntry extends Entry {
  /** The readings as headers of the protocol in use, for a refusal to carry. */
  rateHeaders?(readings: RateReadings): Record<string, string>;
}

export interface RatedReservation extends Reservation {
  readonly rates: RateReadings;
}

export interface RatedEntrance {
  /** As `Entrance.enter`; throws the Fault of a full rate before the ledger is asked. */
  enter(entry: RatedEntry): Promise<RatedReservation>;
}

export function ratedEntrance(entrance: Entrance, rates: Rates | null): RatedEntrance {
  return {
    async enter(entry) {
      const taken = rates ? await taking(rates, entry) : null;
      let reservation: Reservation;
      try {
        reservation = await entrance.enter(entry);
      } catch (refused) {
        void taken?.giveBack();
        throw refused;
      }
      return taken ? rated(reservation, taken) : { ...reservation, rates: unlimited };
    },
  };
}

const unlimited: RateReadings = Object.freeze({ requests: null, tokens: null });

function rated(reservation: Reservation, taken: RateTaken): RatedReservation {
  let told = false;
  return {
    ...reservation,
    rates: taken.readings,
    settle(settlement) {
      const confirmed = reservation.settle(settlement);
      const usage = bookable(settlement.usage);
      if (!told) void taken.correct(promptTokens(usage) + usage.outputTokens);
      told = true;
      return confirmed;
    },
  };
}

/** Null: the plan has no rates. Throws the Fault of a refusal, or 503 where no store can count. */
async function taking(rates: Rates, entry: RatedEntry): Promise<RateTaken | null> {
  const { requestsPerMinute, tokensPerMinute } = entry.plan;
  if (requestsPerMinute === null && tokensPerMinute === null) return null;
  const request: RateRequest = {
    organizationId: entry.principal.organization.id,
    requestId: entry.requestId,
    ...tokensOf(entry),
    limits: { requestsPerMinute, tokensPerMinute },
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
  if (answer.answer === "never") throw beyondWholeRate(answer.limit, request.tokens_min, entry.plan);
  throw rateLimitExceeded(answer, request.tokens_min, entry.rateHeaders?.(answer.readings) ?? {});
}

/** What a request may come to: its input and an output step, as it will be held; and the least that a hold begins with. */
function tokensOf({ inputTokens, model, request }: Entry): Pick<RateRequest, "tokens" | "tokens_min"> {
  const { outputTokens, outputTokens_min } = holdFor(inputTokens, model, request);
  return { tokens: inputTokens + outputTokens, tokens_min: inputTokens + outputTokens_min };
}

function rateLimitExceeded(refused: RateRefused, tokens_min: number, headers: Record<string, string>): Fault {
  const { limit: name, retry_ms, readings } = refused;
  const { limit, remaining } = readings[name] ?? { limit: 0, remaining: 0 };
  const seconds = Math.ceil(Math.min(minute_ms, Math.max(1, retry_ms)) / 1000);
  const whole = `organization's limit of ${minuteLimit(name, limit)}`;
  const problem =
    name === "tokens" && remaining > 0
      ? `This request needs at least ${counted(tokens_min, "token")}, but the ${whole} has ${grouped(remaining)} left.`
      : `The ${whole} is reached.`;
  return new Fault("rate_limit_exceeded", `${problem} Try again in ${seconds} s.`, {
    retryAfterSeconds: seconds,
    headers,
    body: { limited_by: "organization" },
  });
}

/** Waiting does not help: the request by itself is above the limit. */
function beyondWholeRate(name: RateLimitName, tokens_min: number, { requestsPerMinute, tokensPerMinute }: Plan): Fault {
  const needs = name === "tokens" ? counted(tokens_min, "token") : counted(1, "request");
  const limit = (name === "tokens" ? tokensPerMinute : requestsPerMinute) ?? 0;
  return new Fault(
    "rate_limit_exceeded",
    `This request needs at least ${needs}, more than the organization's whole limit of ${minuteLimit(name, limit)}. Send less input, or ask your administrator for a higher plan.`,
    { retryAfterSeconds: 60, headers: { "x-should-retry": "false" }, body: { limited_by: "organization" } },
  );
}

function minuteLimit(name: RateLimitName, limit: number): string {
  return `${counted(limit, name === "tokens" ? "token" : "request")} a minute`;
}

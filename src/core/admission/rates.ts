/**
 * Sliding rates, before the entrance: a request takes from them first, gives back what it took if it is then not
 * admitted, and corrects it at its end (reservation.ts). If neither the plan nor the key or its team has rates, this
 * costs nothing.
 */

import { counted, grouped } from "../inference/amounts.ts";
import { Fault } from "../inference/fault.ts";
import { type Currency, type MoneyWords, moneyWords } from "../inference/money.ts";
import { limitedOf, matchesModel } from "../store/budget.ts";
import { ratesOverPlan } from "../store/over-plan.ts";
import {
  minute_ms,
  type RateAnswer,
  type RateHopeless,
  type RateRefused,
  type RateRequest,
  type RateSubject,
  type Rates,
  type RateTaken,
} from "../store/rates.ts";
import type { Entrance, Entry } from "./entrance.ts";
import { holdFor } from "./hold.ts";
import { forModels, limitedShown, minuteLimit, type RefusalWords, subjectNamed, wordsFor } from "./limit-words.ts";
import { beyondWholeLimit } from "./whole-limit.ts";

export function ratedEntrance(entrance: Entrance, rates: Rates | null, currency: Currency): Entrance {
  const money = moneyWords(currency);
  return {
    async enter(entry, admitting) {
      const taken = rates ? await taking(rates, entry, money) : null;
      try {
        return await entrance.enter(entry, { ...admitting, taken });
      } catch (refused) {
        void taken?.giveBack();
        throw refused;
      }
    },
  };
}

/**
 * Takes from the rates; null if no rate limits the request. Throws the Fault of a refusal, or `storage_unavailable`
 * (503) if no store can count.
 */
async function taking(rates: Rates, entry: Entry, money: MoneyWords): Promise<RateTaken | null> {
  const subjects = subjectsOf(entry);
  if (subjects.length === 0) return null;
  const request: RateRequest = {
    organizationId: entry.principal.organization.id,
    requestId: entry.requestId,
    ...tokensOf(entry),
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
  if (answer.answer === "never") throw beyondWholeRate(answer, request.tokens_min, words);
  const headers = entry.rateHeaders?.(answer.readings) ?? {};
  throw rateLimitExceeded(answer, request.tokens_min, { words, headers });
}

/** The subjects whose limits count for the request, the narrowest first. */
function subjectsOf({ plan, principal, model }: Entry): readonly RateSubject[] {
  const own = principal.rates?.filter(({ models = model.id }) => matchesModel(models, model.id)) ?? none;
  const limits = ratesOverPlan(plan, principal.overPlan);
  if (limits.requestsPerMinute === null && limits.tokensPerMinute === null) return own;
  return [...own, { limitedBy: "organization", id: principal.organization.id, limits }];
}

const none: readonly RateSubject[] = [];

/**
 * The tokens that a request may need: its input and an output step, as much as it will hold; and the least with which a
 * hold starts.
 */
function tokensOf({ inputTokens, model, request }: Entry): Pick<RateRequest, "tokens" | "tokens_min"> {
  const { outputTokens, outputTokens_min } = holdFor(inputTokens, model, request);
  return { tokens: inputTokens + outputTokens, tokens_min: inputTokens + outputTokens_min };
}

interface Said {
  words: RefusalWords;
  headers: Record<string, string>;
}

function rateLimitExceeded(refused: RateRefused, tokens_min: number, { words, headers }: Said): Fault {
  const { limit: name, retry_ms, reading } = refused;
  const seconds = Math.ceil(Math.min(minute_ms, Math.max(1, retry_ms)) / 1000);
  const whole = `${subjectNamed(refused, words)}'s limit of ${minuteLimit(name, reading.limit)}${forModels(refused)}`;
  const problem =
    name === "tokens" && reading.remaining > 0
      ? `This request needs at least ${counted(tokens_min, "token")}, but the ${whole} has ${grouped(reading.remaining)} left.`
      : `The ${whole} is reached.`;
  const { limit, remaining } = reading;
  return new Fault("rate_limit_exceeded", `${problem} Try again in ${seconds} s.`, {
    retryAfterSeconds: seconds,
    headers,
    limit: {
      ...limitedOf(refused),
      name: `${name}_per_minute`,
      limit,
      used: limit - remaining,
      needed: name === "tokens" ? tokens_min : 1,
    },
    body: limitedShown(refused),
  });
}

function beyondWholeRate(hopeless: RateHopeless, needed: number, words: RefusalWords): Fault {
  const whole = { ...limitedOf(hopeless), limit: "tokens_per_minute", value: hopeless.tokensPerMinute } as const;
  return beyondWholeLimit(whole, needed, words);
}

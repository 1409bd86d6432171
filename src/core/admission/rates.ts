/** The faults of requests that exceed sliding rates, the limits per minute. Pure. */

import { Fault } from "../inference/fault.ts";
import { counted, grouped } from "../inference/money.ts";
import { limitedOf } from "../store/budget.ts";
import { minute_ms, type RateHopeless, type RateRefused } from "../store/rates.ts";
import { forModels, limitedShown, minuteLimit, type RefusalWords, subjectNamed } from "./limit-words.ts";
import { beyondWholeLimit } from "./whole-limit.ts";

interface Said {
  words: RefusalWords;
  headers: Record<string, string>;
}

export function rateLimitExceeded(refused: RateRefused, tokens_min: number, { words, headers }: Said): Fault {
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

export function beyondWholeRate(hopeless: RateHopeless, needed: number, words: RefusalWords): Fault {
  const whole = { ...limitedOf(hopeless), limit: "tokens_per_minute", value: hopeless.tokensPerMinute } as const;
  return beyondWholeLimit(whole, needed, words);
}

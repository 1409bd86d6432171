/**
 * Turns a refusal, of the ledger or by a sliding rate, into a fault. Its message says what is left, what the request
 * needs, when there will be room for the request, and what helps sooner. The message has the store's own numbers,
 * rounded for people. Rules: docs/design/errors-and-streams.md, Limits and their errors. Pure.
 */

import { asFault, Fault, type LimitMet } from "../inference/fault.ts";
import { counted, grouped, type MoneyWords, moneyOf, percentOf } from "../inference/money.ts";
import { type Limited, limitedOf } from "../store/budget.ts";
import {
  type AdmitAnswer,
  type ExtraReading,
  type Shortage,
  type WindowKind,
  type WindowReading,
  windowKinds,
} from "../store/ledger.ts";
import { minute_ms, type RateHopeless, type RateRefused } from "../store/rates.ts";
import { moment } from "../time/written.ts";
import {
  askAdvice,
  capitalized,
  forModels,
  limitedShown,
  minuteLimit,
  needs,
  type RefusalWords,
  spanNames,
  subjectNamed,
  windowHeaders,
} from "./limit-words.ts";
import { crowdedBy, extraAvailable, type Limiter, limiterOf, smallestBelow, type WholeLimit } from "./limited-by.ts";

/** The fault of a refused admission. `leastNanos`: the least that the request must hold to start. */
export function admissionRefusal(
  answer: Exclude<AdmitAnswer, { answer: "granted" }>,
  leastNanos: number,
  words: RefusalWords,
): Fault {
  switch (answer.answer) {
    case "concurrency":
      return concurrencyLimitExceeded(answer, words);
    case "exhausted": {
      const whole = smallestBelow(answer, leastNanos);
      if (whole) return beyondWholeLimit(whole, leastNanos, words);
      return exhausted(limiterOf(answer, leastNanos), leastNanos, { words, ...answer });
    }
    case "reserved":
      return usageReserved(limiterOf(answer, leastNanos), leastNanos, { words, ...answer });
    case "over":
    case "unknown":
      return asFault(new Error(`the ledger answered '${answer.answer}' to an admission`));
  }
}

export function rateLimitExceeded(
  refused: RateRefused,
  tokens_min: number,
  { words, headers }: { words: RefusalWords; headers: Record<string, string> },
): Fault {
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

/** `needed` is in the unit of the limit, nanos or tokens. */
function beyondWholeLimit(whole: WholeLimit, needed: number, words: RefusalWords): Fault {
  const { limit, value, extra } = whole;
  const { plan, currency, inWords } = words;
  const isMinute = limit === "tokens_per_minute";
  const written = (amount: number) => (isMinute ? amount : moneyOf(amount, currency));
  const asked = isMinute ? `This request needs at least ${counted(needed, "token")}` : needs(needed, words);
  const size = isMinute
    ? `limit of ${minuteLimit("tokens", value)}${forModels(whole)}`
    : `${inWords(value)}${forModels(whole)} ${spanNames[limit]}`;
  const nor = extra?.enabled ? ` and its ${inWords(extra.capNanos ?? 0)} ${spanNames.extra}` : "";
  const less = isMinute ? "Send less input" : "Send less input, choose a cheaper model";
  const message = `${asked}, more than the ${subjectNamed(whole, words)}'s whole ${size}${nor}. ${less}, or ${askAdvice(whole, extra)}.`;
  return new Fault("usage_limit_reached", message, {
    headers: { "x-should-retry": "false" },
    limit: { ...limitedOf(whole), name: limit, limit: value, used: null, needed },
    body: {
      limit,
      limit_value: written(value),
      needed: written(needed),
      ...limitedShown(whole),
      ...(extra && { extra_usage: { enabled: extra.enabled, available: moneyOf(extra.available, currency) } }),
      plan_type: plan.name,
    },
  });
}

/**
 * The state of the organization's windows, from which headers are made even if the limit of a key or team refused the
 * request.
 */
interface Account extends Pick<Shortage, "windows" | "zone"> {
  words: RefusalWords;
}

function exhausted(shortage: Limiter, leastNanos: number, account: Account): Fault {
  const { windows, extra, kinds } = shortage;
  const { words } = account;
  const who = subjectNamed(shortage, words);
  const tooSmall = windowKinds.find((kind) => !windows[kind].isShort && infinite(windows[kind].limit) < leastNanos);
  if (tooSmall === undefined) {
    const short = shortOf(shortage);
    const isUsedUp = short.every((limit) => leftOf(limit) === 0);
    const window = windows[kinds[0] ?? "session"];
    const resets = short.length > 1 ? `Its ${window.kind}` : "It";
    const problem = `${isUsedUp ? "The" : `${needs(leastNanos, words)}, but the`} ${who} ${statesOf(short, words)}`;
    const met = metLimit(short[0] ?? window, shortage, leastNanos, window.resetAt);
    return usageLimitReached(problem, { window, resets, met }, shortage, account);
  }
  // The plan's own windows are too small for the request even when they are empty, so only extra usage can take it.
  // Extra usage has room again when the month's window resets.
  const whole = `${who}'s whole ${words.inWords(infinite(windows[tooSmall].limit))} ${spanNames[tooSmall]}`;
  const extraState = `the ${who} ${statesOf([extraLimit(extra)], words)}`;
  const problem = `${needs(leastNanos, words)}, more than the ${whole}, and ${extraState}`;
  const window = windows.month;
  const met = metLimit(extraLimit(extra), shortage, leastNanos, window.resetAt);
  return usageLimitReached(problem, { window, resets: "Its extra usage", met }, shortage, account);
}

/**
 * The fault if settled use leaves too little room until `until.window` resets, and extra usage cannot take the request.
 */
function usageLimitReached(
  problem: string,
  until: { window: WindowReading; resets: string; met: LimitMet },
  shortage: Limiter,
  { words: { plan, currency }, windows, zone }: Account,
): Fault {
  const { extra, at, models } = shortage;
  const { kind, resetAt } = until.window;
  const seconds = Math.max(1, Math.ceil((resetAt.getTime() - at.getTime()) / 1000));
  const another = models === undefined ? [] : ["choose another model"];
  const advice = [
    ...(lessHelps(shortage) ? lessAdvice : another),
    "wait until then",
    `or ${askAdvice(shortage, extra)}.`,
  ];
  const message = `${problem}. ${until.resets} starts anew on ${moment(resetAt, zone)}. ${capitalized(advice.join(", "))}`;
  return new Fault("usage_limit_reached", message, {
    retryAfterSeconds: seconds,
    headers: { ...windowHeaders(windows), "x-should-retry": "false" },
    limit: until.met,
    body: {
      window: kind,
      reset_at: resetAt.toISOString(),
      resets_at: Math.ceil(resetAt.getTime() / 1000),
      resets_in_seconds: seconds,
      extra_usage: { enabled: extra.enabled, available: moneyOf(extraAvailable(extra), currency) },
      plan_type: plan.name,
      ...limitedShown(shortage),
    },
  });
}

/** The fault if requests that still run hold the rest of a window. */
function usageReserved(shortage: Limiter, leastNanos: number, { words, windows }: Account): Fault {
  const isPlanFull = windowKinds.some((kind) => room(shortage.windows[kind]) < leastNanos);
  const short = shortOf(shortage, isPlanFull);
  const states = statesOf(short, words);
  return new Fault(
    "usage_reserved",
    `${needs(leastNanos, words)}, but the ${subjectNamed(shortage, words)} ${states}. Try again when one of them ends.`,
    {
      retryAfterSeconds: 1,
      headers: windowHeaders(windows),
      limit: metLimit(short[0] ?? shortage.windows.session, shortage, leastNanos),
      body: limitedShown(shortage),
    },
  );
}

function concurrencyLimitExceeded(answer: Crowded, words: RefusalWords): Fault {
  const { windows, concurrentRequests: raised } = answer;
  const crowded = crowdedBy(answer);
  const limited: Limited = crowded ? limitedOf(crowded) : { limitedBy: "organization" };
  const concurrentRequests = crowded ? crowded.concurrentRequests : (raised ?? words.plan.concurrentRequests);
  const whole = concurrentRequests ?? 0;
  const limit = `limit of ${counted(whole, "request")} at a time${forModels(limited)}`;
  return new Fault(
    "concurrency_limit_exceeded",
    `The ${subjectNamed(limited, words)}'s ${limit} is reached. Try again when one of them ends.`,
    {
      retryAfterSeconds: 1,
      headers: windowHeaders(windows),
      limit: { ...limited, name: "concurrent_requests", limit: whole, used: crowded?.running ?? whole, needed: 1 },
      body: limitedShown(limited),
    },
  );
}

type Crowded = Extract<AdmitAnswer, { answer: "concurrency" }>;

/** A window or the extra usage, as a message names it. */
interface NamedLimit extends Pick<Limited, "models"> {
  kind: WindowKind | "extra";
  limit: number | null;
  used: number;
  held: number;
}

function metLimit(limit: NamedLimit, limited: Limited, needed: number, resetAt?: Date): LimitMet {
  const { kind, used, held } = limit;
  const met = { ...limitedOf(limited), name: kind, limit: limit.limit ?? 0, used, held, needed };
  return resetAt ? { ...met, resetAt } : met;
}

function extraLimit({ capNanos, used, held }: ExtraReading): NamedLimit {
  return { kind: "extra", limit: capNanos, used, held };
}

/**
 * The limits that lack room, beginning with the one that resets last, and extra usage if it might have taken the
 * request.
 */
function shortOf({ kinds, windows, extra, models }: Limiter, withExtra = extra.enabled): NamedLimit[] {
  const ofModels = models === undefined ? {} : { models };
  const limits = kinds.map((kind): NamedLimit => ({ ...windows[kind], ...ofModels }));
  return withExtra ? [...limits, extraLimit(extra)] : limits;
}

const statesOf = (limits: readonly NamedLimit[], money: MoneyWords) =>
  limits.map((limit) => stateOf(limit, money)).join(", and ");

/**
 * The state of a limit in words: `has $3.14 left of its $10.00 for this week (68.59% used), of which running requests
 * hold $3.00`.
 */
function stateOf(limit: NamedLimit, { inWords }: MoneyWords): string {
  const left = leftOf(limit);
  const whole = `its ${inWords(limit.limit ?? 0)}${forModels(limit)} ${spanNames[limit.kind]}`;
  if (left === 0) return `has used ${whole}`;
  const remaining = inWords(left, "down");
  const state = `has ${remaining} left of ${whole} (${percentOf(limit.used, limit.limit)}% used)`;
  if (limit.held >= left) return `${state}, all held by running requests`;
  if (limit.held === 0) return state;
  return `${state}, of which running requests hold ${inWords(limit.held)}`;
}

const lessAdvice = ["send less input", "choose a cheaper model"];

/** Reports whether a smaller request would have been admitted, from the plan or from extra usage. */
function lessHelps({ windows, extra }: Shortage): boolean {
  const isPlanOpen = windowKinds.every((kind) => leftOf(windows[kind]) > 0);
  return isPlanOpen || (extra.enabled && leftOf(extraLimit(extra)) > 0);
}

/** The amount that settled use leaves of the limit; negative if the limit was lowered below the settled use. */
function room({ limit, used }: Pick<NamedLimit, "limit" | "used">): number {
  return infinite(limit) - used;
}

const leftOf = (limit: Pick<NamedLimit, "limit" | "used">) => Math.max(0, room(limit));
const infinite = (limit: number | null) => limit ?? Number.POSITIVE_INFINITY;

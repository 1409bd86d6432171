/**
 * Turns a refusal of the ledger into a fault. Its message says what is left, what the request needs, when it can have
 * that and what helps sooner, in the ledger's own numbers. Rules: docs/design/errors-and-streams.md, Limits and their
 * errors. Pure.
 */

import { counted, grouped, percentOf } from "../inference/amounts.ts";
import { asFault, Fault } from "../inference/fault.ts";
import { type Limited, limitedOf } from "../store/budget.ts";
import {
  type AdmitAnswer,
  type ExtraReading,
  type Shortage,
  type UsageLimits,
  type WindowReading,
  type WindowReadings,
  windowKinds,
} from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import { askAdvice, capitalized, forModels, limitedShown, windowNames } from "./limit-words.ts";
import { crowdedBy, extraAvailable, type Limiter, limiterOf, smallestBelow } from "./limited-by.ts";
import { beyondWholeLimit } from "./whole-limit.ts";

/** `leastNanos`: the least that the request must hold to start. */
export function refusalOf(answer: Exclude<AdmitAnswer, { answer: "granted" }>, leastNanos: number, plan: Plan): Fault {
  switch (answer.answer) {
    case "concurrency":
      return concurrencyLimitExceeded(answer, plan);
    case "exhausted": {
      const whole = smallestBelow(answer, leastNanos);
      if (whole) return beyondWholeLimit(whole, leastNanos, plan);
      return exhausted(limiterOf(answer, leastNanos), leastNanos, { plan, windows: answer.windows });
    }
    case "reserved":
      return usageReserved(limiterOf(answer, leastNanos), leastNanos, answer.windows);
    case "over":
    case "unknown":
      return asFault(new Error(`the ledger answered '${answer.answer}' to an admission`));
  }
}

/** The percentages and resets of the three windows, as headers. */
export function windowHeaders(windows: WindowReadings): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const kind of windowKinds) {
    const { used, limit, resetAt } = windows[kind];
    headers[`x-service-usage-${kind}-percent`] = String(percentOf(used, limit));
    headers[`x-service-usage-${kind}-reset-at`] = resetAt.toISOString();
  }
  return headers;
}

/** The readings of the organization, even if a key or team was the limit: headers describe its account. */
interface Account {
  plan: Plan;
  windows: WindowReadings;
}

function exhausted(shortage: Limiter, leastNanos: number, account: Account): Fault {
  const { windows, extra, kinds, limitedBy } = shortage;
  const tooSmall = windowKinds.find((kind) => infinite(windows[kind].limit) < leastNanos);
  if (tooSmall === undefined) {
    const short = shortOf(shortage);
    const isUsedUp = short.every((limit) => leftOf(limit) === 0);
    const problem = `${isUsedUp ? "The" : `${needs(leastNanos)}, but the`} ${statesOf(short, shortage)}`;
    const window = windows[kinds[0] ?? "session"];
    return usageLimitReached(problem, { window, resets: windowNames[window.kind] }, shortage, account);
  }
  // No reset of the plan's own windows makes room; that of the extra usage does, which is the month's.
  const whole = `${limitedBy}'s ${windowNames[tooSmall]} limit of ${counted(infinite(windows[tooSmall].limit), "unit")}`;
  const problem = `${needs(leastNanos)}, more than the ${whole}, and the ${statesOf([extraLimit(extra)], shortage)}`;
  return usageLimitReached(problem, { window: windows.month, resets: "extra usage" }, shortage, account);
}

/** Settled use leaves too little, and extra usage cannot take the request, until `until.window` resets. */
function usageLimitReached(
  problem: string,
  until: { window: WindowReading; resets: string },
  shortage: Limiter,
  { plan, windows }: Account,
): Fault {
  const { extra, at, models } = shortage;
  const { kind, resetAt } = until.window;
  const seconds = Math.max(1, Math.ceil((resetAt.getTime() - at.getTime()) / 1000));
  const wait = `wait until the ${until.resets} limit resets at ${resetAt.toISOString()}`;
  const another = models === undefined ? [] : ["choose another model"];
  const advice = [...(lessHelps(shortage) ? lessAdvice : another), wait, `or ${askAdvice(shortage, extra)}.`];
  return new Fault("usage_limit_reached", `${problem}. ${capitalized(advice.join(", "))}`, {
    retryAfterSeconds: seconds,
    headers: { ...windowHeaders(windows), "x-should-retry": "false" },
    body: {
      window: kind,
      reset_at: resetAt.toISOString(),
      resets_at: Math.ceil(resetAt.getTime() / 1000),
      resets_in_seconds: seconds,
      extra_usage: { enabled: extra.enabled, available: extraAvailable(extra) },
      plan_type: plan.name,
      ...limitedShown(shortage),
    },
  });
}

/** The fault if the rest of a window is held by requests that still run. */
function usageReserved(shortage: Limiter, leastNanos: number, windows: WindowReadings): Fault {
  const isPlanFull = windowKinds.some((kind) => room(shortage.windows[kind]) < leastNanos);
  return new Fault(
    "usage_reserved",
    `${needs(leastNanos)}, but the ${statesOf(shortOf(shortage, isPlanFull), shortage)}. Try again when one of them ends.`,
    { retryAfterSeconds: 1, headers: windowHeaders(windows), body: limitedShown(shortage) },
  );
}

function concurrencyLimitExceeded(answer: Crowded, plan: UsageLimits): Fault {
  const { windows, concurrentRequests: raised } = answer;
  const crowded = crowdedBy(answer);
  const limited: Limited = crowded ? limitedOf(crowded) : { limitedBy: "organization" };
  const concurrentRequests = crowded ? crowded.concurrentRequests : (raised ?? plan.concurrentRequests);
  return new Fault(
    "concurrency_limit_exceeded",
    `The ${limited.limitedBy}'s limit of ${counted(concurrentRequests ?? 0, "request")} at a time${forModels(limited)} is reached. Try again when one of them ends.`,
    { retryAfterSeconds: 1, headers: windowHeaders(windows), body: limitedShown(limited) },
  );
}

type Crowded = Extract<AdmitAnswer, { answer: "concurrency" }>;

/** A window or the extra usage, as a message names it. */
interface NamedLimit extends Pick<Limited, "models"> {
  name: string;
  limit: number | null;
  used: number;
  held: number;
}

function extraLimit({ capNanos, used, held }: ExtraReading): NamedLimit {
  return { name: "extra usage", limit: capNanos, used, held };
}

/** The limits that lack room, the one that resets last first, and extra usage if it might have taken the request. */
function shortOf({ kinds, windows, extra, models }: Limiter, withExtra = extra.enabled): NamedLimit[] {
  const ofModels = models === undefined ? {} : { models };
  const limits = kinds.map((kind): NamedLimit => ({ ...windows[kind], ...ofModels, name: windowNames[kind] }));
  return withExtra ? [...limits, extraLimit(extra)] : limits;
}

const needs = (leastNanos: number) => `This request needs at least ${counted(leastNanos, "unit")}`;
const statesOf = (limits: readonly NamedLimit[], { limitedBy }: Pick<Limiter, "limitedBy">) =>
  `${limitedBy}'s ${limits.map(stateOf).join(", and its ")}`;

/** `weekly limit of 10,000 nanos has 3,141 left (68.59% used), of which running requests hold 3,000`. */
function stateOf(named: NamedLimit): string {
  const { name, limit, used } = named;
  const left = leftOf(named);
  const whole = `${name} limit of ${counted(limit ?? 0, "unit")}${forModels(named)}`;
  if (left === 0) return `${whole} is used up`;
  const state = `${whole} has ${grouped(left)} left (${percentOf(used, limit)}% used)`;
  if (named.held >= left) return `${state}, all held by running requests`;
  return named.held > 0 ? `${state}, of which running requests hold ${grouped(named.held)}` : state;
}

const lessAdvice = ["send less input", "choose a cheaper model"];

/** Reports whether a smaller request would have been admitted, from the plan or from extra usage. */
function lessHelps({ windows, extra }: Shortage): boolean {
  const isPlanOpen = windowKinds.every((kind) => leftOf(windows[kind]) > 0);
  return isPlanOpen || (extra.enabled && leftOf(extraLimit(extra)) > 0);
}

/** The room that settled use leaves; below zero after a plan became smaller. */
function room({ limit, used }: Pick<NamedLimit, "limit" | "used">): number {
  return infinite(limit) - used;
}

const leftOf = (limit: Pick<NamedLimit, "limit" | "used">) => Math.max(0, room(limit));
const infinite = (limit: number | null) => limit ?? Number.POSITIVE_INFINITY;

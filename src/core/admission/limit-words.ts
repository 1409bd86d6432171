/**
 * The words in which messages name limits, the advice of messages about a limit that is too small, and limits as
 * headers. Pure.
 */
import { counted, type MoneyWords, percentOf } from "../inference/money.ts";
import type { Limited, LimitedBy } from "../store/budget.ts";
import { type Operation, type WindowKind, type WindowReadings, windowKinds } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import type { RateLimitName, RateReadings } from "../store/rates.ts";

/**
 * The facts for the message about a refused request: the request's plan, the names of its subjects, and how amounts are
 * written.
 */
export interface RefusalWords extends MoneyWords {
  plan: Pick<Plan, "name" | "concurrentRequests">;
  /** The names of the subjects of limits (team, person, key), as far as they are known. */
  names: Partial<Record<LimitedBy, string | null | undefined>>;
}

export function wordsFor({ plan, principal }: Caller, money: MoneyWords): RefusalWords {
  const { team, person } = principal.names ?? {};
  const known = { organization: principal.organization.name, key: principal.key.name, team, person };
  return { ...money, plan, names: known };
}

interface Caller {
  plan: Plan;
  principal: {
    readonly key: { readonly name?: string };
    readonly organization: { readonly name?: string };
    readonly names?: { readonly team: string | null; readonly person: string | null } | undefined;
  };
}

/** The limited subject as a message names it: `team research`, or `team` if its name is not known. */
export function subjectNamed({ limitedBy }: Limited, { names }: Pick<RefusalWords, "names">): string {
  const name = names[limitedBy];
  return name == null ? limitedBy : `${limitedBy} ${name}`;
}

export const spanNames: Record<WindowKind | "extra", string> = {
  session: "for this session of five hours",
  week: "for this week",
  month: "for this month",
  extra: "of extra usage for this month",
};

export const needs = (nanos: number, { inWords }: MoneyWords) => `This request needs at least ${inWords(nanos)}`;

export function minuteLimit(name: RateLimitName, limit: number): string {
  return `${counted(limit, name === "tokens" ? "token" : "request")} a minute`;
}

/**
 * Advice on whom to ask for a higher limit. `extra`: whether the organization has extra usage; absent if the limit is
 * not one of the organization's windows, which alone extra usage relieves.
 */
export function askAdvice(limited: Limited, extra?: { enabled: boolean } | undefined): string {
  const { limitedBy, models } = limited;
  if (limitedBy !== "organization" || models !== undefined)
    return `ask your administrator for a higher limit of the ${limitedBy}${forModels(limited)}`;
  if (!extra) return "ask your administrator for a higher plan";
  return `ask your administrator for a higher plan or ${extra.enabled ? "a higher extra usage limit" : "for extra usage"}`;
}

/** The models of a limit as a message states them: ` for openai/*`, or nothing if the limit is for all models. */
export const forModels = ({ models }: Pick<Limited, "models">): string =>
  models === undefined ? "" : ` for ${models}`;

/** The members of an error's body that say whose limit it was. */
export const limitedShown = ({ limitedBy, models }: Limited) => ({
  limited_by: limitedBy,
  ...(models !== undefined && { limited_models: models }),
});

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function windowHeaders(windows: WindowReadings): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const kind of windowKinds) {
    const { used, limit, resetAt } = windows[kind];
    headers[`x-service-usage-${kind}-percent`] = String(percentOf(used, limit));
    headers[`x-service-usage-${kind}-reset-at`] = iso(resetAt);
  }
  return headers;
}

/** The texts of instants that come again and again, such as the ends of windows. */
const texts = new Map<number, string>();
const texts_max = 1024;

/** An instant as JSON has it, to the millisecond: `2026-11-22T03:00:00.000Z`. */
export function iso(at: Date): string {
  const known = texts.get(at.getTime());
  if (known !== undefined) return known;
  const text = at.toISOString();
  if (texts.size >= texts_max) texts.clear();
  texts.set(at.getTime(), text);
  return text;
}

/**
 * The plan's limits per minute as headers, named as the protocol's clients expect. Limits that the plan lacks are left
 * out. `now_ms`: milliseconds since the epoch.
 */
export function limitHeaders(operation: Operation, readings: RateReadings, now_ms: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const what of ["requests", "tokens"] as const) {
    const reading = readings[what];
    if (!reading) continue;
    const { limit, remaining, reset_ms } = reading;
    if (operation === "messages") {
      const family = `anthropic-ratelimit-${what}`;
      headers[`${family}-limit`] = String(limit);
      headers[`${family}-remaining`] = String(remaining);
      headers[`${family}-reset`] = new Date(now_ms + reset_ms).toISOString();
    } else {
      headers[`x-ratelimit-limit-${what}`] = String(limit);
      headers[`x-ratelimit-remaining-${what}`] = String(remaining);
      headers[`x-ratelimit-reset-${what}`] = duration(reset_ms);
    }
  }
  return headers;
}

/** A duration in OpenAI's form: `120ms`, `12.5s`, `1m0s`. */
export function duration(ms: number): string {
  const whole_ms = Math.max(0, Math.ceil(ms));
  if (whole_ms < 1000) return whole_ms === 0 ? "0s" : `${whole_ms}ms`;
  const minutes = Math.floor(whole_ms / 60_000);
  const seconds = (whole_ms % 60_000) / 1000;
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}

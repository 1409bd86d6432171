/** The words in which messages name limits, and their advice if a limit is too small. Pure. */

import { counted } from "../inference/amounts.ts";
import { type Limited, narrowest } from "../store/budget.ts";
import type { WindowKind } from "../store/ledger.ts";
import type { RateLimitName } from "../store/rates.ts";

export const windowNames: Record<WindowKind, string> = {
  session: "five-hour session",
  week: "weekly",
  month: "monthly",
};

export function minuteLimit(name: RateLimitName, limit: number): string {
  return `${counted(limit, name === "tokens" ? "token" : "request")} a minute`;
}

/** `extra` is absent if extra usage does not relieve the limit: it relieves the organization's windows alone. */
export function askAdvice(limited: Limited, extra?: { enabled: boolean } | undefined): string {
  const { limitedBy, models } = limited;
  if (limitedBy !== "organization" || models !== undefined)
    return `ask your administrator for a higher limit of the ${limitedBy}${forModels(limited)}`;
  if (!extra) return "ask your administrator for a higher plan";
  return `ask your administrator for a higher plan or ${extra.enabled ? "a higher extra usage limit" : "for extra usage"}`;
}

/** ` for openai/*`; nothing where all models count. */
export const forModels = ({ models }: Pick<Limited, "models">): string =>
  models === undefined ? "" : ` for ${models}`;

/** Whose limit it was, in the body of an error. */
export const limitedShown = ({ limitedBy, models }: Limited) => ({
  limited_by: limitedBy,
  ...(models !== undefined && { limited_models: models }),
});

/** What `limitedShown` wrote; null: it was no limit. */
export function limitedIn({ limited_by, limited_models }: Record<string, unknown> = {}): Limited | null {
  const limitedBy = narrowest.find((one) => one === limited_by);
  if (limitedBy === undefined) return null;
  return typeof limited_models === "string" ? { limitedBy, models: limited_models } : { limitedBy };
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

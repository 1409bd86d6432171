/** The words in which messages name limits, and their advice if a limit is too small. Pure. */

import { counted } from "../inference/amounts.ts";
import type { LimitedBy } from "../store/budget.ts";
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
export function askAdvice(limitedBy: LimitedBy, extra?: { enabled: boolean } | undefined): string {
  if (limitedBy !== "organization") return `ask your administrator for a higher limit of the ${limitedBy}`;
  if (!extra) return "ask your administrator for a higher plan";
  return `ask your administrator for a higher plan or ${extra.enabled ? "a higher extra usage limit" : "for extra usage"}`;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

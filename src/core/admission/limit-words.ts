/** The words in which messages name limits, and their advice if a limit is too small. Pure. */

import { counted } from "../inference/amounts.ts";
import type { MoneyWords } from "../inference/money.ts";
import type { Limited, LimitedBy } from "../store/budget.ts";
import type { WindowKind } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import type { RateLimitName } from "../store/rates.ts";

/** The plan of a refused request, and how the message about it names things. */
export interface RefusalWords extends MoneyWords {
  plan: Pick<Plan, "name" | "concurrentRequests">;
  /** The names that are known. */
  names: Partial<Record<LimitedBy, string | null | undefined>>;
}

/** The words of messages to a caller, whose names authentication knows. */
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

/** The models of a limit as a message adds them: ` for openai/*`, or nothing if all models count. */
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

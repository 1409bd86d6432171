/**
 * The refusal of a request that can never be admitted: the least amount that has to be reserved for it is more than a
 * whole limit, so that waiting is in vain. Rules: docs/design/errors-and-streams.md, Limits and their errors. Pure.
 */

import { Fault } from "../inference/fault.ts";
import { counted, moneyOf } from "../inference/money.ts";
import { type Limited, limitedOf } from "../store/budget.ts";
import type { WindowKind } from "../store/ledger.ts";
import {
  askAdvice,
  forModels,
  limitedShown,
  minuteLimit,
  needs,
  type RefusalWords,
  spanNames,
  subjectNamed,
} from "./limit-words.ts";

export interface WholeLimit extends Limited {
  limit: WindowKind | "tokens_per_minute";
  /** The size of the limit: nanos of a window, or tokens of a minute. */
  value: number;
  /** The extra usage that relieves the organization's windows; absent for every other limit. */
  extra?: { enabled: boolean; capNanos: number | null; available: number };
}

/** `needed` is in the unit of the limit, nanos or tokens. */
export function beyondWholeLimit(whole: WholeLimit, needed: number, words: RefusalWords): Fault {
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

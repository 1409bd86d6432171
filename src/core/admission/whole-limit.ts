/**
 * The refusal of a request that can never pass: the least that it must hold is above a whole limit, so that no reset
 * helps and waiting is in vain. It says which limit that is, whose, its size, and what was asked for. Rules:
 * docs/design/errors-and-streams.md, Limits and their errors. Pure.
 */

import { counted } from "../inference/amounts.ts";
import { Fault } from "../inference/fault.ts";
import type { Limited } from "../store/budget.ts";
import type { WindowKind } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import { askAdvice, forModels, limitedShown, minuteLimit, windowNames } from "./limit-words.ts";

export interface WholeLimit extends Limited {
  limit: WindowKind | "tokens_per_minute";
  /** Units of a window, or tokens of a minute. */
  value: number;
  /** The extra usage that relieves the organization's windows; absent for every other limit. */
  extra?: { enabled: boolean; capNanos: number | null; available: number };
}

/** `needed` is in the unit of the limit. */
export function beyondWholeLimit(whole: WholeLimit, needed: number, plan: Pick<Plan, "name">): Fault {
  const { limit, limitedBy, value, extra } = whole;
  const isMinute = limit === "tokens_per_minute";
  const asked = counted(needed, isMinute ? "token" : "unit");
  const nor = extra?.enabled ? ` and the extra usage limit of ${counted(extra.capNanos ?? 0, "unit")}` : "";
  const less = isMinute ? "Send less input" : "Send less input, choose a cheaper model";
  const message = `This request needs at least ${asked}, more than the ${limitedBy}'s ${namedWhole(whole)}${forModels(whole)}${nor}. ${less}, or ${askAdvice(whole, extra)}.`;
  return new Fault("usage_limit_reached", message, {
    headers: { "x-should-retry": "false" },
    body: {
      limit,
      limit_value: value,
      needed,
      ...limitedShown(whole),
      ...(extra && { extra_usage: { enabled: extra.enabled, available: extra.available } }),
      plan_type: plan.name,
    },
  });
}

function namedWhole({ limit, value }: WholeLimit): string {
  if (limit === "tokens_per_minute") return `whole limit of ${minuteLimit("tokens", value)}`;
  return `whole ${windowNames[limit]} limit of ${counted(value, "unit")}`;
}

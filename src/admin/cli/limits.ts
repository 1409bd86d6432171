/** Limits as they are typed: `month=50`, `tokens_per_minute=200k`, `session=none`. */
import { InvalidArgumentError, Option } from "commander";
import { camelName } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import { isWindow, type LimitValueChanges } from "../management/limit-shape.ts";
import { type LimitName, limitNames as names } from "../store/shapes.ts";

type PlanChanges = Partial<Record<keyof Budget, string | number | null>>;

/** The option for the limits of a plan: `--limit week=50`; repeated, or with commas; `none` removes a limit. */
export function planLimitOption(flag: string, description: string): Option {
  return new Option(
    `${flag} <name=value>`,
    `${description}: ${names.join(", ")}; money for a window, a number for the others, or none; can be repeated`,
  ).argParser((text: string, before: PlanChanges | undefined) => ({ ...before, ...each(text, planLimit) }));
}

/** The option for the limits that a new thing has of its own: `--limit month=50,concurrent_requests=4`. */
export function limitValueOption(flag: string, description: string): Option {
  return new Option(
    `${flag} <name=amount>`,
    `${description}: ${names.join(", ")}; an amount, a number or none; can be repeated`,
  ).argParser((text: string, before: LimitValueChanges | undefined) => ({ ...before, ...typedLimits(text) }));
}

/** Parses typed limits that are separated by commas: `week=5,month=20`. */
export const typedLimits = (text: string): LimitValueChanges => each(text, typedLimit) as LimitValueChanges;

function each<Limit>(text: string, read: (name: LimitName, amount: string) => Limit): Record<string, Limit> {
  const pairs = text.split(",").map((one) => {
    const [name = "", amount = ""] = one.split("=");
    const limit = names.find((word) => word === name.trim());
    if (!limit) throw new InvalidArgumentError(`The limits are: ${names.join(", ")}.`);
    return [camelName(limit), read(limit, amount.trim())] as const;
  });
  return Object.fromEntries(pairs);
}

function planLimit(name: LimitName, amount: string): string | number | null {
  if (amount === "none") return null;
  const isMoney = isWindow(name);
  if (!(isMoney ? /^\d+([.]\d+)?\s?[A-Za-z]*$/ : /^\d{1,16}$/).test(amount))
    throw new InvalidArgumentError(
      `Specify ${name}= and ${isMoney ? "an amount of money, such as 50 or 0.25" : "a whole number from 1"}, or none.`,
    );
  return isMoney ? amount : Number(amount);
}

/**
 * The value of a typed limit. Money stays text, which the server parses. `inherit` becomes null, which removes the
 * subject's own limit, so that the inherited limit counts.
 */
function typedLimit(name: LimitName, amount: string): string | number | null {
  if (amount === "inherit") return null;
  if (amount === "none") return amount;
  if (isWindow(name)) {
    if (/^\d[\d.]*\s?[A-Za-z]*$/.test(amount)) return amount;
    throw new InvalidArgumentError(`Specify ${name}= and an amount such as 50 or 0.25, none, or inherit.`);
  }
  const [, digits, thousands = ""] = /^(\d{1,15})([kKmM]?)$/.exec(amount) ?? [];
  const times = { "": 1, k: 1000, m: 1_000_000 }[thousands.toLowerCase()]!;
  if (digits !== undefined) return Number(digits) * times;
  throw new InvalidArgumentError(`Specify ${name}= and a whole number such as 60 or 200k, none, or inherit.`);
}

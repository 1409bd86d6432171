/** Limits of plans, keys and teams, as options and as columns. */
import { InvalidArgumentError, Option } from "commander";
import { grouped } from "../inference/amounts.ts";
import { type LimitName, limitNames } from "../management/budget-limits.ts";
import type { Budget } from "../store/budget.ts";

const names = Object.keys(limitNames) as LimitName[];

/** `--limit week=5000000`; repeated, or with commas; `none` takes a limit away. */
export function limitOption(flag: string, description: string): Option {
  return new Option(
    `${flag} <name=number>`,
    `${description}: ${names.join(", ")}; a number or none; can be repeated`,
  ).argParser(limitChanges);
}

function limitChanges(value: string, before: Record<string, number | null> | undefined): Record<string, number | null> {
  const changes = { ...before };
  for (const one of value.split(",")) {
    const [name = "", amount = ""] = one.split("=");
    const limit = names.find((word) => word === name.trim());
    const number = /^\d{1,16}$/.test(amount.trim()) ? Number(amount) : null;
    if (!limit) throw new InvalidArgumentError(`The limits are: ${names.join(", ")}.`);
    if (number === null && amount.trim() !== "none")
      throw new InvalidArgumentError(`Specify ${limit}= and a whole number from 1, or none.`);
    changes[limit] = number;
  }
  return changes;
}

/** `week 5,000,000, concurrent_requests 4`; null without any. */
export function limitsInWords(budget: Budget | null): string | null {
  const words = names.flatMap((name) => {
    const limit = budget?.[limitNames[name]] ?? null;
    return limit === null ? [] : [`${name} ${grouped(limit)}`];
  });
  return words.length === 0 ? null : words.join(", ");
}

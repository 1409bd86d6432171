/** Limits of plans, keys and teams, as options. */
import { InvalidArgumentError, Option } from "commander";
import { camelName } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import { windowKinds } from "../../core/store/ledger.ts";
import type { LimitChanges } from "../management/limits.ts";
import { limitNames as names } from "../store/shapes.ts";

/** `--limit week=5000000`; repeated, or with commas; `none` takes a limit away. */
export function limitOption(flag: string, description: string): Option {
  return new Option(
    `${flag} <name=number>`,
    `${description}: ${names.join(", ")}; a number or none; can be repeated`,
  ).argParser(limitChanges);
}

function limitChanges(value: string, before: LimitChanges | undefined): LimitChanges {
  const changes = { ...before };
  for (const one of value.split(",")) {
    const [name = "", amount = ""] = one.split("=");
    const limit = names.find((word) => word === name.trim());
    const number = /^\d{1,16}$/.test(amount.trim()) ? Number(amount) : null;
    if (!limit) throw new InvalidArgumentError(`The limits are: ${names.join(", ")}.`);
    if (number === null && amount.trim() !== "none")
      throw new InvalidArgumentError(`Specify ${limit}= and a whole number from 1, or none.`);
    changes[fieldOf(limit)] = number;
  }
  return changes;
}

/** The limits of a plan: money for the windows, `month=50`, and whole numbers for the others. */
export function planLimitOption(flag: string, description: string): Option {
  return new Option(
    `${flag} <name=value>`,
    `${description}: ${names.join(", ")}; money for a window, a number for the others, or none; can be repeated`,
  ).argParser(planLimits);
}

function planLimits(value: string, before: Record<string, unknown> | undefined): Record<string, unknown> {
  const limits = { ...before };
  for (const one of value.split(",")) {
    const [name = "", ...rest] = one.split("=");
    const limit = names.find((word) => word === name.trim());
    const amount = rest.join("=").trim();
    if (!limit) throw new InvalidArgumentError(`The limits are: ${names.join(", ")}.`);
    const isMoney = windowKinds.some((kind) => kind === limit);
    if (amount !== "none" && !(isMoney ? /^\d+([.]\d+)?\s?[A-Za-z]*$/ : /^\d{1,16}$/).test(amount))
      throw new InvalidArgumentError(
        `Specify ${limit}= and ${isMoney ? "an amount of money, such as 50 or 0.25" : "a whole number from 1"}, or none.`,
      );
    limits[fieldOf(limit)] = amount === "none" ? null : isMoney ? amount : Number(amount);
  }
  return limits;
}

const fieldOf = (name: string) => camelName(name) as keyof Budget;

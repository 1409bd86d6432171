/** Limits of plans, keys and teams, as options. */
import { InvalidArgumentError, Option } from "commander";
import { camelName } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import type { LimitChanges } from "../management/limits.ts";
import { limitNames as names } from "../management/shapes.ts";

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

const fieldOf = (name: string) => camelName(name) as keyof Budget;

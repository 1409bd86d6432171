/**
 * Amounts of money as verbs of management take them: decimal text, or an object of an amount and its currency, as in
 * answers.
 */
import Type from "typebox";
import { type Currency, type Money, moneyOf, nano_decimals, nanos_per_one } from "../../core/inference/money.ts";
import { limit_nanos_max, shortest, typedNanos } from "../store/amounts.ts";
import { ManagementError } from "./error.ts";
import * as parse from "./parse.ts";

const mustBe = { "x-must-be": "an amount of money, such as 50 or 0.25, with nine decimals at most" };
const decimal = "[0-9]{1,7}([.][0-9]{1,9})?";
const code = "[A-Za-z]{3,7}";
const typed = (sign: string) => Type.String({ pattern: `^${sign}${decimal}( ?${code})?$`, ...mustBe });
const written = (sign: string) =>
  Type.Object(
    {
      amount: Type.String({ pattern: `^${sign}${decimal}$`, ...mustBe }),
      currency: Type.String({ pattern: `^${code}$`, "x-must-be": "the currency of the service, such as USD" }),
    },
    { additionalProperties: false },
  );

/**
 * An amount that a verb takes: the text `50` or `0.25USD`, or an object of an amount and its currency, as in answers.
 */
export type GivenMoney = string | Money;

export const givenMoney = (description: string) => Type.Union([typed(""), written("")], { description, ...mustBe });

export const signedMoney = (description: string) =>
  Type.Union([typed("-?"), written("-?")], { description, ...mustBe });

/** An amount in nanos. Refuses an amount below one nano or above a million. `what` names the amount in the refusal. */
export function limitNanos(given: GivenMoney, currency: Currency, what: string): number {
  const nanos = nanosGiven(given, currency, what);
  if (nanos >= 1 && nanos <= limit_nanos_max) return nanos;
  throw wrongAmount(what, "must be above 0, and at most a million");
}

/** An amount in nanos, which may be negative. Refuses an amount of more than a million. */
export function nanosGiven(given: GivenMoney, currency: Currency, what: string): number {
  const text = typeof given === "string" ? given : `${given.amount}${given.currency}`;
  const read = typedNanos(text, currency);
  if ("problem" in read) throw wrongAmount(what, `${read.problem}, not '${parse.excerpt(text)}'`);
  if (Math.abs(read.nanos) <= limit_nanos_max) return read.nanos;
  throw wrongAmount(what, "must be at most a million");
}

function wrongAmount(what: string, problem: string): ManagementError {
  return new ManagementError(`'${what}' ${problem}.`, "invalid_value", { param: what });
}

/** An amount in the examples of the contract. */
export const dollars = (nanos: number): Money => moneyOf(nanos, "USD");

/**
 * An amount in a file of organizations: a number or decimal text. Amounts are compared by their shortest decimal text.
 */
export const fileMoney = {
  schema: Type.Union(
    [
      Type.Number({ exclusiveMinimum: 0, maximum: limit_nanos_max / nanos_per_one }),
      Type.String({ pattern: "^[0-9]{1,7}([.][0-9]{1,9})?$" }),
      Type.Null(),
    ],
    { "x-must-be": "an amount of money, such as 50 or 0.25, with nine decimals at most, or null" },
  ),
  read: (money: Money | null) => money && shortest(money.amount),
  normal: (value: unknown) => (value === null ? null : shortest(Number(value).toFixed(nano_decimals))),
};

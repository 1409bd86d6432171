/** Amounts as people type them in commands and configuration, and the bounds of the amount of a limit. Pure. */
import {
  type Currency,
  credits,
  type Money,
  nano_decimals,
  nanos_per_one,
  safe_max,
} from "../../core/inference/money.ts";

/** The highest limit, in units of the currency. */
export const limit_max = 1_000_000;
export const limit_nanos_max = limit_max * nanos_per_one;

export const isNothing = ({ amount }: Pick<Money, "amount">) => !/[1-9]/.test(amount);

/** Decimal text without trailing zeros: `50` for `50.000000000`. */
export const shortest = (amount: string) => (amount.includes(".") ? amount.replace(/[.]?0+$/, "") : amount);

/**
 * The value of decimal text × 10^decimals, as a whole number. Null: the text is not a plain decimal number, has more
 * than `decimals` decimals, or exceeds the exact range of a number.
 */
export function wholeOf(text: string, decimals: number): number | null {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)([0-9]{1,16})(?:\.([0-9]+))?$/.exec(text) ?? [];
  if (whole === "" || fraction.replace(/0+$/, "").length > decimals) return null;
  const value = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, "0"));
  return value > safe_max ? null : Number(value) * (sign === "" || value === 0n ? 1 : -1);
}

/** A typed amount, such as `50`, `0.25` or `50USD`, in nanos; or the problem with the text. */
export function typedNanos(text: string, currency: Currency): { nanos: number } | { problem: string } {
  const [, number = "", , code] = /^(-?[0-9.]+)(\s?)([A-Za-z]+)?$/.exec(text.trim()) ?? [];
  if (code !== undefined && code.toLowerCase() !== currency.toLowerCase())
    return { problem: `is in ${code}, and this service counts in ${currency}` };
  const nanos = wholeOf(number, nano_decimals);
  if (nanos !== null) return { nanos };
  if (Math.abs(Number(number)) > limit_nanos_max / nanos_per_one) return { problem: "must be at most a million" };
  return { problem: `must be an amount of ${currency}, such as 50 or 0.25, with nine decimals at most` };
}

/**
 * Currencies whose unit is worth less than a US cent: the largest limit, a million units, would be too low for a month.
 */
const tooSmall = new Set(
  "BIF CLP COP GNF IDR IQD IRR KHR KMF KRW LAK LBP MGA MMK MNT PYG RWF SLL SOS SYP TZS UGX UZS VND YER".split(" "),
);

/** The reason why the service cannot count in this currency; null: it can. */
export function problemOfCurrency(currency: string): string | null {
  if (currency === credits) return null;
  if (!/^[A-Z]{3}$/.test(currency) || !Intl.supportedValuesOf("currency").includes(currency))
    return "must be a currency of ISO 4217, such as USD or EUR, or credits";
  if (!tooSmall.has(currency)) return null;
  return `cannot be ${currency}: a limit is at most a million, which is too little of it for a month. Use credits`;
}

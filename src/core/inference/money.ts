/**
 * Amounts of the service's one currency. Inside the program an amount is a whole number of nanos (10⁻⁹ of the
 * currency), and a price a whole number of picos (10⁻¹²) for one token or search. In APIs, an amount is exact decimal
 * text with its currency. Pure.
 */
import type { Prices } from "./model.ts";
import type { Usage } from "./usage.ts";

/** The number with commas between thousands: `1,000,000`. */
export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

/** A number with its unit: `1 request`, `1,000 requests`. */
export function counted(value: number, unit: string): string {
  return `${grouped(value)} ${unit}${value === 1 ? "" : "s"}`;
}

/** 100 × used ÷ limit, rounded down to two decimals, at most 100. A limit of null shows 0. Exact below 2^53 nanos. */
export function percentOf(used: number, limit: number | null): number {
  if (limit === null || used <= 0) return 0;
  if (used >= limit) return 100;
  return Number((BigInt(used) * 10_000n) / BigInt(limit)) / 100;
}

/** A code of ISO 4217, or `credits`. */
export type Currency = string;

export interface Money {
  /** A decimal number with nine decimals. */
  amount: string;
  currency: Currency;
}

export const nano_decimals = 9;
export const nanos_per_one = 10 ** nano_decimals;
const picos_per_nano = 1000;
/**
 * The decimals of the price of a million tokens: one unit of the last decimal is a price of one pico for each token.
 */
export const price_decimals = 6;

export const safe_max = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The cost of this many tokens in nanos, rounded up to a whole nano. Calculate it from a total: the costs of parts,
 * each rounded up, would add up to more.
 */
export function costOf(tokens: number, price_picos: number): number {
  const picos = tokens * price_picos;
  if (picos <= Number.MAX_SAFE_INTEGER) return Math.ceil(picos / picos_per_nano);
  const nanos = (BigInt(tokens) * BigInt(price_picos) + 999n) / 1000n;
  return Number(nanos > safe_max ? safe_max : nanos);
}

/**
 * The cost of what a request used, in nanos. For each kind of token, the price of the total is rounded once: rounded
 * parts would add up to more. docs/design/usage.md, Money and prices.
 */
export function priceOf(usage: Usage, prices: Prices, searches = 0): number {
  return (
    costOf(searches, prices.search ?? 0) +
    costOf(usage.inputTokens, prices.input) +
    costOf(usage.cachedInputTokens, prices.cachedInput) +
    costOf(usage.cacheWriteTokens, prices.cacheWrite) +
    costOf(usage.outputTokens, prices.output)
  );
}

/** The most tokens whose cost is within this many nanos; Infinity if the price is 0. */
export function tokensFor(nanos: number, price_picos: number): number {
  if (price_picos === 0) return Number.POSITIVE_INFINITY;
  const picos = nanos * picos_per_nano;
  if (Math.abs(picos) <= Number.MAX_SAFE_INTEGER) return Math.floor(picos / price_picos);
  return Math.floor(Number((BigInt(nanos) * 1000n) / BigInt(price_picos)));
}

/** An amount in the form of API answers: `{ amount: "0.000213440", currency: "USD" }`. */
export function moneyOf(nanos: number | bigint, currency: Currency): Money {
  return { amount: decimalOf(nanos, nano_decimals), currency };
}

export function nanosOf({ amount }: Pick<Money, "amount">): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(nano_decimals, "0"));
}

/** The price of a million tokens in the form of API answers, from the price of a token in picos. */
export function priceOfMillion(picos: number, currency: Currency): Money {
  return { amount: decimalOf(picos, price_decimals), currency };
}

/** The decimal text of `value` ÷ 10^decimals, with all its decimals. */
export function decimalOf(value: number | bigint, decimals: number): string {
  const digits = (value < 0 ? -value : value).toString().padStart(decimals + 1, "0");
  return `${value < 0 ? "-" : ""}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

type Rounding = "nearest" | "down";

export interface MoneyWords {
  readonly currency: Currency;
  /**
   * An amount for people: `$50.00`, `€1,204.50`, `$0.00021`, `3.5 credits`. What is left of a limit is rounded `down`.
   */
  inWords(nanos: number | bigint, rounding?: Rounding): string;
}

/**
 * Makes the functions that write amounts in this currency. The platform's number formats are made once: making one
 * costs many times as much as using it.
 */
export function moneyWords(currency: Currency): MoneyWords {
  const isCredits = currency === credits;
  const minorDigits = isCredits ? 2 : minorDigitsOf(currency);
  const formats = new Map<string, Intl.NumberFormat>();
  const formatOf = (isSmall: boolean, rounding: Rounding) => {
    const name = `${isSmall} ${rounding}`;
    const known = formats.get(name);
    if (known) return known;
    const style = isCredits ? {} : { style: "currency", currency, currencyDisplay: "narrowSymbol" };
    const digits = isSmall
      ? { maximumSignificantDigits: 2 }
      : { minimumFractionDigits: isCredits ? 0 : minorDigits, maximumFractionDigits: minorDigits };
    const roundingMode = rounding === "down" ? "floor" : "halfExpand";
    const format = new Intl.NumberFormat("en-US", { ...style, ...digits, roundingMode } as Intl.NumberFormatOptions);
    formats.set(name, format);
    return format;
  };
  return {
    currency,
    inWords(nanos, rounding = "nearest") {
      const size = Math.abs(Number(nanos));
      const isSmall = size !== 0 && size < 10 ** (nano_decimals - minorDigits);
      const amount = decimalOf(nanos, nano_decimals) as Intl.StringNumericLiteral;
      const written = formatOf(isSmall, rounding).format(amount);
      return isCredits ? `${written} credits` : written;
    },
  };
}

/** One amount for people. For many amounts, use `moneyWords`. */
export function moneyInWords(nanos: number | bigint, currency: Currency, rounding?: Rounding): string {
  return moneyWords(currency).inWords(nanos, rounding);
}

/** Writes an amount of an API answer for people. */
export function inWords(money: Money, rounding: "nearest" | "down" = "nearest"): string {
  return moneyInWords(nanosOf(money), money.currency, rounding);
}

export const credits = "credits";

function minorDigitsOf(currency: Currency): number {
  return new Intl.NumberFormat("en-US", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

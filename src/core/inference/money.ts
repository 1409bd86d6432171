/**
 * Amounts of the service's one currency. Inside the program an amount is a whole number of nanos (10⁻⁹ of the currency), and a
 * price a whole number of picos (10⁻¹²) for one token or search. Outside, an amount is exact decimal text with its currency.
 * Pure.
 */

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
/** The highest limit, in units of the currency. */
export const limit_max = 1_000_000;
export const limit_nanos_max = limit_max * nanos_per_one;
/**
 * The decimals of the price of a million tokens: one unit of the last decimal is a price of one pico for each token.
 */
export const price_decimals = 6;

const safe_max = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The cost of this many tokens in nanos, rounded up to a whole one. Calculate it from a total: the costs of parts, each
 * rounded up, would add up to more.
 */
export function costOf(tokens: number, price_picos: number): number {
  const picos = tokens * price_picos;
  if (picos <= Number.MAX_SAFE_INTEGER) return Math.ceil(picos / picos_per_nano);
  const nanos = (BigInt(tokens) * BigInt(price_picos) + 999n) / 1000n;
  return Number(nanos > safe_max ? safe_max : nanos);
}

/** The most tokens whose cost is within this many nanos; Infinity if the price is 0. */
export function tokensFor(nanos: number, price_picos: number): number {
  if (price_picos === 0) return Number.POSITIVE_INFINITY;
  const picos = nanos * picos_per_nano;
  if (Math.abs(picos) <= Number.MAX_SAFE_INTEGER) return Math.floor(picos / price_picos);
  return Math.floor(Number((BigInt(nanos) * 1000n) / BigInt(price_picos)));
}

/** An amount in the form of answers: `{ amount: "0.000213440", currency: "USD" }`. */
export function moneyOf(nanos: number | bigint, currency: Currency): Money {
  return { amount: decimalOf(nanos, nano_decimals), currency };
}

/** The nanos of an amount in the form of answers. */
export function nanosOf({ amount }: Pick<Money, "amount">): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(nano_decimals, "0"));
}

export const isNothing = ({ amount }: Pick<Money, "amount">) => !/[1-9]/.test(amount);

/** The price of a million tokens in the form of answers, from the price of a token in picos. */
export function priceOfMillion(picos: number, currency: Currency): Money {
  return { amount: decimalOf(picos, price_decimals), currency };
}

/** Decimal text without the zeros at its end: `50` for `50.000000000`. */
export const shortest = (amount: string) => (amount.includes(".") ? amount.replace(/[.]?0+$/, "") : amount);

/** The decimal text of `value` ÷ 10^decimals, with all its decimals. */
export function decimalOf(value: number | bigint, decimals: number): string {
  const digits = (value < 0 ? -value : value).toString().padStart(decimals + 1, "0");
  return `${value < 0 ? "-" : ""}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

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

/** The nanos of an amount as a person types it, such as `50`, `0.25` or `50USD`; or the problem with it. */
export function typedNanos(text: string, currency: Currency): { nanos: number } | { problem: string } {
  const [, number = "", , code] = /^(-?[0-9.]+)(\s?)([A-Za-z]+)?$/.exec(text.trim()) ?? [];
  if (code !== undefined && code.toLowerCase() !== currency.toLowerCase())
    return { problem: `is in ${code}, and this service counts in ${currency}` };
  const nanos = wholeOf(number, nano_decimals);
  if (nanos !== null) return { nanos };
  if (Math.abs(Number(number)) > limit_nanos_max / nanos_per_one) return { problem: "must be at most a million" };
  return { problem: `must be an amount of ${currency}, such as 50 or 0.25, with nine decimals at most` };
}

type Rounding = "nearest" | "down";

/** A currency, and how its amounts are written for people. */
export interface MoneyWords {
  readonly currency: Currency;
  /** An amount for people: `$50.00`, `€1,204.50`, `$0.00021`, `3.5 credits`. The rest of a limit is rounded `down`. */
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

/**
 * Currencies that are worth so little that the largest limit, a million, is too low for a month: a unit is less than a
 * cent.
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

function minorDigitsOf(currency: Currency): number {
  return new Intl.NumberFormat("en-US", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

/**
 * Amounts of money as the pages write them, add them up and draw them. Sums are in whole nanos (billionths of the
 * currency's unit), so that they are exact. Pure.
 */

export interface Money {
  /** A decimal number, exact. */
  amount: string;
  currency: string;
}

const nano_decimals = 9;

/**
 * An amount with its currency: `$50.00`. An amount below the smallest unit of the currency gets two significant digits:
 * `$0.00021`. Pass `down` for the rest of a limit, so that it is not shown as more than it is.
 */
export function moneyWritten({ amount, currency }: Money, rounding: "nearest" | "down" = "nearest"): string {
  const minorDigits = minorDigitsOf(currency);
  const size = Math.abs(Number(amount));
  const isSmall = size !== 0 && size < 10 ** -minorDigits;
  const digits = isSmall
    ? { maximumSignificantDigits: 2 }
    : { minimumFractionDigits: currency === credits ? 0 : minorDigits, maximumFractionDigits: minorDigits };
  return written(amount, currency, { ...digits, roundingMode: rounding === "down" ? "floor" : "halfExpand" });
}

/** An amount with all of its digits, for a receipt: `$0.0001644`. */
export function moneyInFull({ amount, currency }: Money): string {
  const least = currency === credits ? 0 : minorDigitsOf(currency);
  return written(amount, currency, { minimumFractionDigits: least, maximumFractionDigits: nano_decimals });
}

/** The price of many tokens, such as a million, with up to six decimals: `$0.20`, `$0.0125`. */
export function priceWritten({ amount, currency }: Money): string {
  return written(amount, currency, { minimumFractionDigits: minorDigitsOf(currency), maximumFractionDigits: 6 });
}

/** A short amount for the marks of an axis: `$1.5K`, `$0.002`. */
export function moneyShort(value: number, currency: string): string {
  return written(String(value), currency, { notation: "compact", maximumSignificantDigits: 3 });
}

const credits = "credits";

function minorDigitsOf(currency: string): number {
  if (currency === credits) return 2;
  return new Intl.NumberFormat("en-US", styleOf(currency)).resolvedOptions().maximumFractionDigits ?? 2;
}

const styleOf = (currency: string) =>
  currency === credits ? {} : ({ style: "currency", currency, currencyDisplay: "narrowSymbol" } as const);

function written(amount: string, currency: string, how: object): string {
  const format = new Intl.NumberFormat("en-US", { ...styleOf(currency), ...how });
  const text = format.format(amount as Intl.StringNumericLiteral);
  return currency === credits ? `${text} credits` : text;
}

/** An amount with all its digits, for a title. */
export const exactly = ({ amount, currency }: Money) => `${amount} ${currency}`;

/** An amount as a plain number, for bars and charts, which need no exact one. */
export const figureOf = ({ amount }: Money) => Number(amount);

export function nanosOf({ amount }: Pick<Money, "amount">): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(nano_decimals, "0"));
}

export function moneyOf(nanos: bigint, currency: string): Money {
  const digits = (nanos < 0n ? -nanos : nanos).toString().padStart(nano_decimals + 1, "0");
  const amount = `${digits.slice(0, -nano_decimals)}.${digits.slice(-nano_decimals)}`;
  return { amount: nanos < 0n ? `-${amount}` : amount, currency };
}

/** Amounts of money as the pages write them. Pure. */

export interface Money {
  /** A decimal number, exact. */
  amount: string;
  currency: string;
}

/** `$50.00`; below a hundredth of it, two digits: `$0.00021`. What is left of a limit is rounded `down`. */
export function moneyWritten({ amount, currency }: Money, rounding: "nearest" | "down" = "nearest"): string {
  const isCredits = currency === "credits";
  const style = isCredits ? {} : ({ style: "currency", currency, currencyDisplay: "narrowSymbol" } as const);
  const plain = new Intl.NumberFormat("en-US", style);
  const minorDigits = isCredits ? 2 : (plain.resolvedOptions().maximumFractionDigits ?? 2);
  const size = Math.abs(Number(amount));
  const isSmall = size !== 0 && size < 10 ** -minorDigits;
  const digits = isSmall
    ? { maximumSignificantDigits: 2 }
    : { minimumFractionDigits: isCredits ? 0 : minorDigits, maximumFractionDigits: minorDigits };
  const roundingMode = rounding === "down" ? "floor" : "halfExpand";
  const format = new Intl.NumberFormat("en-US", { ...style, ...digits, roundingMode } as Intl.NumberFormatOptions);
  const written = format.format(amount as Intl.StringNumericLiteral);
  return isCredits ? `${written} credits` : written;
}

/** All its digits, for a title. */
export const exactly = ({ amount, currency }: Money) => `${amount} ${currency}`;

/** For bars and charts, which need no exact one. */
export const figureOf = ({ amount }: Money) => Number(amount);

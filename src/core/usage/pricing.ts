/** The cost of nanos in money: exact decimals, so that the costs of a report's rows add up to that of the whole. Pure. */

export interface Pricing {
  /** ISO 4217. */
  currency: string;
  /** With nine decimals at most. */
  price_per_million_nanos: number;
  /** The name of the biller, for FOCUS. */
  provider: string;
}

const price_decimals = 9;
/** A million nanos, as a power of ten. */
const unit_decimals = 6;

/** Returns a function of nanos that calculates their cost, as a decimal number. */
export function costsAt(price_per_million_nanos: number): (nanos: number) => string {
  const price = scaled(price_per_million_nanos);
  const price_number = Number(price);
  return (nanos) => {
    // Most products are exact as a number, which is several times as fast.
    const cost = nanos * price_number;
    return decimal(Number.isSafeInteger(cost) ? cost : BigInt(nanos) * price, price_decimals + unit_decimals);
  };
}

/** The price of one unit, as a decimal number. */
export function unitPrice(price_per_million_nanos: number): string {
  return decimal(scaled(price_per_million_nanos), price_decimals + unit_decimals);
}

function scaled(price: number): bigint {
  return BigInt(price.toFixed(price_decimals).replace(".", ""));
}

/** `value` ÷ 10^decimals without zeros at the end. */
function decimal(value: bigint | number, decimals: number): string {
  const digits = (value < 0 ? -value : value).toString().padStart(decimals + 1, "0");
  const fraction = digits.slice(-decimals).replace(/0+$/, "");
  const whole = digits.slice(0, -decimals);
  return `${value < 0 ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}

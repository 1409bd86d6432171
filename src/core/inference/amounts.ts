/** Writes amounts for people. Pure. */

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

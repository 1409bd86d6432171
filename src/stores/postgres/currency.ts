/** The currency in which a database counts, set when the first node starts with it. */
import type { Querying } from "./database.ts";

/** The database's currency. Null if no node has started with the database yet. */
export async function currencyOf(db: Querying): Promise<string | null> {
  const [row] = await db.query<{ currency: string | null }>("select currency from usage_ledger");
  return row!.currency;
}

/** Sets the currency of a new database. Returns the database's currency. */
export async function claimCurrency(db: Querying, currency: string): Promise<string> {
  await db.query("update usage_ledger set currency = $1 where currency is null", [currency]);
  return (await currencyOf(db)) ?? currency;
}

/** The problem to report if the currency in sluice.yaml is not the database's; null if they are equal. */
export function problemOfCurrencies(stored: string, written: string): string | null {
  if (stored === written) return null;
  return `This database counts in ${stored}; sluice.yaml says ${written}. Amounts are not converted: set metering.currency to ${stored}, or use a new database`;
}

/** The currency in which a database counts, set by its first start. */
import type { Database } from "./database.ts";

/** The currency; null: no node has started with the database yet. */
export async function currencyOf(db: Pick<Database, "query">): Promise<string | null> {
  const [row] = await db.query<{ currency: string | null }>("select currency from usage_ledger");
  return row!.currency;
}

/** Sets the currency of a new database. Returns the one that the database has. */
export async function claimCurrency(db: Pick<Database, "query">, currency: string): Promise<string> {
  await db.query("update usage_ledger set currency = $1 where currency is null", [currency]);
  return (await currencyOf(db)) ?? currency;
}

/** The reason why a file does not fit the database's currency; null: it does. */
export function problemOfCurrencies(stored: string, written: string): string | null {
  if (stored === written) return null;
  return `This database counts in ${stored}; sluice.yaml says ${written}. Amounts are not converted: set metering.currency to ${stored}, or use a new database`;
}

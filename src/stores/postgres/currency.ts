/** The currency in which a database counts: that of its first start. */
import type { Database } from "./database.ts";

/** The currency of the database; null: no node has started with it. */
export async function currencyOf(db: Pick<Database, "query">): Promise<string | null> {
  const [row] = await db.query<{ currency: string | null }>("select currency from usage_ledger");
  return row!.currency;
}

/** Gives a new database its currency. Returns the one that it has. */
export async function claimCurrency(db: Pick<Database, "query">, currency: string): Promise<string> {
  await db.query("update usage_ledger set currency = $1 where currency is null", [currency]);
  return (await currencyOf(db)) ?? currency;
}

/** What keeps a file from this database; null: nothing. */
export function problemOfCurrencies(stored: string, written: string): string | null {
  if (stored === written) return null;
  return `This database counts in ${stored}; sluice.yaml says ${written}. Amounts are not converted: set metering.currency to ${stored}, or use a new database`;
}

import type { Transaction } from "../../../src/stores/postgres/database.ts";

/** Runs work in a transaction, and throws at its end, so that the transaction is rolled back. */
export async function rolledBack(
  transaction: Transaction["transaction"],
  work: (tx: Transaction) => Promise<void>,
): Promise<void> {
  const over = new Error("rolled back on purpose");
  const worked = transaction(async (tx) => {
    await work(tx);
    throw over;
  });
  await worked.catch((error: unknown) => {
    if (error !== over) throw error;
  });
}

/**
 * Batches whose transaction is rolled back: for warming up (docs/design/runtime.md, Warming up). The verbs run on the
 * connection that will carry them, over an organization that only its transaction sees, so that nothing of them stays and
 * nobody waits for them.
 */
import { hexOf } from "../store/ids.ts";
import type { Command, Ledger } from "../store/ledger.ts";
import type { Lane, Rehearsal, Transaction } from "./database.ts";
import { decodeAnswers } from "./ledger-answers.ts";
import { batchCall, durableBatchCall, encodeBatch } from "./ledger-batch.ts";
import { inWaves } from "./ledger-waves.ts";

type Work = (run: Ledger["run"]) => Promise<void>;

const creation = "insert into organization (id, slug, name, anchor_at) values ($1, 'warm-up-' || $2, '', store_now())";

/** `isDurable`: batches are carried by the durable call. */
export async function rehearsed(lane: Rehearsal, isDurable: boolean, organizationId: string, work: Work) {
  // It commits by itself, and cannot be rolled back: with no command in it, it prepares the statement and writes no row.
  if (isDurable) await batchOn(lane, durableBatchCall, []);
  await lane.rolledBack(async (tx) => {
    const id = hexOf(organizationId, "org_");
    await tx.query(creation, [id, id]);
    await work((commands) => inWaves(commands, async (wave) => (await batchOn(tx, batchCall, wave)).answers));
  });
}

/** One call for a batch, in which no request has two commands. */
export async function batchOn(
  on: Pick<Lane, "query"> | Pick<Transaction, "query">,
  call: string,
  commands: readonly Command[],
) {
  const [row] = await on.query<{ answers: string }>(call, encodeBatch(commands));
  return decodeAnswers(commands, row!.answers);
}

/**
 * Batches whose transaction is rolled back: for warming up (docs/design/runtime.md, Warming up). The verbs run on the
 * connection that will carry them, over an organization that only its transaction sees, so that nothing of them stays and
 * nobody waits for them.
 */
import { bare, hexOf } from "../store/ids.ts";
import type { Command } from "../store/ledger.ts";
import type { Stage, Understudy } from "../store/rehearsal.ts";
import type { Lane, Rehearsal, Transaction } from "./database.ts";
import { directory } from "./directory.ts";
import { decodeAnswers } from "./ledger-answers.ts";
import { batchCall, durableBatchCall, encodeBatch } from "./ledger-batch.ts";
import { inWaves } from "./ledger-waves.ts";

const casting = `
  with organized as (
    insert into organization (id, slug, name, plan, anchor_at) values ($1, $2, '', $3, store_now())
  ), keyed as (
    insert into api_key (id, organization_id, name, scopes) values ($4, $1, '', '{inference:create}')
  )
  insert into key_secret (key_id, number, hash, prefix, suffix) values ($4, 1, $5, '', '')`;

/** `isDurable`: batches are carried by the durable call. */
export async function rehearsed(
  lane: Rehearsal,
  isDurable: boolean,
  { organizationId, keyId, keyHash, plan }: Understudy,
  work: (stage: Stage) => Promise<void>,
): Promise<void> {
  // It commits by itself, and cannot be rolled back: with no command in it, it prepares the statement and writes no row.
  if (isDurable) await batchOn(lane, durableBatchCall, []);
  await lane.rolledBack(async (tx) => {
    const slug = `warm-up-${hexOf(organizationId, "org_")}`;
    await tx.query(casting, [bare(organizationId, "org_"), slug, plan, bare(keyId, "key_"), keyHash]);
    const credential = await directory(tx).credential(keyHash);
    if (!credential) throw new Error("the directory does not know the key for warming up");
    await work({
      credential,
      run: (commands) => inWaves(commands, async (wave) => (await batchOn(tx, batchCall, wave)).answers),
    });
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

/**
 * Batches whose transaction is rolled back, for warming up (docs/design/runtime.md, Warming up). The verbs run on the
 * connection that will carry them, for an organization that only its transaction sees, so that they leave no trace and
 * nobody waits for them.
 */

import type { DryRun, DryRunCaller } from "../../core/store/dry-run.ts";
import { bare, hexOf } from "../../core/store/ids.ts";
import type { Command } from "../../core/store/ledger.ts";
import type { DryRunLane, Lane, Transaction } from "./database.ts";
import { directory } from "./directory.ts";
import { decodeAnswers } from "./ledger-answers.ts";
import { batchCall, durableBatchCall, encodeBatch } from "./ledger-batch.ts";
import { inWaves } from "./ledger-waves.ts";

const creation = `
  with organized as (
    insert into organization (id, slug, name, plan, anchor_at) values ($1, $2, '', $3, store_now())
  ), keyed as (
    insert into api_key (id, organization_id, name, scopes) values ($4, $1, '', '{inference:create}')
  )
  insert into key_secret (key_id, number, hash, prefix, suffix) values ($4, 1, $5, 'slk_', '')`;

/** `isDurable`: batches use the durable call. */
export async function dryRunOn(
  lane: DryRunLane,
  isDurable: boolean,
  { organizationId, keyId, keyHash, plan }: DryRunCaller,
  work: (dryRun: DryRun) => Promise<void>,
): Promise<void> {
  // It commits by itself, and cannot be rolled back. Without a command in it, it prepares the statement and writes no
  // row.
  if (isDurable) await batchOn(lane, durableBatchCall, []);
  await lane.rolledBack(async (tx) => {
    const slug = `warm-up-${hexOf(organizationId, "org_")}`;
    await tx.query(creation, [bare(organizationId, "org_"), slug, plan, bare(keyId, "key_"), keyHash]);
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

/**
 * Warms up a store (docs/design/runtime.md, Warming up): the work is that of real requests, for a caller that nobody
 * else sees, and all of it is rolled back.
 */
import type { Credential } from "./directory.ts";
import type { Ledger } from "./ledger.ts";

/** The caller that the store makes for the dry run. */
export interface DryRunCaller {
  organizationId: string;
  keyId: string;
  /** The hash of the key's one secret. */
  keyHash: Uint8Array;
  plan: string;
}

export interface DryRun {
  run: Ledger["run"];
  /** The credential that the directory returns for the key. */
  credential: Credential;
}

export interface DryRunning {
  /**
   * Calls `work` on each connection that carries batches, one after another. At the signal, the store is no longer
   * waited for.
   */
  dryRun(caller: DryRunCaller, work: (dryRun: DryRun) => Promise<void>, signal: AbortSignal): Promise<void>;
}

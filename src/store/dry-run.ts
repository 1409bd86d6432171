/**
 * Warming up a store (docs/design/runtime.md, Warming up): what is done is as real as any request's, for a caller that
 * nobody else sees, and all of it is rolled back.
 */
import type { Credential } from "./directory.ts";
import type { Ledger } from "./ledger.ts";

/** Whom the store makes for as long as it lasts. */
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
  /** Calls `work` on each connection that carries batches, one after the other. At the signal nobody waits for the store any more. */
  dryRun(caller: DryRunCaller, work: (dryRun: DryRun) => Promise<void>, signal: AbortSignal): Promise<void>;
}

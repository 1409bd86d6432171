/**
 * EXISTING SECRETS: a hint as to which secrets of keys exist, so that a node does not treat a valid key as unknown
 * because it has not seen it yet (docs/design/keys.md, Keys that exist). The hint is read at start and whenever
 * announcements may have been missed, and announcements keep it current in between. The directory still decides: a
 * secret in this set is looked up like any other.
 */
import type { SecretHint } from "../../core/auth/authenticate.ts";
import { type Clock, idleClock } from "../../core/time/clock.ts";
import { Fingerprints } from "./fingerprints.ts";
import { type ExistingSecretsStore, fingerprint_bytes } from "./store/existing-secrets.ts";

/** The number of fingerprints that 32 MiB hold. */
const existingSecrets_max = 3 * 2 ** 20;
const retry_ms = 1_000;
/**
 * The longest time after which all secrets are read anew, because only reading forgets those that no longer exist:
 * access tokens last an hour. Each process waits for a random part of that time, at least half.
 */
const again_ms = 24 * 3_600_000;

export function existingSecrets(parts: {
  store: ExistingSecretsStore;
  /** Called for each failed attempt to read; another attempt follows. */
  failed(cause: unknown): void;
  entries_max?: number;
  clock?: Pick<Clock, "after">;
  random?: () => number;
}) {
  const { store, failed, entries_max = existingSecrets_max, clock = idleClock(), random = Math.random } = parts;
  const read = Promise.withResolvers<void>();
  let complete = new Fingerprints(entries_max);
  /** The set that is being filled; null if the secrets are not being read now. */
  let coming: Fingerprints | null = null;
  let isOutdated = false;
  let isStopped = false;
  let running: Promise<void> | null = null;
  let wake = () => {};
  let cancelAgain = () => {};

  async function readWhileOutdated(): Promise<void> {
    while (isOutdated && !isStopped) {
      try {
        await readAll();
      } catch (cause) {
        isOutdated = true;
        failed(cause);
        await pause();
      }
    }
    running = null;
    cancelAgain();
    if (!isStopped) cancelAgain = clock.after(again_ms * (0.5 + 0.5 * random()), reload);
  }

  /** Reads all secrets again, after announcements may have been missed. Known secrets stay known meanwhile. */
  function reload(): void {
    isOutdated = true;
    running ??= readWhileOutdated();
  }

  async function pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    const cancel = clock.after(retry_ms, resolve);
    await promise;
    cancel();
  }

  /** Reads the secrets that exist now. Secrets that are committed later are announced. */
  async function readAll(): Promise<void> {
    isOutdated = false;
    const fresh = new Fingerprints(entries_max);
    coming = fresh;
    let from: string | null = null;
    do {
      const piece = await store.piece(from);
      fresh.add(piece.fingerprints);
      from = piece.next;
    } while (from !== null && !fresh.isFull && !isStopped);
    complete = fresh;
    coming = null;
    read.resolve();
  }

  const hint: SecretHint = {
    has: (hash) => complete.has(hash) || coming?.has(hash) === true,
    add(hash) {
      const fingerprint = hash.subarray(0, fingerprint_bytes);
      complete.add(fingerprint);
      coming?.add(fingerprint);
    },
  };
  return {
    ...hint,
    reload,
    /** Resolves when all secrets were read once, or after `wait_ms` milliseconds. */
    async isRead(wait_ms: number): Promise<void> {
      const waited = Promise.withResolvers<void>();
      const cancel = clock.after(wait_ms, waited.resolve);
      await Promise.race([read.promise, waited.promise]);
      cancel();
    },
    count: () => complete.size,
    async stop() {
      isStopped = true;
      cancelAgain();
      wake();
      await running;
    },
  };
}

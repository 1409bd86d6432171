/**
 * THE MODULE AUTH: finds out who is calling. credential.ts defines the form of a key, and finds the key in a request;
 * verdict.ts interprets the answer of the directory (the store of organizations, people and keys);
 * unknown-credentials.ts bounds the cost of unknown keys; features/secrets knows which secrets exist. This file puts
 * them together.
 *
 * A node asks the directory once a second for a key in use (docs/design/keys.md, A known key is at most one second
 * old). Answers are immutable values (docs/design/keys.md, Cached answers are replaced, never changed). An answer is
 * kept until the next deadline in it (docs/design/keys.md, Deadlines are exact to the millisecond).
 */

import { Fault } from "../inference/fault.ts";
import type { Directory, Scope } from "../store/directory.ts";
import { within } from "../time/cancellation.ts";
import type { Soon } from "../time/turns.ts";
import { credentialOf, type HeaderSource, hashKey } from "./credential.ts";
import type { IdentityTokens } from "./identity-tokens.ts";
import { lastUsed, Remembered } from "./remembered.ts";
import {
  SlowRefusal,
  type UnknownCredentialLimits,
  unknownCredentialLimits,
  unknownCredentials,
} from "./unknown-credentials.ts";
import {
  AddressNotAllowed,
  deadlineIn,
  issuedAt,
  judge,
  type PeoplePolicy,
  type Principal,
  refusedAs,
  type Verdict,
} from "./verdict.ts";

export interface AuthenticatorLimits extends UnknownCredentialLimits {
  /** How long an answer of the directory is valid if no revocation message ends it sooner. */
  cache_ms: number;
  /** How many known keys are cached, and separately how many unknown ones: a flood of guesses evicts no known key. */
  cache_entries_max: number;
  /** The most look-ups that run at once; a request that needs a further one is refused as `overloaded`. */
  lookups_max: number;
  /** How long a request waits for a look-up before it fails with `storage_unavailable`. Called for each look-up. */
  lookup_ms(): number;
  /** How often the times at which keys were last used are written to the store. */
  touch_ms: number;
  /**
   * How long a request waits for its key's last use to be written, if that must happen before the request is served.
   */
  note_ms: number;
}

export const authenticatorLimits: AuthenticatorLimits = {
  ...unknownCredentialLimits,
  cache_ms: 1000,
  cache_entries_max: 10_000,
  lookups_max: 1000,
  lookup_ms: () => 3000,
  touch_ms: 5000,
  note_ms: 1000,
};

export interface Authenticator {
  /**
   * Returns the caller of a request with these headers; a promise unless the key is remembered as one to be served.
   * Rejects with Fault: 401, 403 `organization_suspended`, 429 `rate_limit_exceeded`, 503 `storage_unavailable` or
   * `overloaded`.
   */
  authenticate(headers: HeaderSource, address: string): Soon<Principal>;
  /**
   * Authenticates by the hash of a secret. For calls from inside the service: a client can only send the secret itself.
   */
  authenticateSecret(secretHash: Uint8Array, address: string): Promise<Principal>;
  /**
   * The directory's answer for a secret that was valid before, at most one second old. Rejects if the directory does
   * not answer.
   */
  standing(secretHash: string): Promise<Verdict>;
  /**
   * Forgets what is known about a changed key, organization or person (its id), so that the next request asks the
   * directory. `secretHash`: the hash of a new secret of the key, in hexadecimal digits.
   */
  forget(id: string, secretHash?: string): void;
  /** The number of keys that are remembered as not existing. */
  absent(): number;
  /** Writes to the store the times of last use that are not written yet. Never rejects. */
  stop(): Promise<void>;
}

interface Lookup {
  sent_ms: number;
  answer: Promise<Verdict>;
}

/** A hint as to which secrets exist. The directory still decides. */
export interface SecretHint {
  has(hash: Uint8Array): boolean;
  add(hash: Uint8Array): void;
}

/**
 * Makes an authenticator. `now_ms` is monotonic. `failed` is called for times of last use that could not be written;
 * they are tried again.
 */
export function authenticator(options: {
  directory: Directory;
  now_ms: () => number;
  limits?: Partial<AuthenticatorLimits>;
  /** The secrets that are known to exist. Absent: a secret counts as unknown until it was looked up or announced. */
  existing?: SecretHint;
  /** The settings in force for the keys of people. Absent or null: the settings end no keys. */
  policy?: () => PeoplePolicy | null;
  /** The identity tokens that are accepted in place of keys. Absent: none are accepted. */
  tokens?: IdentityTokens;
  failed?: (cause: unknown) => void;
}): Authenticator {
  const { directory, now_ms, existing, tokens } = options;
  const limits = { ...authenticatorLimits, ...options.limits };
  const remembered = new Remembered(limits.cache_entries_max);
  const unknown = unknownCredentials(limits, now_ms);
  const lookups = new Map<string, Lookup>();
  const uses = lastUsed({
    touch: (used, how) => directory.touch(used, how),
    every_ms: limits.touch_ms,
    note_ms: limits.note_ms,
    failed: options.failed ?? (() => {}),
  });
  let lookupsRunning = 0;

  function lookUp(hash: string, key: Uint8Array, sent_ms: number, address: string): Promise<Verdict> {
    const running = lookups.get(hash);
    if (running && sent_ms - running.sent_ms < limits.cache_ms) return running.answer;
    if (lookupsRunning >= limits.lookups_max) {
      throw new Fault("overloaded", "The service is checking too many API keys at once. Please try again.", {
        retryAfterSeconds: 1,
      });
    }
    lookupsRunning++;
    // Ask one microtask later, when `lookups` holds the entry, so that even an immediate failure removes it.
    const lookup: Lookup = { sent_ms, answer: Promise.resolve().then(() => ask()) };
    lookups.set(hash, lookup);
    return lookup.answer;

    async function ask(): Promise<Verdict> {
      try {
        const isExpected = remembered.isKnown(hash) || existing?.has(key) === true;
        const credential = await (isExpected ? directory.credential(key) : ofUnknown(key, address));
        const policy = options.policy?.() ?? null;
        const verdict = judge(credential, hash, policy);
        // The verdict is not kept if `forget` or a later look-up has replaced this look-up: it may have been read
        // before the change.
        if (lookups.get(hash) === lookup) {
          const until_ms = sent_ms + Math.min(limits.cache_ms, deadlineIn(credential, policy));
          remembered.keep(hash, { verdict, until_ms }, now_ms());
        }
        return verdict;
      } finally {
        lookupsRunning--;
        if (lookups.get(hash) === lookup) lookups.delete(hash);
      }
    }
  }

  async function ofUnknown(key: Uint8Array, address: string) {
    const place = await unknown.enter(address);
    let isFruitless = false;
    try {
      const credential = await directory.credential(key);
      isFruitless = credential === null;
      return credential;
    } finally {
      place.leave(!isFruitless);
    }
  }

  /** The verdict on the key of a request. It is a promise only if the directory has to be asked. */
  function verdictOn(hash: string, key: Uint8Array, address: string): Soon<Verdict> {
    const now = now_ms();
    return remembered.verdict(hash, now) ?? verdictWithin(lookUp(hash, key, now, address), limits.lookup_ms());
  }

  function verdictOnKey(headers: HeaderSource, address: string): Soon<Verdict> {
    const bytes = hashKey(credentialOf(headers));
    return verdictOn(bytes.toHex(), bytes, address);
  }

  async function verdictOnToken(tokens: IdentityTokens, token: string, address: string): Promise<Verdict> {
    const found = tokens.known(token, address);
    const known = found instanceof Promise ? await found : found;
    if (!remembered.isKnown(known.hash)) remembered.expect(known.hash);
    const looked = verdictOn(known.hash, known.keyHash, address);
    const verdict = looked instanceof Promise ? await looked : looked;
    if (known.own === null || known.seen !== verdict) {
      known.seen = verdict;
      known.own = issuedAt(verdict, known.issuedAt_ms);
    }
    return known.own;
  }

  function principalBy(verdict: Verdict, address: string): Soon<Principal> {
    if ("refusal" in verdict) throw refusedAs(verdict);
    if (verdict.admits?.(address) === false) throw new AddressNotAllowed(verdict.principal);
    const { principal, isToNote } = verdict;
    if (isToNote) return noted(principal, address);
    uses.add(principal.key.id, address);
    return principal;
  }

  /** Writes this use of the key, because the verdict demands it. After that, the remembered verdict is out of date. */
  async function noted(principal: Principal, address: string): Promise<Principal> {
    const { id } = principal.key;
    if (await uses.note(id, address)) remembered.forget(id);
    return principal;
  }

  async function refused(token: string | null, address: string, thrown: unknown): Promise<never> {
    if (!(thrown instanceof Fault && thrown.status === 401)) throw thrown;
    throw (token ? tokens! : unknown).failed(address, thrown);
  }

  return {
    authenticate(headers, address) {
      const token = tokens?.in(headers) ?? null;
      try {
        const found = tokens && token ? verdictOnToken(tokens, token, address) : verdictOnKey(headers, address);
        if (!(found instanceof Promise)) return principalBy(found, address);
        return found.then((verdict) => principalBy(verdict, address)).catch((cause) => refused(token, address, cause));
      } catch (thrown) {
        return refused(token, address, thrown);
      }
    },
    async authenticateSecret(secretHash, address) {
      const hash = secretHash.toHex();
      if (!remembered.isKnown(hash)) remembered.expect(hash);
      return principalBy(await verdictOn(hash, secretHash, address), address);
    },
    async standing(secretHash) {
      const [hash = "", issuedAt_ms] = secretHash.split(" ");
      const verdict = await verdictOn(hash, Uint8Array.fromHex(hash), "");
      return issuedAt_ms === undefined ? verdict : issuedAt(verdict, Number(issuedAt_ms));
    },
    forget(id, secretHash) {
      remembered.forget(id);
      if (secretHash !== undefined) {
        remembered.expect(secretHash);
        existing?.add(Uint8Array.fromHex(secretHash));
      }
      lookups.clear();
    },
    absent: () => remembered.absent,
    stop: () => uses.stop(),
  };
}

export function requireScope(principal: Principal, scope: Scope): void {
  if (principal.key.scopes.includes(scope)) return;
  throw new Fault(
    "missing_scope",
    `This API key lacks the scope '${scope}', which this operation requires. Use a key that has it, or ask your administrator for one.`,
  );
}

/** The verdict on a key, if it comes in time. A failure or a time-out is an outage of the store. */
async function verdictWithin(answer: Promise<Verdict>, wait_ms: number): Promise<Verdict> {
  try {
    return await within(answer, wait_ms, "the directory of keys");
  } catch (cause) {
    if (cause instanceof SlowRefusal) throw cause;
    throw new Fault("storage_unavailable", "The service cannot check API keys at the moment. Please try again.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
}

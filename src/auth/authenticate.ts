/**
 * THE MODULE AUTH: who is calling. The form of a key (key.ts), where a request carries it (credential.ts), and whom it
 * stands for (here).
 *
 * A node asks the directory once a second for a key in use (docs/design/keys.md, A known key is at most one second old).
 * Answers are immutable values (docs/design/keys.md, Cached answers are replaced, never changed). An answer is kept until
 * the next deadline in it (docs/design/keys.md, Deadlines are exact to the millisecond).
 */
import { Fault } from "../inference/fault.ts";
import type { Credential, Directory, Scope } from "../store/directory.ts";
import { within } from "../time/deadline.ts";
import { credentialOf, type HeaderSource, unauthorized } from "./credential.ts";
import { hashKey } from "./key.ts";
import { lastUsed } from "./last-used.ts";

/** Who is calling. Shared by the requests of a second: never write to it. */
export interface Principal {
  readonly key: Readonly<Credential["key"]>;
  readonly organization: Readonly<Credential["organization"]>;
}

export interface AuthenticatorLimits {
  /** How long an answer of the directory is valid without a revocation message. */
  cache_ms: number;
  /** Known keys, and separately unknown ones: a flood of guesses evicts nobody. */
  cache_entries_max: number;
  /** Look-ups that run at once; beyond it, requests are refused as `overloaded`. */
  lookups_max: number;
  /** How long a request waits for a look-up before it is `storage_unavailable`. */
  lookup_ms: number;
  /** How often the last use of keys is written down. */
  touch_ms: number;
}

export const authenticatorLimits: AuthenticatorLimits = {
  cache_ms: 1000,
  cache_entries_max: 10_000,
  lookups_max: 1000,
  lookup_ms: 3000,
  touch_ms: 5000,
};

export interface Authenticator {
  /** Throws Fault: 401, 403 `organization_suspended`, 503 `storage_unavailable` or `overloaded`. */
  authenticate(headers: HeaderSource): Promise<Principal>;
  /** Something changed about this key or organization (its id): the next request asks the directory. */
  forget(keyOrOrganizationId: string): void;
  /** Writes down the last uses that are still unwritten. Never rejects. */
  stop(): Promise<void>;
}

/** Of the key and its organization. */
type Ids = readonly [keyId: string, organizationId: string];
type Verdict =
  | { principal: Principal }
  | { refusal: "suspended"; ids: Ids }
  | { refusal: keyof typeof refusals; ids: Ids | null };
type Refusal = Extract<Verdict, { refusal: string }>["refusal"];
interface Entry {
  verdict: Verdict;
  /** Monotonic; from here on the directory is asked again. */
  until_ms: number;
}
interface Lookup {
  sent_ms: number;
  answer: Promise<Verdict>;
}

/** `now_ms` is monotonic. `failed` hears of last uses that could not be written; they are tried again. */
export function authenticator(options: {
  directory: Directory;
  now_ms: () => number;
  limits?: Partial<AuthenticatorLimits>;
  failed?: (cause: unknown) => void;
}): Authenticator {
  const { directory, now_ms } = options;
  const limits = { ...authenticatorLimits, ...options.limits };
  const known = new Map<string, Entry>();
  const unknown = new Map<string, Entry>();
  const lookups = new Map<string, Lookup>();
  const uses = lastUsed({
    touch: (keyIds) => directory.touch(keyIds),
    every_ms: limits.touch_ms,
    failed: options.failed ?? (() => {}),
  });
  let lookupsRunning = 0;

  function cached(hash: string, now: number): Verdict | null {
    for (const cache of [known, unknown]) {
      const entry = cache.get(hash);
      if (!entry) continue;
      cache.delete(hash);
      if (now >= entry.until_ms) return null;
      cache.set(hash, entry);
      return entry.verdict;
    }
    return null;
  }

  function keep(hash: string, entry: Entry): void {
    const cache = isUnknown(entry.verdict) ? unknown : known;
    known.delete(hash);
    unknown.delete(hash);
    cache.set(hash, entry);
    // A Map keeps the order of insertion, and `cached` inserts anew: the first is the one unused for longest.
    if (cache.size > limits.cache_entries_max) cache.delete(cache.keys().next().value as string);
  }

  function lookUp(hash: string, key: Uint8Array, sent_ms: number): Promise<Verdict> {
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
        const credential = await directory.credential(key);
        const verdict = judge(credential);
        // Do not keep it if `forget` or a later look-up has replaced it: it may have been read before the change.
        if (lookups.get(hash) === lookup) {
          keep(hash, { verdict, until_ms: sent_ms + Math.min(limits.cache_ms, deadlineIn(credential)) });
        }
        return verdict;
      } finally {
        lookupsRunning--;
        if (lookups.get(hash) === lookup) lookups.delete(hash);
      }
    }
  }

  return {
    async authenticate(headers) {
      const bytes = hashKey(credentialOf(headers));
      const hash = bytes.toHex();
      const now = now_ms();
      const verdict = cached(hash, now) ?? (await answered(lookUp(hash, bytes, now), limits.lookup_ms));
      if ("refusal" in verdict) throw refusedAs(verdict);
      uses.add(verdict.principal.key.id);
      return verdict.principal;
    },
    forget(id) {
      for (const [hash, { verdict }] of known) if (concerns(verdict, id)) known.delete(hash);
      lookups.clear();
    },
    stop: () => uses.stop(),
  };
}

/** Throws Fault `missing_scope`, which names it. */
export function requireScope(principal: Principal, scope: Scope): void {
  if (principal.key.scopes.includes(scope)) return;
  throw new Fault(
    "missing_scope",
    `This API key lacks the scope '${scope}', which this operation requires. Use a key that has it, or ask your administrator for one.`,
  );
}

/** Waits for a look-up as long as a request can. A failure or a time-out is an outage of the store. */
async function answered(answer: Promise<Verdict>, wait_ms: number): Promise<Verdict> {
  try {
    return await within(answer, wait_ms, "the directory of keys");
  } catch (cause) {
    throw new Fault("storage_unavailable", "The service cannot check API keys at the moment. Please try again.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
}

/** A valid key of an organization that is not served: the caller is known all the same. */
export class Suspended extends Fault {
  constructor(
    readonly keyId: string,
    readonly organizationId: string,
  ) {
    super(
      "organization_suspended",
      "The organization that this API key belongs to is suspended. Ask your administrator.",
    );
  }
}

function refusedAs(verdict: Exclude<Verdict, { principal: Principal }>): Fault {
  return verdict.refusal === "suspended" ? new Suspended(...verdict.ids) : refusals[verdict.refusal]();
}

/** Whether the key exists, is valid, and belongs to an active organization, by the store's clock. */
function judge(credential: Credential | null): Verdict {
  if (!credential) return { refusal: "unknown", ids: null };
  const { key, organization } = credential;
  const refusal = refusalOf(credential);
  if (refusal) return { refusal, ids: [key.id, organization.id] };
  return { principal: Object.freeze({ key, organization }) };
}

function refusalOf({ key, secret, organization, readAt }: Credential): Refusal | null {
  const over = (deadline: Date | null) => deadline !== null && readAt.getTime() >= deadline.getTime();
  if (key.revokedAt) return "revoked";
  if (secret.revokedAt) return "replaced";
  if (over(key.expiresAt)) return "expired";
  if (over(secret.expiresAt)) return "rotated";
  return organization.status === "active" ? null : "suspended";
}

/** Milliseconds from the reading to the next deadline that would change the verdict. */
function deadlineIn(credential: Credential | null): number {
  if (!credential) return Number.POSITIVE_INFINITY;
  const { key, secret, readAt } = credential;
  const deadlines = [key.expiresAt, secret.expiresAt].flatMap((at) => (at ? [at.getTime() - readAt.getTime()] : []));
  return Math.min(...deadlines.filter((ms) => ms > 0), Number.POSITIVE_INFINITY);
}

function concerns(verdict: Verdict, id: string): boolean {
  if ("principal" in verdict) return verdict.principal.key.id === id || verdict.principal.organization.id === id;
  return verdict.ids?.includes(id) ?? false;
}

function isUnknown(verdict: Verdict): boolean {
  return "refusal" in verdict && verdict.refusal === "unknown";
}

const refusals = {
  unknown: () => unauthorized("invalid_api_key", "This API key does not exist. Check that it belongs to this service."),
  revoked: () => unauthorized("revoked_api_key", "This API key has been revoked. Use another one."),
  replaced: () =>
    unauthorized("revoked_api_key", "This API key was rotated, and its old secret was revoked. Use the new secret."),
  expired: () => unauthorized("expired_api_key", "This API key has expired. Ask your administrator for a new one."),
  rotated: () =>
    unauthorized("expired_api_key", "This API key was rotated and the grace period is over. Use the new secret."),
};

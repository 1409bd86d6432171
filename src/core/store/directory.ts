/**
 * The directory: organizations, their keys, and their history. The hot path asks one question, `credential`; administration is
 * another interface (src/admin/store). Implemented by `postgres` (one SQL for Postgres and PGlite). A denial is a value (null,
 * or a named refusal); a thrown error is an outage. Instants are Dates (UTC, milliseconds).
 */

import type { RatesOverPlan } from "./over-plan.ts";
import type { RateSubject } from "./rates.ts";

export const scopes = ["models:read", "inference:create", "usage:read"] as const;
export type Scope = (typeof scopes)[number];

/** An organization, as far as the requests of its callers need it. */
export interface CallerOrganization {
  /** `org_` + UUIDv7 hex. */
  id: string;
  slug: string;
  name: string;
  status: OrganizationStatus;
  /** The name of a plan of the catalog; null if it was removed (inference answers 402). */
  plan: string | null;
  /** False: no text of a request or an answer is stored. */
  keepsContent: boolean;
}

/** A closed organization stays closed. */
export const organizationStatuses = ["active", "suspended", "closed"] as const;
export type OrganizationStatus = (typeof organizationStatuses)[number];

/**
 * A use is recorded before it is served if the last recorded one is older than this, and an unused key ends this much
 * later than its organization says. So no key ends too early, even if a later record of its use is lost.
 */
export const useNoted_ms = 3_600_000;

/** The stored parts of a new secret. `hash` is the SHA-256 of the whole key. */
export interface NewSecret {
  hash: Uint8Array;
  /** First 8 and last 4 characters of the whole key. */
  prefix: string;
  suffix: string;
}

/** A key, as far as authentication needs it. */
export interface CredentialKey {
  /** `key_` + UUIDv7 hex; stays through rotations. */
  id: string;
  name: string;
  scopes: Scope[];
  /** Public model ids; null allows all. */
  models: string[] | null;
  /** Addresses and networks of its clients; null allows all. */
  allowFrom: string[] | null;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
}

/** Everything that authentication needs to know, from one indexed look-up. */
export interface Credential {
  key: CredentialKey;
  /** `expiresAt`: the exact end of a rotation's grace period. */
  secret: { createdAt: Date; expiresAt: Date | null; revokedAt: Date | null };
  /** The person whose key it is; null: it is the organization's. */
  person: KeyPerson | null;
  /** When the organization's policies end this secret (too old) and the key (unused); null: never. */
  ends: { lifetimeAt: Date | null; unusedAt: Date | null };
  organization: CallerOrganization;
  /** The names of the key's team and person, for the words of a refusal; null: it has none, or the name is not known. */
  names?: { team: string | null; person: string | null };
  /** The limits of the key, of its person and of its team, and those for models, if there are any, raises included. The narrowest first. */
  rates: readonly RateSubject[];
  /** The limits of a minute in the place of the plan's; absent or null: the plan's alone. */
  overPlan?: RatesOverPlan | null;
  /** The store's clock at the look-up. It decides about expiry, and never a node's clock. */
  readAt: Date;
}

/** `sign-in`: a device by which a person signed in. `jwt`: the identity tokens of a person. */
export const keyKinds = ["key", "sign-in", "jwt"] as const;
export type KeyKind = (typeof keyKinds)[number];

/** The person of a key, as far as the key depends on the person. */
export interface KeyPerson {
  /** `per_` + UUIDv7 hex. */
  id: string;
  kind: KeyKind;
  suspendedAt: Date | null;
  /** Tokens that were issued before this instant do not count; null: all do. */
  notBefore: Date | null;
  /** When the issuer last confirmed the person. */
  confirmedAt: Date;
  /** The rights of the membership in the key's organization; null: there is none. */
  rights: { scopes: Scope[]; models: string[] | null } | null;
}

export interface Directory {
  credential(keyHash: Uint8Array): Promise<Credential | null>;
  /**
   * Records the use of keys, and the address from which each was used; "" if it is unknown. If another writer has
   * locked a key, its use is not recorded, unless it is `certain`, which waits.
   */
  touch(uses: ReadonlyMap<string, string>, how?: "certain"): Promise<void>;
}

/** The actor, as the audit log records it. */
export type Actor = string;

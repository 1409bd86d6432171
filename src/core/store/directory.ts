/**
 * The directory: organizations, their keys, and their history. Inference requests need only one query of it,
 * `credential`; administration has another interface (src/admin/store). Implemented by `postgres` (one SQL for Postgres
 * and PGlite). A denial is returned as a value (null, or a named refusal); a thrown error means an outage. Instants are
 * Dates (UTC, milliseconds).
 */

import type { RateSubject, RatesOverPlan } from "./rates.ts";

export const scopes = ["models:read", "inference:create", "usage:read"] as const;
export type Scope = (typeof scopes)[number];

export interface CallerOrganization {
  /** `org_` + UUIDv7 hex. */
  id: string;
  slug: string;
  name: string;
  status: OrganizationStatus;
  /** The name of a plan of the catalog; null if the plan was removed (inference then gets 402). */
  plan: string | null;
  /** Whether the store keeps the text of the organization's requests and answers. */
  keepsContent: boolean;
}

/** A closed organization can never be opened again. */
export const organizationStatuses = ["active", "suspended", "closed"] as const;
export type OrganizationStatus = (typeof organizationStatuses)[number];

/**
 * If the last recorded use of a key is older than this, its next use is recorded before the request is served. Later
 * uses within this time are recorded without waiting, and such a record may be lost. The end of an unused key is
 * therefore this much later than its organization's policy says, so that no key ends too early because of a lost
 * record.
 */
export const useNoted_ms = 3_600_000;

/** The stored parts of a new secret. `hash` is the SHA-256 of the whole key. */
export interface NewSecret {
  hash: Uint8Array;
  /** First 8 and last 4 characters of the whole key. */
  prefix: string;
  suffix: string;
}

export interface CredentialKey {
  /** `key_` + UUIDv7 hex; a rotation of the key does not change it. */
  id: string;
  name: string;
  scopes: Scope[];
  /** Public model ids; null allows all. */
  models: string[] | null;
  /** Addresses and networks from which clients may use the key; null allows all. */
  allowFrom: string[] | null;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
}

/** Everything that authentication needs to know, from one indexed look-up. */
export interface Credential {
  key: CredentialKey;
  /** `expiresAt`: the exact end of the grace period after a rotation. */
  secret: { createdAt: Date; expiresAt: Date | null; revokedAt: Date | null };
  /** The person who owns the key; null: the organization owns it. */
  person: KeyPerson | null;
  /** When the organization's policies end this secret (by age) and the key (by disuse); null: never. */
  ends: { lifetimeAt: Date | null; unusedAt: Date | null };
  organization: CallerOrganization;
  /**
   * The names of the key's team and person, for messages of refusals; null: the key has no team or person, or the name
   * is not known.
   */
  names?: { team: string | null; person: string | null };
  /**
   * The limits per minute of the key, its person and its team, and their limits for single models. Each limit comes
   * with its raise (a temporary increase), if it has one. The narrowest limits come first.
   */
  rates: readonly RateSubject[];
  /** The organization's limits per minute that replace those of its plan; absent or null: the plan's limits apply. */
  overPlan?: RatesOverPlan | null;
  /** The store's clock at the look-up, which decides about expiry; a node's clock never does. */
  readAt: Date;
}

/**
 * The kinds of keys. `sign-in`: stands for a device on which a person is signed in. `jwt`: stands for the identity
 * tokens of a person.
 */
export const keyKinds = ["key", "sign-in", "jwt"] as const;
export type KeyKind = (typeof keyKinds)[number];

export interface KeyPerson {
  /** `per_` + UUIDv7 hex. */
  id: string;
  kind: KeyKind;
  suspendedAt: Date | null;
  /** Tokens that were issued before this instant are invalid; null: no token is invalid by its age. */
  notBefore: Date | null;
  confirmedAt: Date;
  /**
   * The rights of the person's membership in the key's organization, or of the last membership if it has ended; null:
   * the person was never a member.
   */
  rights: { scopes: Scope[]; models: string[] | null; hasEnded?: boolean } | null;
}

export interface Directory {
  credential(keyHash: Uint8Array): Promise<Credential | null>;
  /**
   * Records the use of keys. The map's value is the address from which the key was used; "" if the address is unknown.
   * If another writer has locked a key, its use is not recorded. With `certain`, the call waits for the lock instead.
   */
  touch(uses: ReadonlyMap<string, string>, how?: "certain"): Promise<void>;
}

/** The name of the person or token that makes a change, for the audit log. */
export type Actor = string;

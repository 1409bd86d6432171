/**
 * The directory: organizations, their keys, and their history. The hot path asks one question, `credential`; everything
 * else is for administration. Implemented by `postgres` (one SQL for Postgres and PGlite). A denial is a value (null,
 * or a named refusal); a thrown error is an outage. Instants are Dates (UTC, milliseconds).
 */

import type { Budget, BudgetAdministration } from "./budget.ts";
import type { WindowKind } from "./ledger.ts";
import type { OverShare, Page, PageOf, Repeat, Repeated } from "./page.ts";
import type { RaiseAdministration } from "./raise.ts";
import type { RateLimits, RateSubject } from "./rates.ts";

export const scopes = ["models:read", "inference:create", "usage:read"] as const;
export type Scope = (typeof scopes)[number];

export interface Organization {
  /** `org_` + UUIDv7 hex. */
  id: string;
  /** Lower-case letters, digits and hyphens, 1 to 63, unique. */
  slug: string;
  /** Earlier slugs of the organization. No other organization ever gets one of them. */
  formerSlugs: string[];
  name: string;
  status: OrganizationStatus;
  /** The name of a plan of the catalog; null if it was removed (inference answers 402). */
  plan: string | null;
  /** The instant from which weeks and months are counted now, in whole milliseconds. */
  anchorAt: Date;
  /** An anchor that was set and is not in force yet: months are counted from it from then on. */
  nextAnchor: { anchorAt: Date; countsFrom: Date } | null;
  extraUsage: { enabled: boolean /** micro-units a billing month */; capUnits: number | null };
  /** How long a secret works after its creation, in days; null: until its key ends. */
  keyLifetimeMaxDays: number | null;
  /** How long a key works after its last use, in days; null: it need not be used. */
  keyUnusedMaxDays: number | null;
  /** False: no text of a request or an answer is stored. */
  keepsContent: boolean;
  createdAt: Date;
  closedAt: Date | null;
  /** Rises with each change. */
  version: number;
}

/** A closed organization stays closed. */
export const organizationStatuses = ["active", "suspended", "closed"] as const;
export type OrganizationStatus = (typeof organizationStatuses)[number];

/** The rules of an organization for its keys and for stored content. */
export type Policies = Pick<Organization, "keyLifetimeMaxDays" | "keyUnusedMaxDays" | "keepsContent">;

/**
 * A use is recorded before it is served if the last recorded one is older than this, and an unused key ends this much
 * later than its organization says. So no key ends too early, even if a later record of its use is lost.
 */
export const useNoted_ms = 3_600_000;

/** A key in the form that may be shown: never its secret. */
export interface Key {
  /** `key_` + UUIDv7 hex; stays through rotations. */
  id: string;
  kind: KeyKind;
  organizationId: string;
  name: string;
  scopes: Scope[];
  /** Public model ids; null allows all. */
  allowedModels: string[] | null;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  /** An address; for IPv6, its /64. */
  lastUsedFrom: string | null;
  /** The actor; null if it is not known any more. */
  createdBy: string | null;
  /** A person or a team, as free text. */
  owner: string | null;
  /** The person whose key it is; null: it is the organization's. */
  personId: string | null;
  labels: Record<string, string>;
  /** Addresses and networks of its clients; null allows all. */
  allowedAddresses: string[] | null;
  /** The status when the key was read, by the store's clock. */
  state: KeyState;
  /** When the key ended, or will end if nothing changes: revoked, expired, too old or unused. Null: never. */
  endsAt: Date | null;
  /** Rises with each change, but not with use. */
  version: number;
  /** The newest first. There are several during a rotation's grace period. */
  secrets: Secret[];
}

/** One secret of a key, in the form that may be shown. */
export interface Secret {
  /** First 8 and last 4 characters of the whole key. */
  prefix: string;
  suffix: string;
  createdAt: Date;
  /** The exact end of a rotation's grace period. */
  expiresAt: Date | null;
  revokedAt: Date | null;
}

/** The stored parts of a new secret. `hash` is the SHA-256 of the whole key. */
export interface NewSecret {
  hash: Uint8Array;
  prefix: string;
  suffix: string;
}

/** Everything that authentication needs to know, from one indexed look-up. */
export interface Credential {
  key: Pick<
    Key,
    "id" | "name" | "scopes" | "allowedModels" | "allowedAddresses" | "expiresAt" | "revokedAt" | "lastUsedAt"
  >;
  secret: Pick<Secret, "createdAt" | "expiresAt" | "revokedAt">;
  /** The person whose key it is; null: it is the organization's. */
  person: KeyPerson | null;
  /** When the organization's policies end this secret (too old) and the key (unused); null: never. */
  ends: { lifetimeAt: Date | null; unusedAt: Date | null };
  organization: Omit<Organization, "anchorAt" | "nextAnchor" | "version" | "formerSlugs">;
  /** The limits of the key, of its person and of its team, if they have any, raises included. */
  rates: readonly RateSubject[];
  /** The raise of the plan's limits of a minute; absent or null: they are not raised. */
  planRaise?: RateLimits | null;
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

export interface Administration extends BudgetAdministration, RaiseAdministration {
  createOrganization(input: {
    id: string;
    slug: string;
    name: string;
    plan: string | null;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<Organization | "slug_taken" | "no_plan" | Repeated>;
  listOrganizations(): Promise<Organization[]>;
  /** Returns a page of organizations, or of the one with this ID, in the order of their creation. */
  pageOrganizations(
    page: Page &
      OverShare & {
        organizationId?: string | undefined;
        status?: OrganizationStatus | undefined;
        plan?: string | undefined;
      },
  ): Promise<PageOf<Organization>>;
  /** Finds an organization by slug or ID. */
  findOrganization(slugOrId: string): Promise<Organization | null>;
  /** The organization that had this slug before it got another. */
  formerOwner(slug: string): Promise<Organization | null>;
  /**
   * Here and below, a `version` makes the change conditional: the organization must still have it. A closed
   * organization does not change.
   */
  setOrganizationStatus(
    id: string,
    status: Exclude<OrganizationStatus, "closed">,
    actor: Actor,
    version?: number | null,
  ): Promise<Changed>;
  renameOrganization(
    id: string,
    names: Partial<Pick<Organization, "slug" | "name">>,
    actor: Actor,
    version?: number | null,
  ): Promise<Changed | "slug_taken">;
  /**
   * Sets the given policies. Nothing more is stored for an organization that keeps no content; `purgeContent` deletes
   * the older content.
   */
  setPolicies(id: string, policies: Partial<Policies>, actor: Actor, version?: number | null): Promise<Changed>;
  /**
   * Closes an organization for good: revokes its keys and removes its plan, extra usage and webhook. Its records are
   * kept as long as others.
   */
  closeOrganization(id: string, actor: Actor, version?: number | null): Promise<Changed>;
  /** Deletes the stored content of an organization that is closed or keeps no content. */
  purgeContent(id: string): Promise<void>;
  /** In force at once; use and window boundaries stay. Null removes the plan. */
  setOrganizationPlan(
    id: string,
    plan: string | null,
    actor: Actor,
    version?: number | null,
  ): Promise<Changed | "no_plan">;
  /** Sets a new anchor for weeks and months, from the end of the running month on. */
  setOrganizationAnchor(id: string, anchorAt: Date, actor: Actor, version?: number | null): Promise<Changed>;
  /** If it is turned off, the cap stays: it still bounds running requests. */
  setExtraUsage(
    id: string,
    extra: { enabled: true; capUnits: number } | { enabled: false },
    actor: Actor,
    version?: number | null,
  ): Promise<Changed>;
  /** Writes compensating entries in the ledger (Ledger.adjust), all or none. Returns for each what was added. */
  adjustUsage(input: {
    organizationId: string;
    entries: readonly { entryId: string; kind: WindowKind | "extra" }[];
    units: number;
    reason: string;
    actor: Actor;
  }): Promise<UsageEntry[]>;

  createKey(input: {
    id: string;
    organizationId: string;
    name: string;
    scopes: Scope[];
    allowedModels: string[] | null;
    expiresAt: Date | null;
    owner: string | null;
    /** The person whose key it is: that person's limits count for it. Absent or null: the organization's. */
    personId?: string | null;
    labels: Record<string, string>;
    allowedAddresses: string[] | null;
    teamId: string | null;
    budget: Budget;
    secret: NewSecret;
    /** Whether the creation is refused if a key of the organization that is not revoked has this name. */
    hasOwnName?: boolean;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<Key | Repeated | "no_team" | "closed" | "name_taken">;
  /** Returns a page of the keys of one organization or of all, in the order of their creation. */
  pageKeys(
    page: Page &
      OverShare & {
        organizationId?: string | undefined;
        personId?: string | undefined;
        state?: KeyState | undefined;
        /** `key` if absent: only a list that names the kind has sign-ins or identity tokens. */
        kind?: KeyKind | undefined;
        /** Only keys that were unused for this long. A key that was never used counts from its creation. */
        unusedFor_ms?: number | undefined;
        /** Only keys that work, and end within this time by their own date or a policy. */
        endsWithin_ms?: number | undefined;
      },
  ): Promise<PageOf<Key>>;
  /**
   * Sets the given fields; the others stay, even if others change them meanwhile. A call that changes nothing writes nothing.
   */
  updateKey(id: string, change: KeyChange, actor: Actor, version?: number | null): Promise<Key | Stale<Key> | null>;
  findKey(id: string): Promise<Key | null>;
  /** Adds a secret; the ones before it end at `graceEndsAt` at the latest. */
  rotateKey(input: {
    id: string;
    secret: NewSecret;
    graceEndsAt: Date | null;
    actor: Actor;
  }): Promise<Key | "revoked" | null>;
  /** Revokes the key, or with `old` only the secrets that the newest one replaced. Idempotent. */
  revokeKey(input: { id: string; old: boolean; actor: Actor }): Promise<Key | null>;

  listAudit(input: AuditQuery): Promise<AuditEntry[]>;
  /** The current head of the chain. */
  auditHead(): Promise<AuditHead>;
}

export type KeyChange = Partial<
  Pick<Key, "name" | "scopes" | "allowedModels" | "allowedAddresses" | "expiresAt" | "owner" | "labels">
>;

/**
 * `expired`: past its expiry, or older than its organization allows. `unused`: unused for longer than that allows.
 * `active`: none of these.
 */
export const keyStates = ["active", "revoked", "expired", "unused"] as const;
export type KeyState = (typeof keyStates)[number];

/** The head of the audit log's chain after an entry. */
export interface AuditHead {
  number: number;
  /** Hexadecimal digits. */
  hash: string;
}

export interface AuditQuery {
  organizationId?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  /** Only entries about this plan. */
  plan?: string | undefined;
  /** Only entries about the thing with this id. */
  subject?: string | undefined;
  /** Only entries with a smaller number, or a greater one. */
  before?: number | undefined;
  after?: number | undefined;
  /** The newest first, unless it says `oldest`. */
  order?: "newest" | "oldest" | undefined;
  limit: number;
}

/** The actor, as the audit log records it. */
export type Actor = string;

/** It has changed since the version that the caller read. */
export interface Stale<What = Organization> {
  stale: What;
}

/** The organization after the change. Null if there is none. */
export type Changed = Organization | Stale | "closed" | null;

/** One compensating entry. `added` is null if there was no session to adjust. */
export interface UsageEntry {
  entryId: string;
  kind: WindowKind | "extra";
  added: number | null;
}

export interface AuditEntry {
  /** The entry's number, from 1 without gaps. */
  number: number;
  at: Date;
  /** The actor: `operator:<name>`, `cli:<user>`, `cli:<user> (claims <name>)`, or `service`. */
  actor: Actor;
  /** The address that the request came from; null for the node itself. */
  address: string | null;
  /** `organization.create`, `key.rotate`, … */
  action: string;
  organizationId: string | null;
  subject: string;
  details: Record<string, unknown>;
  /** See src/admin/store/audit-chain.ts. Null if it was written before there was a chain. */
  hash: string | null;
}

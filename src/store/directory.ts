/**
 * Who exists: organizations, their keys, and what was done to them. The hot path asks one question, `credential`; all
 * else is for administration. Implemented by `postgres` (one SQL for Postgres and PGlite).
 *
 * A denial is a value (null, or a named refusal); a thrown error is an outage. Instants are Dates (UTC, milliseconds).
 */

import type { Budget, BudgetAdministration } from "./budget.ts";
import type { WindowKind } from "./ledger.ts";
import type { Page, PageOf, Repeat, Repeated } from "./page.ts";
import type { RateSubject } from "./rates.ts";

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
  /** Name of a plan of the catalog; null when it was removed (inference answers 402). */
  plan: string | null;
  /** The instant from which weeks and months are counted now, in whole milliseconds. */
  anchorAt: Date;
  /** An anchor that was set and does not count yet: months are counted from it from then on. */
  nextAnchor: { anchorAt: Date; countsFrom: Date } | null;
  extraUsage: { enabled: boolean /** micro-units a billing month */; capUnits: number | null };
  /** How long a secret works from its making, in days; null: until its key ends. */
  keyLifetimeMaxDays: number | null;
  /** How long a key works from its last use, in days; null: it need not be used. */
  keyUnusedMaxDays: number | null;
  /** False: no word of a request or an answer is stored. */
  keepsContent: boolean;
  createdAt: Date;
  closedAt: Date | null;
  /** Rises with each change. */
  version: number;
}

/** One that is closed stays closed. */
export const organizationStatuses = ["active", "suspended", "closed"] as const;
export type OrganizationStatus = (typeof organizationStatuses)[number];

/** The rules of an organization for its keys and for content that is kept. */
export type Policies = Pick<Organization, "keyLifetimeMaxDays" | "keyUnusedMaxDays" | "keepsContent">;

/**
 * A use is written down before it is served where the last one that was is older than this; and a key that is not used
 * ends so much later than its organization says. So none ends too early, whatever became of a later note of its use.
 */
export const useNoted_ms = 3_600_000;

/** A key as it may be shown: never its secret. */
export interface Key {
  /** `key_` + UUIDv7 hex; stays through rotations. */
  id: string;
  organizationId: string;
  name: string;
  scopes: Scope[];
  /** Public model ids; null allows all. */
  allowedModels: string[] | null;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  /** An address; of IPv6, its /64. */
  lastUsedFrom: string | null;
  /** The actor; null where nobody knows any more. */
  createdBy: string | null;
  /** A person or a team, in any words. */
  owner: string | null;
  labels: Record<string, string>;
  /** Addresses and networks of its clients; null allows all. */
  allowedAddresses: string[] | null;
  /** The state when the key was read, by the store's clock. */
  state: KeyState;
  /** When the key ended, or will end if nothing changes: revoked, expired, too old or unused. Null: never. */
  endsAt: Date | null;
  /** Rises with each change; use is none. */
  version: number;
  /** Newest first; more than one while a rotation's grace runs. */
  secrets: Secret[];
}

/** One secret of a key, as it may be shown. */
export interface Secret {
  /** First 8 and last 4 characters of the whole key. */
  prefix: string;
  suffix: string;
  createdAt: Date;
  /** The exact end of a rotation's grace. */
  expiresAt: Date | null;
  revokedAt: Date | null;
}

/** The stored parts of a new secret. `hash` is the SHA-256 of the whole key. */
export interface NewSecret {
  hash: Uint8Array;
  prefix: string;
  suffix: string;
}

/** All that authentication needs to know, from one indexed look-up. */
export interface Credential {
  key: Pick<
    Key,
    "id" | "name" | "scopes" | "allowedModels" | "allowedAddresses" | "expiresAt" | "revokedAt" | "lastUsedAt"
  >;
  secret: Pick<Secret, "expiresAt" | "revokedAt">;
  /** When the organization's policies end this secret (as too old) and the key (as unused); null: never. */
  ends: { lifetimeAt: Date | null; unusedAt: Date | null };
  organization: Omit<Organization, "anchorAt" | "nextAnchor" | "version" | "formerSlugs">;
  /** Limits of the key and then of its team, where they have any. */
  rates: readonly RateSubject[];
  /** The store's clock at the look-up: it decides about expiry, never a node's. */
  readAt: Date;
}

export interface Directory {
  credential(keyHash: Uint8Array): Promise<Credential | null>;
  /**
   * Keys, and the address from which each was used; "" says nothing of it. Of a key that somebody else is writing,
   * nothing is noted, unless it is `certain`, which waits for him.
   */
  touch(uses: ReadonlyMap<string, string>, how?: "certain"): Promise<void>;
}

export interface Administration extends BudgetAdministration {
  createOrganization(input: {
    id: string;
    slug: string;
    name: string;
    plan: string | null;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<Organization | "slug_taken" | "no_plan" | Repeated>;
  listOrganizations(): Promise<Organization[]>;
  /** Pages through organizations in the order in which they were made. */
  pageOrganizations(
    page: Page & { status?: OrganizationStatus | undefined; plan?: string | undefined },
  ): Promise<PageOf<Organization>>;
  /** Finds an organization by slug or ID. */
  findOrganization(slugOrId: string): Promise<Organization | null>;
  /** Which organization had this slug before it got another. */
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
   * Sets the policies that are named. An organization that keeps no content gets none stored from then on;
   * `purgeContent` deletes the older content.
   */
  setPolicies(id: string, policies: Partial<Policies>, actor: Actor, version?: number | null): Promise<Changed>;
  /**
   * Closes an organization for good: revokes its keys and removes its plan, extra usage and webhook. Its records stay
   * for their time.
   */
  closeOrganization(id: string, actor: Actor, version?: number | null): Promise<Changed>;
  /** Drops what is stored of an organization that is closed or keeps no content. */
  purgeContent(id: string): Promise<void>;
  /** Counts at once; use and boundaries stay. Null takes the plan away. */
  setOrganizationPlan(
    id: string,
    plan: string | null,
    actor: Actor,
    version?: number | null,
  ): Promise<Changed | "no_plan">;
  /** A new anchor for weeks and months, from the end of the running month on. */
  setOrganizationAnchor(id: string, anchorAt: Date, actor: Actor, version?: number | null): Promise<Changed>;
  /** Turned off, the cap stays: it still bounds what runs. */
  setExtraUsage(
    id: string,
    extra: { enabled: true; capUnits: number } | { enabled: false },
    actor: Actor,
    version?: number | null,
  ): Promise<Changed>;
  /** Compensating entries in the ledger (Ledger.adjust), all or none; answers each with what was added. */
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
    labels: Record<string, string>;
    allowedAddresses: string[] | null;
    teamId: string | null;
    budget: Budget;
    secret: NewSecret;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<Key | Repeated | "no_team" | "closed">;
  /** Pages through the keys of one organization or of all, in the order in which they were made. */
  pageKeys(
    page: Page & {
      organizationId?: string | undefined;
      state?: KeyState | undefined;
      /** Only keys that were unused for so long. A key that was never used counts from its creation. */
      unusedFor_ms?: number | undefined;
    },
  ): Promise<PageOf<Key>>;
  /**
   * Sets the fields that are named; the others stay, whoever changes them meanwhile. A call that changes nothing writes
   * nothing.
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
  /** The present head of the chain. */
  auditHead(): Promise<AuditHead>;
}

export type KeyChange = Partial<
  Pick<Key, "name" | "scopes" | "allowedModels" | "allowedAddresses" | "expiresAt" | "owner" | "labels">
>;

/** `expired`: or older than its organization allows. `unused`: for longer than that. `active`: nothing of it all. */
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
  /** Only entries about this: an id. */
  subject?: string | undefined;
  /** Only entries with a smaller number, or a greater one. */
  before?: number | undefined;
  after?: number | undefined;
  /** Newest first, unless it says `oldest`. */
  order?: "newest" | "oldest" | undefined;
  limit: number;
}

/** Who acts, as the audit log has it. */
export type Actor = string;

/** It changed since the version that the caller has read. */
export interface Stale<What = Organization> {
  stale: What;
}

/** An organization as it is after a change. Null: there is none. */
export type Changed = Organization | Stale | "closed" | null;

/** One compensating entry; `added` is null where there was no session to adjust. */
export interface UsageEntry {
  entryId: string;
  kind: WindowKind | "extra";
  added: number | null;
}

export interface AuditEntry {
  /** The entry's number, from 1 without gaps. */
  number: number;
  at: Date;
  /** Who did it: `operator:<name>`, `cli:<user>`, `cli:<user> (claims <name>)`, or `service`. */
  actor: Actor;
  /** The address that the request came from; null: the node itself. */
  address: string | null;
  /** `organization.create`, `key.rotate`, … */
  action: string;
  organizationId: string | null;
  subject: string;
  details: Record<string, unknown>;
  /** src/store/audit-chain.ts; null where it was written before there was a chain. */
  hash: string | null;
}

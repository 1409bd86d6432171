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
  name: string;
  status: "active" | "suspended";
  /** Name of a plan of the catalog; null when it was removed (inference answers 402). */
  plan: string | null;
  /** Where weeks and months are counted from at this moment; whole milliseconds. */
  anchorAt: Date;
  /** An anchor that was set and does not count yet: months are counted from it from then on. */
  nextAnchor: { anchorAt: Date; countsFrom: Date } | null;
  extraUsage: { enabled: boolean /** micro-units a billing month */; capUnits: number | null };
  createdAt: Date;
  /** Rises with each change. */
  version: number;
}

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
  /** Newest first; more than one while a rotation's grace runs. */
  secrets: Secret[];
}

/** One secret of a key, as it may be shown. */
export interface Secret {
  /** First 8 and last 4 characters of the whole key. */
  prefix: string;
  suffix: string;
  createdAt: Date;
  /** When a rotation's grace ends; exact. */
  expiresAt: Date | null;
  revokedAt: Date | null;
}

/** What is stored of a new secret. `hash` is the SHA-256 of the whole key. */
export interface NewSecret {
  hash: Uint8Array;
  prefix: string;
  suffix: string;
}

/** All that authentication needs to know, from one indexed look-up. */
export interface Credential {
  key: Pick<Key, "id" | "name" | "scopes" | "allowedModels" | "allowedAddresses" | "expiresAt" | "revokedAt">;
  secret: Pick<Secret, "expiresAt" | "revokedAt">;
  organization: Omit<Organization, "anchorAt" | "nextAnchor" | "version">;
  /** Of the key and its team, where they have limits of their own; the key first. */
  rates: readonly RateSubject[];
  /** The store's clock at the look-up: it decides about expiry, never a node's. */
  readAt: Date;
}

export interface Directory {
  credential(keyHash: Uint8Array): Promise<Credential | null>;
  /** Keys, and the address from which each was used. Best effort, batched; never waited for by a request. */
  touch(uses: ReadonlyMap<string, string>): Promise<void>;
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
  /** In the order in which they were made. */
  pageOrganizations(
    page: Page & { status?: Organization["status"] | undefined; plan?: string | undefined },
  ): Promise<PageOf<Organization>>;
  /** By slug or by id. */
  findOrganization(slugOrId: string): Promise<Organization | null>;
  /** With a version, here and below: only if the organization has it still. */
  setOrganizationStatus(
    id: string,
    status: Organization["status"],
    actor: Actor,
    version?: number | null,
  ): Promise<Organization | Stale | null>;
  /** Counts at once; use and boundaries stay. Null takes the plan away. */
  setOrganizationPlan(
    id: string,
    plan: string | null,
    actor: Actor,
    version?: number | null,
  ): Promise<Organization | Stale | "no_plan" | null>;
  /** A new anchor for weeks and months, from the end of the running month on. */
  setOrganizationAnchor(
    id: string,
    anchorAt: Date,
    actor: Actor,
    version?: number | null,
  ): Promise<Organization | Stale | null>;
  /** Turned off, the cap stays: it still bounds what runs. */
  setExtraUsage(
    id: string,
    extra: { enabled: true; capUnits: number } | { enabled: false },
    actor: Actor,
    version?: number | null,
  ): Promise<Organization | Stale | null>;
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
    teamId: string | null;
    budget: Budget;
    secret: NewSecret;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<Key | Repeated | "no_team">;
  /** Of one organization or of all, in the order in which they were made. */
  pageKeys(
    page: Page & {
      organizationId?: string | undefined;
      state?: KeyState | undefined;
      /** Not used for so long; one that was never used counts from its creation. */
      unusedFor_ms?: number | undefined;
    },
  ): Promise<PageOf<Key>>;
  /** What is named is set; all else stays, whoever changes it meanwhile. An answer that changes nothing writes nothing. */
  updateKey(id: string, change: KeyChange, actor: Actor): Promise<Key | null>;
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
  /** Where the chain stands. */
  auditHead(): Promise<AuditHead>;
}

export type KeyChange = Partial<
  Pick<Key, "name" | "scopes" | "allowedModels" | "allowedAddresses" | "expiresAt" | "owner" | "labels">
>;

/** `active` is neither revoked nor expired. */
export const keyStates = ["active", "revoked", "expired"] as const;
export type KeyState = (typeof keyStates)[number];

/** Where the chain of the audit log stands after an entry. */
export interface AuditHead {
  number: number;
  /** In hexadecimal digits. */
  hash: string;
}

export interface AuditQuery {
  organizationId?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  /** Only entries about this plan. */
  plan?: string | undefined;
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
export interface Stale {
  stale: Organization;
}

/** One compensating entry; `added` is null where there was no session to adjust. */
export interface UsageEntry {
  entryId: string;
  kind: WindowKind | "extra";
  added: number | null;
}

export interface AuditEntry {
  /** From 1, without gaps. */
  number: number;
  at: Date;
  /** Who did it: `operator:<name>`, `cli:<user>`, `cli:<user> (claims <name>)`, or `service`. */
  actor: Actor;
  /** Where it was asked from; null: on the node. */
  address: string | null;
  /** `organization.create`, `key.rotate`, … */
  action: string;
  organizationId: string | null;
  subject: string;
  details: Record<string, unknown>;
  /** src/store/audit-chain.ts; null where it was written before there was a chain. */
  hash: string | null;
}

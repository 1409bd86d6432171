/** The administration of organizations, teams, keys and the audit log. Implemented by `postgres`. */
import Type from "typebox";
import { id, instant } from "../../core/operations/fields.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import type { Actor, KeyKind, NewSecret, OrganizationStatus } from "../../core/store/directory.ts";
import type { WindowKind } from "../../core/store/ledger.ts";
import type { Calendar } from "./calendar.ts";
import type { Stale, VersionedChange } from "./change.ts";
import type { Revocation, Rotation } from "./credential.ts";
import type { KeyChange, KeyState, StoredKey } from "./key.ts";
import type { LimitAdministration } from "./limits.ts";
import type { Organization, Policies } from "./organization.ts";
import type { OverShare, Page, PageOf, Repeat, Repeated } from "./page.ts";
import type { Searching } from "./search.ts";
import type { StoredTeam, TeamChange } from "./team.ts";

export interface Administration extends TeamAdministration, LimitAdministration, Searching {
  createOrganization(input: {
    id: string;
    slug: string;
    name: string;
    plan: string | null;
    calendar?: Calendar | null;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<Organization | "slug_taken" | "no_plan" | Repeated>;
  listOrganizations(): Promise<Organization[]>;
  /** Returns a page of organizations in the order of their creation, or only the organization with this ID. */
  pageOrganizations(
    page: Page &
      OverShare & {
        organizationId?: string | undefined;
        status?: OrganizationStatus | undefined;
        plan?: string | undefined;
      },
  ): Promise<PageOf<Organization>>;
  findOrganization(slugOrId: string): Promise<Organization | null>;
  /** Finds the organization that had this slug before it was renamed. */
  formerOwner(slug: string): Promise<Organization | null>;
  /**
   * Sets the status of an organization. Here and below, a `version` makes the change conditional: the organization must
   * still have this version. A closed organization cannot be changed.
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
   * Sets the given policies. If the organization from now on keeps no content, no new content is stored; `purgeContent`
   * deletes the older content.
   */
  setPolicies(id: string, policies: Partial<Policies>, actor: Actor, version?: number | null): Promise<Changed>;
  /**
   * Closes an organization for good: revokes its keys and removes its plan, extra usage and webhook. Its records are
   * kept as long as the records of other organizations.
   */
  closeOrganization(id: string, actor: Actor, version?: number | null): Promise<Changed>;
  /** Deletes the stored content of an organization that is closed or keeps no content. */
  purgeContent(id: string): Promise<void>;
  /**
   * Sets the plan, which takes effect immediately. The organization's usage and the boundaries of its usage windows
   * stay. Null removes the plan.
   */
  setOrganizationPlan(
    id: string,
    plan: string | null,
    actor: Actor,
    version?: number | null,
  ): Promise<Changed | "no_plan">;
  /**
   * Sets a new anchor (the instant from which weeks and months are counted), in force from the end of the current month
   * on.
   */
  setOrganizationAnchor(
    id: string,
    anchorAt: Date,
    actor: Actor,
    version?: number | null,
  ): Promise<Changed | "has_calendar">;
  /**
   * Sets a calendar for weeks and months, or removes it: from the end of the current week and month on, or immediately
   * if the organization has no usage yet. `calendarAfter` returns the new calendar for the current one; the
   * organization is locked meanwhile. `calendar_changes`: the calendar was already changed this month.
   */
  setOrganizationCalendar(
    id: string,
    calendarAfter: (before: Calendar | null) => Calendar | null,
    actor: Actor,
    version?: number | null,
  ): Promise<Changed | "calendar_changes">;
  /** The spelling of a time zone's name in the database; null: the database does not know the zone. */
  knownZone(name: string): Promise<string | null>;
  /** The time zones of calendars, with their UTC offsets in the coming year by the database's rules. */
  zones(): Promise<ZoneRules[]>;
  /**
   * The span between two local dates of a time zone, as the instants at which these days begin in the zone. `first` and
   * `end` are the two local dates, given as their midnights in UTC.
   * - `first` null: the first day of the current month in the zone.
   * - `end` null: tomorrow in the zone.
   *
   * `hasFullHours`: each day of the span begins at a full hour in UTC.
   */
  spanIn(zone: string, first: Date | null, end: Date | null): Promise<{ from: Date; to: Date; hasFullHours: boolean }>;
  /** Sets extra usage. If it is turned off, the cap stays stored: it still bounds running requests. */
  setExtraUsage(
    id: string,
    extra: { enabled: true; capNanos: number } | { enabled: false },
    actor: Actor,
    version?: number | null,
  ): Promise<Changed>;
  /**
   * Writes compensating entries in the ledger, all or none. Returns the amount that each entry added; for a repeated
   * request, the ids of the entries that the first request wrote, separated by spaces.
   */
  adjustUsage(input: {
    organizationId: string;
    entries: readonly { entryId: string; kind: WindowKind | "extra" }[];
    nanos: number;
    reason: string;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<UsageEntry[] | Repeated>;

  createKey(
    input: Pick<StoredKey, "id" | "organizationId" | "name" | "scopes" | "models" | "expiresAt" | "owner"> &
      Pick<StoredKey, "labels" | "allowFrom"> & {
        /** The key's own limits. */
        limits: Budget;
        /**
         * The person to whom the key belongs, and whose limits count for it. Absent or null: it belongs to the
         * organization.
         */
        personId?: string | null;
        teamId: string | null;
        secret: NewSecret;
        /**
         * Requires a unique name: the creation is refused if another key of the organization has the name and is not
         * revoked.
         */
        hasOwnName?: boolean;
        actor: Actor;
        repeat?: Repeat | undefined;
      },
  ): Promise<StoredKey | Repeated | "no_team" | "closed" | "name_taken">;
  /** Returns a page of the keys of one organization or of all, in the order of their creation. */
  pageKeys(
    page: Page &
      OverShare & {
        organizationId?: string | undefined;
        teamId?: string | undefined;
        personId?: string | undefined;
        state?: KeyState | undefined;
        /**
         * The kind of the keys; absent: `key`. Keys of sign-ins or identity tokens are listed only if this names their
         * kind.
         */
        kind?: KeyKind | undefined;
        /** Only keys that have not been used for this time. A key that was never used counts from its creation. */
        unusedFor_ms?: number | undefined;
        /** Only keys that are valid now and will end within this time, by their expiry or by a policy. */
        endsWithin_ms?: number | undefined;
      },
  ): Promise<PageOf<StoredKey>>;
  /**
   * Locks the key, passes it to `patch`, and sets the fields that `patch` returns; the other fields stay. If no field
   * differs, nothing is written. `no_team`: the organization has no such team.
   */
  updateKey(
    change: VersionedChange,
    patch: (now: StoredKey) => KeyChange,
  ): Promise<StoredKey | Stale<StoredKey> | "no_team" | null>;
  findKey(id: string): Promise<StoredKey | null>;
  rotateKey(rotation: Rotation): Promise<StoredKey | "revoked" | null>;
  revokeKey(revocation: Revocation): Promise<StoredKey | null>;

  listAudit(input: AuditQuery): Promise<NamedEntry[]>;
  /** The current head of the audit log's chain. */
  auditHead(): Promise<AuditHead>;
}

export interface TeamAdministration {
  createTeam(input: {
    id: string;
    organizationId: string;
    name: string;
    /** The team's own limits. */
    limits: Budget;
    actor: string;
    repeat?: Repeat | undefined;
  }): Promise<StoredTeam | "name_taken" | Repeated>;
  /** Lists the teams that were not removed, the oldest first. */
  listTeams(organizationId: string): Promise<StoredTeam[]>;
  /** Returns a page of the teams of one organization or of all, in the order of their creation. */
  pageTeams(page: Page & OverShare & { organizationId?: string | undefined }): Promise<PageOf<StoredTeam>>;
  /** Finds a team by its ID. `isOrWas`: also a removed team. */
  findTeam(id: string, which?: { isOrWas: true }): Promise<StoredTeam | null>;
  /** Locks the team, passes it to `patch`, and sets the fields that `patch` returns; the other fields stay. */
  updateTeam(
    change: VersionedChange,
    patch: (now: StoredTeam) => TeamChange,
  ): Promise<StoredTeam | Stale<StoredTeam> | "name_taken" | null>;
  /** Removes a team. Its keys stay, without a team. Null if the team no longer exists. */
  removeTeam(id: string, actor: string): Promise<StoredTeam | null>;
}

/** A head of the audit log's chain: the number and hash of an entry. */
export interface AuditHead {
  number: number;
  /** The hash in hexadecimal digits. */
  hash: string;
}

export interface AuditQuery {
  organizationId?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  plan?: string | undefined;
  /** Only entries about the thing with this id. */
  subject?: string | undefined;
  /** Only entries with a number below `before`, or above `after`. */
  before?: number | undefined;
  after?: number | undefined;
  /** The order of the entries; absent: `newest` first. */
  order?: "newest" | "oldest" | undefined;
  limit: number;
}

/** The UTC offsets of a time zone, with the span of time in which each is valid. */
export interface ZoneRules {
  zone: string;
  offsets: { from: Date; to: Date; seconds: number }[];
}

/** The outcome of a change: the changed organization; null if there is no such organization. */
export type Changed = Organization | Stale<Organization> | "closed" | null;

/** One compensating entry. `added` is null if nothing was added, because there was no session window to adjust. */
export interface UsageEntry {
  entryId: string;
  kind: WindowKind | "extra";
  added: number | null;
}

/**
 * An entry of the audit log, with the names that the things whose IDs it has have now: these are not part of the log.
 * `actor` may also be `cli:<user> (claims <name>)`: the client of the socket gave another name than its user's.
 */
export const NamedEntry = Type.Object(
  {
    number: Type.Integer({ minimum: 1, description: "Without gaps." }),
    at: instant("When it was done."),
    actor: Type.String({ description: "`operator:<name>`, `cli:<user>` or `service`." }),
    actor_name: nullable(Type.String({ description: "The name that a person who acted has now." })),
    address: nullable(Type.String({ description: "Where it was asked from. Null: on the node." })),
    action: Type.String(),
    organization_id: nullable(id("org")),
    organization: nullable(Type.String({ description: "Its slug now." })),
    subject: Type.String({ description: "The id of what it was done to." }),
    subject_name: nullable(Type.String({ description: "The name that it has now. Null: it is gone, or has none." })),
    details: Type.Record(Type.String(), Type.Unknown(), {
      description: "What changed; `before` is what it was. No secrets.",
    }),
    names: Type.Record(Type.String(), Type.String(), {
      description:
        "The names that things in `details` have now, by their IDs. What is gone or has no name is not in it.",
    }),
    hash: nullable(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description: "SHA-256 over the hash of the entry before and this one. Null: from before the chain.",
      }),
    ),
  },
  { $id: "AuditEntry" },
);
export type NamedEntry = Value<typeof NamedEntry>;
export type AuditEntry = Omit<NamedEntry, "actorName" | "organization" | "subjectName" | "names">;

/** Rows of the directory as the store's records, and the errors of a driver freed from Drizzle's wrapping. Pure. */
import { DrizzleQueryError } from "drizzle-orm/errors";
import type * as schema from "../../../db/schema.ts";
import type { KeyState, StoredKey } from "../../admin/store/key.ts";
import { type Calendar, weekDays } from "../../core/store/calendar.ts";
import type { Credential, Organization, Scope, Secret } from "../../core/store/directory.ts";
import { idOf } from "../../core/store/ids.ts";
import type { Operator } from "../../core/store/operators.ts";

export type OrganizationRow = typeof schema.organization.$inferSelect;
/** An organization with its anchors, current and next: `organization.anchor_at` is only the first one. */
export type AnchoredRow = OrganizationRow & {
  nextAnchorAt: Date | null;
  nextAnchorFrom: Date | null;
  /** The two latest rows of usage_anchor, the latest first. */
  calendars: CalendarRow[];
  formerSlugs: string[];
};
export interface CalendarRow {
  /** Null: weeks and months are counted from an anchor. */
  zone: string | null;
  week_starts: number | null;
  month_starts: number | null;
  /** From when on it will count; null: it counts. */
  next_ms: number | null;
}
export type KeyRow = typeof schema.apiKey.$inferSelect;
/** A key with its organization's slug, its person's name, its state and its end (key-life.ts). */
export interface LivingKey {
  key: KeyRow;
  organization: string;
  person: string | null;
  state: KeyState;
  endsAt: Date | null;
}
export type OperatorRow = typeof schema.operator.$inferSelect;

export function organizationOf(row: AnchoredRow): Organization {
  const { anchorAt, nextAnchorAt, nextAnchorFrom } = row;
  const next = row.calendars.find(({ next_ms }) => next_ms !== null);
  const calendar = calendarOf(row.calendars.find(({ next_ms }) => next_ms === null));
  const isCalendar = calendar !== null || (next?.zone ?? null) !== null;
  const isNext = nextAnchorAt !== null && nextAnchorFrom !== null && !isCalendar;
  return {
    ...callerOf(row),
    formerSlugs: row.formerSlugs,
    anchorAt,
    nextAnchor: isNext ? { anchorAt: nextAnchorAt, countsFrom: nextAnchorFrom } : null,
    calendar,
    nextCalendar: next && isCalendar ? { calendar: calendarOf(next), countsFrom: new Date(next.next_ms!) } : null,
    version: row.version,
  };
}

function calendarOf(row: CalendarRow | undefined): Calendar | null {
  if (!row || row.zone === null) return null;
  return { zone: row.zone, weekStarts: weekDays[row.week_starts! - 1]!, monthStarts: row.month_starts! };
}

export function callerOf(row: OrganizationRow): Credential["organization"] {
  return {
    id: idOf(row.id, "org_"),
    slug: row.slug,
    name: row.name,
    status: row.status,
    plan: row.plan,
    extraUsage: { enabled: row.extraUsageEnabled, capNanos: row.extraUsageCapNanos },
    keyLifetimeMaxDays: row.keyLifetimeMaxDays,
    keyUnusedMaxDays: row.keyUnusedMaxDays,
    keepsContent: row.keepsContent,
    createdAt: row.createdAt,
    closedAt: row.closedAt,
  };
}

/** `secrets`: of this key, newest first. */
export function keyOf({ key, ...life }: LivingKey, secrets: Secret[], team: StoredKey["team"] = null): StoredKey {
  return {
    ...key,
    id: idOf(key.id, "key_"),
    organizationId: idOf(key.organizationId, "org_"),
    scopes: key.scopes as Scope[],
    personId: key.personId === null ? null : idOf(key.personId, "per_"),
    ...life,
    team,
    secrets,
  };
}

export function operatorOf(row: OperatorRow, secrets: Secret[]): Operator {
  return {
    ...row,
    id: idOf(row.id, "op_"),
    organizationId: row.organizationId === null ? null : idOf(row.organizationId, "org_"),
    secrets,
  };
}

/** Drizzle puts every parameter into its error's message, which a log would show. The error inside says enough. */
export async function plainly<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof DrizzleQueryError && error.cause ? error.cause : error;
  }
}

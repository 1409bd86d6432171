/**
 * Kinds of columns. Ids are bare UUIDs here; `store/ids.ts` gives them their prefixes. Instants are timestamptz, nanos
 * 64-bit integers.
 */
import { bigint, customType, integer, text, timestamp } from "drizzle-orm/pg-core";

export const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => "bytea" });

export const nanos = (name: string) => bigint(name, { mode: "number" });

export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

/** Limits of a key or a team, or those that a new key gets. Null does not limit. */
export const limits = {
  session: nanos("session_nanos"),
  week: nanos("week_nanos"),
  month: nanos("month_nanos"),
  concurrentRequests: nanos("concurrent_requests"),
  requestsPerMinute: nanos("requests_per_minute"),
  tokensPerMinute: nanos("tokens_per_minute"),
};

/** A secret of a key or an operator. Rotations number them from 1. */
export const secret = {
  number: integer("number").notNull(),
  hash: bytes("hash").notNull(),
  prefix: text("prefix").notNull(),
  suffix: text("suffix").notNull(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at"),
  revokedAt: instant("revoked_at"),
};

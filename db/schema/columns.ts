/**
 * Kinds of columns. Ids are bare UUIDs here; `store/ids.ts` gives them their prefixes. Instants are timestamptz, units
 * 64-bit integers.
 */
import { bigint, customType, integer, text, timestamp } from "drizzle-orm/pg-core";

export const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => "bytea" });

export const units = (name: string) => bigint(name, { mode: "number" });

export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

/** Limits of a key or a team, or those that a new key gets. Null does not limit. */
export const limits = {
  session: units("session_units"),
  week: units("week_units"),
  month: units("month_units"),
  concurrentRequests: units("concurrent_requests"),
  requestsPerMinute: units("requests_per_minute"),
  tokensPerMinute: units("tokens_per_minute"),
};

export const tokenCounts = {
  inputTokens: units("input_tokens").notNull(),
  cachedInputTokens: units("cached_input_tokens").notNull(),
  cacheWriteTokens: units("cache_write_tokens").notNull(),
  outputTokens: units("output_tokens").notNull(),
  reasoningTokens: units("reasoning_tokens").notNull(),
};

/** A secret of a key or an operator. Rotations number them from 1. */
export const secret = {
  number: integer("number").notNull(),
  hash: bytes("hash").notNull().unique(),
  prefix: text("prefix").notNull(),
  suffix: text("suffix").notNull(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at"),
  revokedAt: instant("revoked_at"),
};

/**
 * Kinds of columns. Ids are bare UUIDs here; `store/ids.ts` gives them their prefixes. Instants are timestamptz, units
 * 64-bit integers.
 */
import { bigint, customType, timestamp } from "drizzle-orm/pg-core";

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

/** Sums that are kept of the records: those that are checked against the ledger, and those that reports are made of. */
import { boolean, index, integer, pgTable, pgView, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { instant, tokenCounts, units } from "./columns.ts";
import { windowBounds } from "./usage.ts";

/** How far the audit has read, and what its last look found: one row. */
export const usageAudit = pgTable("usage_audit", {
  id: boolean("id").primaryKey().default(true),
  readUntil: units("read_until").notNull(),
  sealedUntil: units("sealed_until").notNull(),
  lookedAt: instant("looked_at"),
  differing: integer("differing").notNull().default(0),
  unsealed: integer("unsealed").notNull().default(0),
});

const auditedWindow = {
  subjectId: uuid("subject_id").notNull(),
  ...windowBounds,
  recorded: units("recorded").notNull(),
  records: units("records").notNull(),
};

export const usageTally = pgTable("usage_tally", auditedWindow, (table) => [
  primaryKey({ columns: [table.subjectId, table.kind, table.startsAt] }),
]);

/** The counts of a full check. */
export const usageRecount = pgTable("usage_recount", auditedWindow, (table) => [
  primaryKey({ columns: [table.subjectId, table.kind, table.startsAt] }),
]);

export const usageSeal = pgTable(
  "usage_seal",
  { ...auditedWindow, sealedAt: instant("sealed_at").notNull() },
  (table) => [
    primaryKey({ columns: [table.subjectId, table.kind, table.startsAt] }),
    index("usage_seal_by_end").using("brin", table.endsAt),
  ],
);

export const usageLost = pgTable("usage_lost", {
  requestId: uuid("request_id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  charged: units("charged").notNull(),
  noticedAt: instant("noticed_at").notNull(),
});

const rolledUp = {
  startsAt: instant("starts_at").notNull(),
  organizationId: uuid("organization_id").notNull(),
  keyId: uuid("key_id").notNull(),
  teamId: uuid("team_id").notNull(),
  model: text("model").notNull(),
  operation: text("operation").notNull(),
  outcome: text("outcome").notNull(),
  records: units("records").notNull(),
  requests: units("requests").notNull(),
  ...tokenCounts,
  units: units("units").notNull(),
  extraUnits: units("extra_units").notNull(),
  unchargedUnits: units("uncharged_units").notNull(),
  inputUnits: units("input_units").notNull().default(0),
  cachedInputUnits: units("cached_input_units").notNull().default(0),
  cacheWriteUnits: units("cache_write_units").notNull().default(0),
  outputUnits: units("output_units").notNull().default(0),
};

const rolledUpKey = ["organizationId", "startsAt", "keyId", "teamId", "model", "operation", "outcome"] as const;

/** The usage by the hour and by the day of admission. */
export const usageHour = pgTable("usage_hour", rolledUp, (table) => [
  primaryKey({ columns: rolledUpKey.map((name) => table[name]) as [typeof table.organizationId] }),
  index("usage_hour_by_start").using("brin", table.startsAt),
]);

export const usageDay = pgTable("usage_day", rolledUp, (table) => [
  primaryKey({ columns: rolledUpKey.map((name) => table[name]) as [typeof table.organizationId] }),
  index("usage_day_by_start").using("brin", table.startsAt),
]);

const total = { kind: text("kind").notNull(), ...rolledUp };

/** The sums of days and months: docs/design/metering.md, Totals. */
export const usageTotal = pgTable("usage_total", total, (table) => [
  primaryKey({ columns: [table.kind, ...rolledUpKey.map((name) => table[name])] }),
  index("usage_total_by_start").using("brin", table.startsAt),
]);

/** The same; what is inserted here is added to it. */
export const usageTotalAdded = pgView("usage_total_added", total).existing();

/** The transactions that each day's roll-ups are made of, whether they were compared with its records, and are in totals. */
export const usageRolled = pgTable("usage_rolled", {
  startsAt: instant("starts_at").primaryKey(),
  firstXact: units("first_xact").notNull(),
  lastXact: units("last_xact").notNull(),
  records: units("records").notNull(),
  sealedAt: instant("sealed_at"),
  isSplit: boolean("is_split").notNull().default(false),
  isTotalled: boolean("is_totalled").notNull().default(false),
});

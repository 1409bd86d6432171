/**
 * The tables, as Drizzle knows them: the one place that knows column names. The migrations make them; a test compares.
 * Ids are bare UUIDs here; `store/ids.ts` gives them their prefixes. Instants are timestamptz, units 64-bit integers.
 */
import {
  bigint,
  boolean,
  customType,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uuid,
} from "drizzle-orm/pg-core";

const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => "bytea" });
const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

export const organization = pgTable("organization", {
  id: uuid("id").primaryKey(),
  slug: text("slug").notNull().unique(),
  name: text("name").notNull(),
  status: text("status", { enum: ["active", "suspended"] })
    .notNull()
    .default("active"),
  plan: text("plan"),
  anchorAt: instant("anchor_at").notNull(),
  extraUsageEnabled: boolean("extra_usage_enabled").notNull().default(false),
  extraUsageCapUnits: bigint("extra_usage_cap_units", { mode: "number" }),
  createdAt: instant("created_at").notNull(),
});

export const apiKey = pgTable("api_key", {
  id: uuid("id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  name: text("name").notNull(),
  scopes: text("scopes").array().notNull(),
  allowedModels: text("allowed_models").array(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at"),
  revokedAt: instant("revoked_at"),
  lastUsedAt: instant("last_used_at"),
});

export const keySecret = pgTable(
  "key_secret",
  {
    keyId: uuid("key_id").notNull(),
    number: integer("number").notNull(),
    hash: bytes("hash").notNull().unique(),
    prefix: text("prefix").notNull(),
    suffix: text("suffix").notNull(),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at"),
    revokedAt: instant("revoked_at"),
  },
  (table) => [primaryKey({ columns: [table.keyId, table.number] })],
);

export const auditEntry = pgTable("audit_entry", {
  id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
  at: instant("at").notNull(),
  actor: text("actor").notNull(),
  action: text("action").notNull(),
  organizationId: uuid("organization_id"),
  subject: text("subject").notNull(),
  details: jsonb("details").$type<Record<string, unknown>>().notNull(),
});

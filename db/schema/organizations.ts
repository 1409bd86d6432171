/** Organizations, plans, teams, keys, and their limits. */
import { boolean, integer, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import type { Scope } from "../../src/core/store/directory.ts";
import { instant, limits, nanos, secret } from "./columns.ts";

export const organization = pgTable("organization", {
  id: uuid("id").primaryKey(),
  slug: text("slug").notNull(),
  name: text("name").notNull(),
  status: text("status", { enum: ["active", "suspended", "closed"] })
    .notNull()
    .default("active"),
  plan: text("plan"),
  anchorAt: instant("anchor_at").notNull(),
  extraUsageEnabled: boolean("extra_usage_enabled").notNull().default(false),
  extraUsageCapNanos: nanos("extra_usage_cap_nanos"),
  createdAt: instant("created_at").notNull(),
  hasModels: boolean("has_models").notNull().default(false),
  version: nanos("version").notNull().default(1),
  keyLifetimeMaxDays: integer("key_lifetime_max_days"),
  keyUnusedMaxDays: integer("key_unused_max_days"),
  keepsContent: boolean("keeps_content").notNull().default(true),
  closedAt: instant("closed_at"),
  raisedUntil: instant("raised_until"),
  ownLimits: nanos("own_limits").array(),
});

/** Slugs that organizations had before. */
export const organizationSlug = pgTable("organization_slug", {
  slug: text("slug").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
});

export const plan = pgTable("plan", {
  name: text("name").primaryKey(),
  source: text("source", { enum: ["file", "management"] }).notNull(),
  version: nanos("version").notNull(),
  ...limits,
  changedAt: instant("changed_at").notNull(),
});

export const team = pgTable("team", {
  id: uuid("id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  name: text("name").notNull(),
  createdAt: instant("created_at").notNull(),
  removedAt: instant("removed_at"),
  version: nanos("version").notNull().default(1),
});

export const apiKey = pgTable("api_key", {
  id: uuid("id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  name: text("name").notNull(),
  scopes: text("scopes").array().$type<Scope[]>().notNull(),
  models: text("models").array(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at"),
  revokedAt: instant("revoked_at"),
  lastUsedAt: instant("last_used_at"),
  owner: text("owner"),
  labels: jsonb("labels").$type<Record<string, string>>().notNull().default({}),
  allowFrom: text("allow_from").array(),
  createdBy: text("created_by").notNull().default("service"),
  lastUsedFrom: text("last_used_from"),
  version: nanos("version").notNull().default(1),
  kind: text("kind", { enum: ["key", "sign-in", "jwt"] })
    .notNull()
    .default("key"),
  personId: uuid("person_id"),
});

export const keySecret = pgTable("key_secret", {
  keyId: uuid("key_id").notNull(),
  ...secret,
});

/** Operators, the audit log, repeated creations, and drained engines. */
import { boolean, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { bytes, instant, nanos, secret } from "./columns.ts";

export const auditEntry = pgTable("audit_entry", {
  at: instant("at").notNull(),
  actor: text("actor").notNull(),
  action: text("action").notNull(),
  organizationId: uuid("organization_id"),
  subject: text("subject").notNull(),
  details: jsonb("details").$type<Record<string, unknown>>().notNull(),
  number: nanos("number").notNull(),
  address: text("address"),
  hash: bytes("hash"),
});

export const auditHead = pgTable("audit_head", {
  isOne: boolean("is_one").primaryKey().default(true),
  number: nanos("number").notNull(),
  hash: bytes("hash").notNull(),
});

export const operator = pgTable("operator", {
  id: uuid("id").primaryKey(),
  name: text("name").notNull(),
  role: text("role", { enum: ["admin", "viewer", "organization-admin"] }).notNull(),
  organizationId: uuid("organization_id"),
  createdBy: text("created_by").notNull(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at"),
  revokedAt: instant("revoked_at"),
  lastUsedAt: instant("last_used_at"),
  lastUsedFrom: text("last_used_from"),
});

export const operatorSecret = pgTable("operator_secret", {
  operatorId: uuid("operator_id").notNull(),
  ...secret,
});

export const administrationRepeat = pgTable("administration_repeat", {
  actor: text("actor").notNull(),
  keyHash: bytes("key_hash").notNull(),
  requestHash: bytes("request_hash").notNull(),
  subject: text("subject").notNull(),
  createdAt: instant("created_at").notNull(),
});

export const drainedEngine = pgTable("drained_engine", {
  upstream: text("upstream").notNull(),
  replica: text("replica").notNull().default(""),
  drainedAt: instant("drained_at").notNull(),
  until: instant("until"),
  actor: text("actor").notNull(),
});

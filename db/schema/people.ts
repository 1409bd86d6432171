/** People who sign in through an issuer, their memberships, and the sign-ins of their devices. */
import { boolean, pgTable, text, uuid } from "drizzle-orm/pg-core";
import type { Scope } from "../../src/core/store/directory.ts";
import { bytes, instant, nanos } from "./columns.ts";

export const person = pgTable("person", {
  id: uuid("id").primaryKey(),
  issuer: text("issuer").notNull(),
  subjectHash: bytes("subject_hash").notNull(),
  subject: text("subject"),
  kind: text("kind", { enum: ["person", "service"] }).notNull(),
  email: text("email"),
  isEmailVerified: boolean("is_email_verified").notNull().default(false),
  name: text("name"),
  groups: text("groups").array().notNull().default([]),
  groupsAt: instant("groups_at"),
  createdAt: instant("created_at").notNull(),
  confirmedAt: instant("confirmed_at").notNull(),
  suspendedAt: instant("suspended_at"),
  notBefore: instant("not_before"),
  forgottenAt: instant("forgotten_at"),
  version: nanos("version").notNull().default(1),
});

export const membership = pgTable("membership", {
  id: uuid("id").primaryKey().defaultRandom(),
  personId: uuid("person_id").notNull(),
  organizationId: uuid("organization_id"),
  teamId: uuid("team_id"),
  role: text("role", { enum: ["member", "organization-admin", "viewer", "admin"] }).notNull(),
  scopes: text("scopes").array().$type<Scope[]>().notNull(),
  models: text("models").array(),
  source: text("source", { enum: ["rule", "hand"] }).notNull(),
  createdAt: instant("created_at").notNull(),
  createdBy: text("created_by").notNull(),
  endedAt: instant("ended_at"),
});

export const signIn = pgTable("sign_in", {
  keyId: uuid("key_id").primaryKey(),
  personId: uuid("person_id").notNull(),
  issuer: text("issuer").notNull(),
  issuerSession: text("issuer_session"),
  tokens: bytes("tokens"),
  agent: text("agent").notNull(),
  address: text("address").notNull(),
  createdAt: instant("created_at").notNull(),
  endsAt: instant("ends_at"),
});

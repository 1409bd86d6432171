/** Sessions of browsers, sign-ins of devices, devices that wait for an answer, and uses that are counted. */
import { index, integer, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { bytes, instant } from "./columns.ts";

export const browserSession = pgTable(
  "browser_session",
  {
    hash: bytes("hash").primaryKey(),
    kind: text("kind", { enum: ["console", "device"] }).notNull(),
    personId: uuid("person_id").notNull(),
    issuer: text("issuer").notNull(),
    issuerSession: text("issuer_session"),
    tokens: bytes("tokens"),
    createdAt: instant("created_at").notNull(),
    usedAt: instant("used_at").notNull(),
    confirmedAt: instant("confirmed_at").notNull(),
    askingUntil: instant("asking_until"),
    codeHash: bytes("code_hash"),
    secretHash: bytes("secret_hash"),
  },
  (table) => [
    index("browser_session_of_person").on(table.personId),
    index("browser_session_of_issuer").on(table.issuer, table.issuerSession),
  ],
);

export const operatorSession = pgTable("operator_session", {
  hash: bytes("hash").primaryKey(),
  secretHash: bytes("secret_hash").notNull(),
  tokenHash: bytes("token_hash"),
  localUser: text("local_user"),
  createdAt: instant("created_at").notNull(),
  usedAt: instant("used_at").notNull(),
});

export const signIn = pgTable(
  "sign_in",
  {
    keyId: uuid("key_id").primaryKey(),
    personId: uuid("person_id").notNull(),
    issuer: text("issuer").notNull(),
    issuerSession: text("issuer_session"),
    tokens: bytes("tokens"),
    agent: text("agent").notNull(),
    address: text("address").notNull(),
    createdAt: instant("created_at").notNull(),
    endsAt: instant("ends_at"),
    endedAt: instant("ended_at"),
    refreshingBy: uuid("refreshing_by"),
    refreshingUntil: instant("refreshing_until"),
  },
  (table) => [
    index("sign_in_of_person").on(table.personId),
    index("sign_in_of_issuer").on(table.issuer, table.issuerSession),
  ],
);

export const refreshToken = pgTable(
  "refresh_token",
  {
    hash: bytes("hash").primaryKey(),
    keyId: uuid("key_id").notNull(),
    createdAt: instant("created_at").notNull(),
    usedAt: instant("used_at"),
    successor: bytes("successor"),
  },
  (table) => [index("refresh_token_of_sign_in").on(table.keyId)],
);

export const deviceRequest = pgTable(
  "device_request",
  {
    deviceHash: bytes("device_hash").primaryKey(),
    userHash: bytes("user_hash").notNull().unique(),
    agent: text("agent").notNull(),
    address: text("address").notNull(),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    interval_s: integer("interval_s").notNull(),
    polledAt: instant("polled_at"),
    decision: text("decision", { enum: ["approved", "denied"] }),
    personId: uuid("person_id"),
    organizationId: uuid("organization_id"),
    issuerSession: text("issuer_session"),
    tokens: bytes("tokens"),
  },
  (table) => [
    index("device_request_by_expiry").on(table.expiresAt),
    index("device_request_of_address").on(table.address),
  ],
);

export const useCount = pgTable(
  "use_count",
  { hash: bytes("hash").primaryKey(), uses: integer("uses").notNull(), endsAt: instant("ends_at").notNull() },
  (table) => [index("use_count_by_end").on(table.endsAt)],
);

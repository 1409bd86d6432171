/** The ledger: limits, current use, the amounts held for running requests, and the records of ended ones. */
import { boolean, integer, jsonb, pgEnum, pgTable, pgView, text, uuid } from "drizzle-orm/pg-core";
import type { Settle, StoppingLimit } from "../../src/core/store/ledger.ts";
import { instant, limits, nanos } from "./columns.ts";

/**
 * The subjects that the ledger counts: teams, people, and keys that are limited, are in a team or belong to a person.
 */
export const usageSubject = pgTable("usage_subject", {
  subjectId: uuid("subject_id").primaryKey(),
  teamId: uuid("team_id"),
  ...limits,
  summedAt: instant("summed_at"),
  memberId: uuid("member_id"),
});

/**
 * The limits of a subject, a row for each kind and pattern of models; 0 in a column: not limited, whatever is
 * inherited.
 */
export const limitValue = pgTable("limit_value", {
  kind: text("kind", { enum: ["own", "keys", "members", "raise"] }).notNull(),
  ...limits,
  until: instant("until"),
  countedId: uuid("counted_id").notNull(),
});

const usageWindowKind = pgEnum("usage_window_kind", ["session", "week", "month", "extra"]);
const usageBilling = pgEnum("usage_billing", ["plan", "extra"]);

const requestFacts = {
  operation: text("operation").notNull(),
  model: text("model").notNull(),
  stream: boolean("stream").notNull(),
  priceInput: nanos("price_input").notNull(),
  priceCachedInput: nanos("price_cached_input").notNull(),
  priceCacheWrite: nanos("price_cache_write").notNull(),
  priceOutput: nanos("price_output").notNull(),
  priceSearch: nanos("price_search"),
  inputCount: integer("input_count"),
  source: usageBilling("source").notNull(),
};

/** The current windows, one row a kind, with the open requests and the limits of their organization. */
export const usageWindowNow = pgView("usage_window_now", {
  organizationId: uuid("organization_id").notNull(),
  kind: usageWindowKind("kind").notNull(),
  startsAt: instant("starts_at").notNull(),
  endsAt: instant("ends_at").notNull(),
  used: nanos("used").notNull(),
  held: nanos("held").notNull(),
  running: nanos("running").notNull(),
  extraEnabled: boolean("extra_enabled").notNull(),
  extraCapNanos: nanos("extra_cap_nanos"),
  at: instant("at").notNull(),
  ownNanos: nanos("own_nanos"),
  ownRequests: nanos("own_requests"),
  raisedNanos: nanos("raised_nanos"),
  raisedRequests: nanos("raised_requests"),
  wholeAt: instant("whole_at"),
}).existing();

export const usageHold = pgTable("usage_hold", {
  requestId: uuid("request_id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  keyId: uuid("key_id").notNull(),
  ...requestFacts,
  nanos: nanos("nanos").notNull(),
  admittedAt: instant("admitted_at").notNull(),
  sessionStartsAt: instant("session_starts_at").notNull(),
  sessionEndsAt: instant("session_ends_at").notNull(),
  sessionLimit: nanos("session_limit"),
  sessionUsed: nanos("session_used").notNull(),
  weekStartsAt: instant("week_starts_at").notNull(),
  weekEndsAt: instant("week_ends_at").notNull(),
  weekLimit: nanos("week_limit"),
  weekUsed: nanos("week_used").notNull(),
  monthStartsAt: instant("month_starts_at").notNull(),
  monthEndsAt: instant("month_ends_at").notNull(),
  monthLimit: nanos("month_limit"),
  monthUsed: nanos("month_used").notNull(),
  inputTokens: nanos("input_tokens").notNull().default(0),
  cachedInputTokens: nanos("cached_input_tokens").notNull().default(0),
  cacheWriteTokens: nanos("cache_write_tokens").notNull().default(0),
  producedTokens: nanos("produced_tokens").notNull().default(0),
  reasoningTokens: nanos("reasoning_tokens").notNull().default(0),
  usageSource: text("usage_source").notNull().default("counted"),
});

export const usageRecord = pgTable("usage_record", {
  requestId: uuid("request_id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  keyId: uuid("key_id"),
  ...requestFacts,
  held: nanos("held").notNull(),
  charged: nanos("charged").notNull(),
  uncharged: nanos("uncharged").notNull(),
  admittedAt: instant("admitted_at").notNull(),
  endedAt: instant("ended_at").notNull(),
  outcome: text("outcome").notNull(),
  stoppedBy: jsonb("stopped_by").$type<StoppingLimit>(),
  errorCode: text("error_code"),
  recovered: boolean("recovered").notNull(),
  inputTokens: nanos("input_tokens").notNull(),
  cachedInputTokens: nanos("cached_input_tokens").notNull(),
  cacheWriteTokens: nanos("cache_write_tokens").notNull(),
  outputTokens: nanos("output_tokens").notNull(),
  reasoningTokens: nanos("reasoning_tokens").notNull(),
  usageSource: text("usage_source").notNull(),
  searches: integer("searches"),
  sessionStartsAt: instant("session_starts_at"),
  sessionEndsAt: instant("session_ends_at"),
  sessionLimit: nanos("session_limit"),
  sessionUsedBefore: nanos("session_used_before"),
  sessionUsedAfter: nanos("session_used_after"),
  weekStartsAt: instant("week_starts_at"),
  weekEndsAt: instant("week_ends_at"),
  weekLimit: nanos("week_limit"),
  weekUsedBefore: nanos("week_used_before"),
  weekUsedAfter: nanos("week_used_after"),
  monthStartsAt: instant("month_starts_at"),
  monthEndsAt: instant("month_ends_at"),
  monthLimit: nanos("month_limit"),
  monthUsedBefore: nanos("month_used_before"),
  monthUsedAfter: nanos("month_used_after"),
  upstream: text("upstream"),
  attempts: integer("attempts"),
  tried: jsonb("tried").$type<NonNullable<NonNullable<Settle["route"]>["tried"]>>(),
  firstPart_ms: nanos("first_part_ms"),
  reportRejected: jsonb("report_rejected").$type<Record<string, unknown>>(),
});

/** The parts of receipts that the ledger doesn't have. */
export const answerNote = pgTable("answer_note", {
  requestId: uuid("request_id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  detached: boolean("detached").notNull().default(false),
  replayOf: uuid("replay_of"),
  keyId: uuid("key_id"),
  operation: text("operation"),
  model: text("model"),
  stream: boolean("stream"),
  notedAt: instant("noted_at").notNull(),
});

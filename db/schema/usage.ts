/** The ledger: what is used now, what is held for running requests, and the record of each. */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgEnum,
  pgTable,
  pgView,
  primaryKey,
  smallint,
  text,
  unique,
  uuid,
} from "drizzle-orm/pg-core";
import { instant, limits, tokenCounts, units } from "./columns.ts";

/** Keys that are in a team, limited or a person's, and teams and people, as the ledger knows them. */
export const usageSubject = pgTable(
  "usage_subject",
  {
    subjectId: uuid("subject_id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    teamId: uuid("team_id"),
    ...limits,
    countedFrom: instant("counted_from"),
    summedAt: instant("summed_at"),
    personId: uuid("person_id"),
    memberId: uuid("member_id"),
  },
  (table) => [
    index("usage_subject_of_team").on(table.teamId),
    index("usage_subject_of_member").on(table.memberId).where(sql`${table.memberId} is not null`),
    index("usage_subject_of_person").on(table.personId).where(sql`${table.personId} is not null`),
  ],
);

/** Limits that count until an instant, on top of those of a plan, a team, a person or a key. */
export const limitRaise = pgTable(
  "limit_raise",
  {
    subjectId: uuid("subject_id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    ...limits,
    endsAt: instant("ends_at").notNull(),
    setAt: instant("set_at").notNull(),
    setBy: text("set_by").notNull(),
  },
  (table) => [
    index("limit_raise_of_organization").on(table.organizationId),
    index("limit_raise_by_end").on(table.endsAt),
  ],
);

/** Whose limits changed, and as which change of all; its numbers rise in the order of commits. */
export const limitChange = pgTable(
  "limit_change",
  {
    subjectId: uuid("subject_id").primaryKey(),
    number: units("number").notNull(),
  },
  (table) => [index("limit_change_by_number").on(table.number)],
);

export const limitChangeHead = pgTable("limit_change_head", {
  isOne: boolean("is_one").primaryKey().default(true),
  number: units("number").notNull(),
});

export const usageWindowKind = pgEnum("usage_window_kind", ["session", "week", "month", "extra"]);

export const usageBilling = pgEnum("usage_billing", ["plan", "extra"]);

export const windowBounds = {
  kind: usageWindowKind("kind").notNull(),
  startsAt: instant("starts_at").notNull(),
  endsAt: instant("ends_at").notNull(),
};

const windowTotals = {
  used: units("used").notNull(),
  held: units("held").notNull(),
};

const requestFacts = {
  operation: text("operation").notNull(),
  model: text("model").notNull(),
  stream: boolean("stream").notNull(),
  priceInput: units("price_input").notNull(),
  priceCachedInput: units("price_cached_input").notNull(),
  priceCacheWrite: units("price_cache_write").notNull(),
  priceOutput: units("price_output").notNull(),
  source: usageBilling("source").notNull(),
};

export const usageNow = pgTable(
  "usage_now",
  {
    subjectId: uuid("subject_id").notNull(),
    generation: units("generation").notNull(),
    updates: integer("updates").notNull(),
    running: units("running").notNull(),
    startsAt: instant("starts_at").array().notNull(),
    endsAt: instant("ends_at").array().notNull(),
    used: units("used").array().notNull(),
    held: units("held").array().notNull(),
  },
  (table) => [primaryKey({ columns: [table.subjectId, table.generation] })],
);

export const usageAnchor = pgTable(
  "usage_anchor",
  {
    organizationId: uuid("organization_id").notNull(),
    monthFrom: instant("month_from").notNull(),
    weekFrom: instant("week_from").notNull(),
    anchorAt: instant("anchor_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.organizationId, table.monthFrom] })],
);

export const usagePast = pgTable(
  "usage_past",
  {
    subjectId: uuid("subject_id").notNull(),
    ...windowBounds,
    ...windowTotals,
  },
  (table) => [
    primaryKey({ columns: [table.subjectId, table.kind, table.startsAt] }),
    index("usage_past_by_end").using("brin", table.endsAt),
  ],
);

export const usageOpening = pgTable(
  "usage_opening",
  {
    subjectId: uuid("subject_id").notNull(),
    ...windowBounds,
    units: units("units").notNull(),
  },
  (table) => [primaryKey({ columns: [table.subjectId, table.kind, table.startsAt] })],
);

/** Every window that was ever used, those of now and those of the past. */
export const usageWindow = pgView("usage_window", {
  subjectId: uuid("subject_id").notNull(),
  ...windowBounds,
  ...windowTotals,
}).existing();

/** The windows of now, one row a kind, and what their organization has open and allows. */
export const usageWindowNow = pgView("usage_window_now", {
  organizationId: uuid("organization_id").notNull(),
  ...windowBounds,
  ...windowTotals,
  running: units("running").notNull(),
  extraEnabled: boolean("extra_enabled").notNull(),
  extraCapUnits: units("extra_cap_units"),
  at: instant("at").notNull(),
  raisedUnits: units("raised_units"),
  raisedRequests: units("raised_requests"),
}).existing();

export const usageHold = pgTable("usage_hold", {
  requestId: uuid("request_id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  keyId: uuid("key_id").notNull(),
  ...requestFacts,
  units: units("units").notNull(),
  outputTokens: units("output_tokens").notNull(),
  admittedAt: instant("admitted_at").notNull(),
  leaseUntil: instant("lease_until").notNull(),
  sessionStartsAt: instant("session_starts_at").notNull(),
  sessionEndsAt: instant("session_ends_at").notNull(),
  sessionLimit: units("session_limit"),
  sessionUsed: units("session_used").notNull(),
  weekStartsAt: instant("week_starts_at").notNull(),
  weekEndsAt: instant("week_ends_at").notNull(),
  weekLimit: units("week_limit"),
  weekUsed: units("week_used").notNull(),
  monthStartsAt: instant("month_starts_at").notNull(),
  monthEndsAt: instant("month_ends_at").notNull(),
  monthLimit: units("month_limit"),
  monthUsed: units("month_used").notNull(),
  growth: integer("growth").notNull().default(0),
  checkpoint: integer("checkpoint").notNull().default(0),
  inputTokens: units("input_tokens").notNull().default(0),
  cachedInputTokens: units("cached_input_tokens").notNull().default(0),
  cacheWriteTokens: units("cache_write_tokens").notNull().default(0),
  producedTokens: units("produced_tokens").notNull().default(0),
  reasoningTokens: units("reasoning_tokens").notNull().default(0),
  usageSource: text("usage_source").notNull().default("counted"),
  teamId: uuid("team_id"),
  subjects: uuid("subjects").array(),
  lease_ms: bigint("lease_ms", { mode: "number" }).notNull(),
});

export const usageRecord = pgTable(
  "usage_record",
  {
    requestId: uuid("request_id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    keyId: uuid("key_id"),
    ...requestFacts,
    held: units("held").notNull(),
    charged: units("charged").notNull(),
    uncharged: units("uncharged").notNull(),
    admittedAt: instant("admitted_at").notNull(),
    endedAt: instant("ended_at").notNull(),
    outcome: text("outcome").notNull(),
    stoppedBy: text("stopped_by"),
    errorCode: text("error_code"),
    recovered: boolean("recovered").notNull(),
    ...tokenCounts,
    usageSource: text("usage_source").notNull(),
    sessionStartsAt: instant("session_starts_at"),
    sessionEndsAt: instant("session_ends_at"),
    sessionLimit: units("session_limit"),
    sessionUsedBefore: units("session_used_before"),
    sessionUsedAfter: units("session_used_after"),
    weekStartsAt: instant("week_starts_at"),
    weekEndsAt: instant("week_ends_at"),
    weekLimit: units("week_limit"),
    weekUsedBefore: units("week_used_before"),
    weekUsedAfter: units("week_used_after"),
    monthStartsAt: instant("month_starts_at"),
    monthEndsAt: instant("month_ends_at"),
    monthLimit: units("month_limit"),
    monthUsedBefore: units("month_used_before"),
    monthUsedAfter: units("month_used_after"),
    upstream: text("upstream"),
    attempts: integer("attempts"),
    tried: jsonb("tried").$type<{ upstream: string; replica?: string; outcome: string; ms: number }[]>(),
    firstPart_ms: units("first_part_ms"),
    reportRejected: jsonb("report_rejected").$type<Record<string, unknown>>(),
    teamId: uuid("team_id"),
    subjects: uuid("subjects").array(),
    xact: units("xact").notNull().default(sql`pg_current_xact_id()::text::bigint`),
  },
  (table) => [
    index("usage_record_by_end").using("brin", table.endedAt),
    index("usage_record_by_xact").using("brin", table.xact),
  ],
);

export const usageLedger = pgTable("usage_ledger", {
  id: boolean("id").primaryKey().default(true),
  ledgerId: uuid("ledger_id").notNull().defaultRandom(),
});

export const usageTimeline = pgTable(
  "usage_timeline",
  {
    server: text("server").notNull(),
    timeline: integer("timeline").notNull(),
    seenAt: instant("seen_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.server, table.timeline] })],
);

export const usageRate = pgTable(
  "usage_rate",
  {
    subjectId: uuid("subject_id").notNull(),
    countsUntil: instant("counts_until").notNull(),
    entry: text("entry").notNull(),
    requests: units("requests").notNull(),
    tokens: units("tokens").notNull(),
  },
  (table) => [primaryKey({ columns: [table.subjectId, table.countsUntil, table.entry] })],
);

export const usageRateNow = pgTable(
  "usage_rate_now",
  {
    subjectId: uuid("subject_id").notNull(),
    generation: units("generation").notNull(),
    updates: integer("updates").notNull(),
    requests: units("requests").notNull(),
    tokens: units("tokens").notNull(),
    sweptUntil: instant("swept_until").notNull(),
    readAt: instant("read_at"),
  },
  (table) => [primaryKey({ columns: [table.subjectId, table.generation] })],
);

export const usageRefusal = pgTable(
  "usage_refusal",
  {
    requestId: uuid("request_id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    second: units("second").notNull(),
    place: smallint("place").notNull(),
    keyId: uuid("key_id").notNull(),
    operation: text("operation").notNull(),
    model: text("model"),
    stream: boolean("stream"),
    errorCode: text("error_code").notNull(),
    refusedAt: instant("refused_at").notNull(),
  },
  (table) => [unique().on(table.organizationId, table.second, table.place)],
);

export const inputCalibration = pgTable("input_calibration", {
  modelId: text("model_id").primaryKey(),
  ratio: doublePrecision("ratio").notNull(),
  spread: doublePrecision("spread").notNull(),
  bytes: doublePrecision("bytes").notNull(),
  template: doublePrecision("template").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

/** `route`: an upstream and its model. */
export const outputCalibration = pgTable("output_calibration", {
  route: text("route").primaryKey(),
  tokens: doublePrecision("tokens").notNull(),
  deltas: doublePrecision("deltas").notNull(),
  codeUnits: doublePrecision("code_units").notNull(),
  wholeTokens: doublePrecision("whole_tokens").notNull(),
  wholeCodeUnits: doublePrecision("whole_code_units").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

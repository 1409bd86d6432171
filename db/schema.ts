/**
 * The tables, as Drizzle knows them: the one place that knows column names. The migrations make them; a test compares.
 * Ids are bare UUIDs here; `store/ids.ts` gives them their prefixes. Instants are timestamptz, units 64-bit integers.
 */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  customType,
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
  timestamp,
  unique,
  uuid,
} from "drizzle-orm/pg-core";

const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => "bytea" });
const units = (name: string) => bigint(name, { mode: "number" });
const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

export const organization = pgTable("organization", {
  id: uuid("id").primaryKey(),
  slug: text("slug").notNull().unique(),
  name: text("name").notNull(),
  status: text("status", { enum: ["active", "suspended", "closed"] })
    .notNull()
    .default("active"),
  plan: text("plan"),
  anchorAt: instant("anchor_at").notNull(),
  extraUsageEnabled: boolean("extra_usage_enabled").notNull().default(false),
  extraUsageCapUnits: units("extra_usage_cap_units"),
  createdAt: instant("created_at").notNull(),
  hasSubjects: boolean("has_subjects").notNull().default(false),
  version: units("version").notNull().default(1),
  keyLifetimeMaxDays: integer("key_lifetime_max_days"),
  keyUnusedMaxDays: integer("key_unused_max_days"),
  keepsContent: boolean("keeps_content").notNull().default(true),
  closedAt: instant("closed_at"),
});

/** Slugs that organizations had before. */
export const organizationSlug = pgTable(
  "organization_slug",
  {
    slug: text("slug").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
  },
  (table) => [index("organization_slug_of_organization").on(table.organizationId)],
);

export const plan = pgTable("plan", {
  name: text("name").primaryKey(),
  source: text("source", { enum: ["file", "management"] }).notNull(),
  version: units("version").notNull(),
  session: units("session_units"),
  week: units("week_units"),
  month: units("month_units"),
  requestsPerMinute: units("requests_per_minute"),
  tokensPerMinute: units("tokens_per_minute"),
  concurrentRequests: units("concurrent_requests"),
  changedAt: instant("changed_at").notNull(),
});

export const planFile = pgTable("plan_file", {
  isOne: boolean("is_one").primaryKey().default(true),
  changedAt: instant("changed_at").notNull(),
});

/** Limits of a key or a team, or those that a new key gets. Null does not limit. */
const limits = {
  session: units("session_units"),
  week: units("week_units"),
  month: units("month_units"),
  concurrentRequests: units("concurrent_requests"),
  requestsPerMinute: units("requests_per_minute"),
  tokensPerMinute: units("tokens_per_minute"),
};

export const team = pgTable(
  "team",
  {
    id: uuid("id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    name: text("name").notNull(),
    createdAt: instant("created_at").notNull(),
    removedAt: instant("removed_at"),
    version: units("version").notNull().default(1),
  },
  (table) => [index("team_of_organization").on(table.organizationId, table.name)],
);

/** Keys that are in a team or limited, and teams, as the ledger knows them. */
export const usageSubject = pgTable(
  "usage_subject",
  {
    subjectId: uuid("subject_id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    teamId: uuid("team_id"),
    ...limits,
    countedFrom: instant("counted_from"),
    summedAt: instant("summed_at"),
  },
  (table) => [index("usage_subject_of_team").on(table.teamId)],
);

export const keyDefault = pgTable("key_default", { ownerId: uuid("owner_id").primaryKey(), ...limits });

export const apiKey = pgTable(
  "api_key",
  {
    id: uuid("id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    name: text("name").notNull(),
    scopes: text("scopes").array().notNull(),
    allowedModels: text("allowed_models").array(),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at"),
    revokedAt: instant("revoked_at"),
    lastUsedAt: instant("last_used_at"),
    owner: text("owner"),
    labels: jsonb("labels").$type<Record<string, string>>().notNull().default({}),
    allowedAddresses: text("allowed_addresses").array(),
    createdBy: text("created_by"),
    lastUsedFrom: text("last_used_from"),
    version: units("version").notNull().default(1),
  },
  (table) => [index("api_key_of_organization").on(table.organizationId, table.createdAt)],
);

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

export const auditEntry = pgTable(
  "audit_entry",
  {
    id: units("id").primaryKey().generatedAlwaysAsIdentity(),
    at: instant("at").notNull(),
    actor: text("actor").notNull(),
    action: text("action").notNull(),
    organizationId: uuid("organization_id"),
    subject: text("subject").notNull(),
    details: jsonb("details").$type<Record<string, unknown>>().notNull(),
    number: units("number").notNull().unique(),
    address: text("address"),
    hash: bytes("hash"),
  },
  (table) => [index("audit_entry_of_organization").on(table.organizationId, table.id.desc())],
);

export const auditHead = pgTable("audit_head", {
  isOne: boolean("is_one").primaryKey().default(true),
  number: units("number").notNull(),
  hash: bytes("hash").notNull(),
});

export const operator = pgTable("operator", {
  id: uuid("id").primaryKey(),
  name: text("name").notNull().unique(),
  role: text("role", { enum: ["admin", "viewer", "organization-admin"] }).notNull(),
  organizationId: uuid("organization_id"),
  createdBy: text("created_by").notNull(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at"),
  revokedAt: instant("revoked_at"),
  lastUsedAt: instant("last_used_at"),
  lastUsedFrom: text("last_used_from"),
});

export const operatorSecret = pgTable(
  "operator_secret",
  {
    operatorId: uuid("operator_id").notNull(),
    number: integer("number").notNull(),
    hash: bytes("hash").notNull().unique(),
    prefix: text("prefix").notNull(),
    suffix: text("suffix").notNull(),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at"),
    revokedAt: instant("revoked_at"),
  },
  (table) => [primaryKey({ columns: [table.operatorId, table.number] })],
);

export const administrationRepeat = pgTable(
  "administration_repeat",
  {
    actor: text("actor").notNull(),
    keyHash: bytes("key_hash").notNull(),
    requestHash: bytes("request_hash").notNull(),
    subject: text("subject").notNull(),
    createdAt: instant("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.actor, table.keyHash] })],
);

export const usageWindowKind = pgEnum("usage_window_kind", ["session", "week", "month", "extra"]);
export const usageBilling = pgEnum("usage_billing", ["plan", "extra"]);

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
    kind: usageWindowKind("kind").notNull(),
    startsAt: instant("starts_at").notNull(),
    endsAt: instant("ends_at").notNull(),
    used: units("used").notNull(),
    held: units("held").notNull(),
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
    kind: usageWindowKind("kind").notNull(),
    startsAt: instant("starts_at").notNull(),
    endsAt: instant("ends_at").notNull(),
    units: units("units").notNull(),
  },
  (table) => [primaryKey({ columns: [table.subjectId, table.kind, table.startsAt] })],
);

/** Every window that was ever used, those of now and those of the past. */
export const usageWindow = pgView("usage_window", {
  subjectId: uuid("subject_id").notNull(),
  kind: usageWindowKind("kind").notNull(),
  startsAt: instant("starts_at").notNull(),
  endsAt: instant("ends_at").notNull(),
  used: units("used").notNull(),
  held: units("held").notNull(),
}).existing();

/** The windows of now, one row a kind, and what their organization has open and allows. */
export const usageWindowNow = pgView("usage_window_now", {
  organizationId: uuid("organization_id").notNull(),
  kind: usageWindowKind("kind").notNull(),
  startsAt: instant("starts_at").notNull(),
  endsAt: instant("ends_at").notNull(),
  used: units("used").notNull(),
  held: units("held").notNull(),
  running: units("running").notNull(),
  extraEnabled: boolean("extra_enabled").notNull(),
  extraCapUnits: units("extra_cap_units"),
  at: instant("at").notNull(),
}).existing();

export const usageHold = pgTable("usage_hold", {
  requestId: uuid("request_id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  keyId: uuid("key_id").notNull(),
  operation: text("operation").notNull(),
  model: text("model").notNull(),
  stream: boolean("stream").notNull(),
  priceInput: units("price_input").notNull(),
  priceCachedInput: units("price_cached_input").notNull(),
  priceCacheWrite: units("price_cache_write").notNull(),
  priceOutput: units("price_output").notNull(),
  source: usageBilling("source").notNull(),
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
    operation: text("operation").notNull(),
    model: text("model").notNull(),
    stream: boolean("stream").notNull(),
    priceInput: units("price_input").notNull(),
    priceCachedInput: units("price_cached_input").notNull(),
    priceCacheWrite: units("price_cache_write").notNull(),
    priceOutput: units("price_output").notNull(),
    source: usageBilling("source").notNull(),
    held: units("held").notNull(),
    charged: units("charged").notNull(),
    uncharged: units("uncharged").notNull(),
    admittedAt: instant("admitted_at").notNull(),
    endedAt: instant("ended_at").notNull(),
    outcome: text("outcome").notNull(),
    stoppedBy: text("stopped_by"),
    errorCode: text("error_code"),
    recovered: boolean("recovered").notNull(),
    inputTokens: units("input_tokens").notNull(),
    cachedInputTokens: units("cached_input_tokens").notNull(),
    cacheWriteTokens: units("cache_write_tokens").notNull(),
    outputTokens: units("output_tokens").notNull(),
    reasoningTokens: units("reasoning_tokens").notNull(),
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

/** How far the audit has read, and what its last look found: one row. */
export const usageAudit = pgTable("usage_audit", {
  id: boolean("id").primaryKey().default(true),
  readUntil: units("read_until").notNull(),
  lookedAt: instant("looked_at"),
  differing: integer("differing").notNull().default(0),
  unsealed: integer("unsealed").notNull().default(0),
});

const auditedWindow = {
  subjectId: uuid("subject_id").notNull(),
  kind: usageWindowKind("kind").notNull(),
  startsAt: instant("starts_at").notNull(),
  endsAt: instant("ends_at").notNull(),
  recorded: units("recorded").notNull(),
  records: units("records").notNull(),
};

export const usageTally = pgTable("usage_tally", auditedWindow, (table) => [
  primaryKey({ columns: [table.subjectId, table.kind, table.startsAt] }),
]);

/** What a full check has counted anew. */
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
  model: text("model").notNull(),
  operation: text("operation").notNull(),
  outcome: text("outcome").notNull(),
  records: units("records").notNull(),
  requests: units("requests").notNull(),
  inputTokens: units("input_tokens").notNull(),
  cachedInputTokens: units("cached_input_tokens").notNull(),
  cacheWriteTokens: units("cache_write_tokens").notNull(),
  outputTokens: units("output_tokens").notNull(),
  reasoningTokens: units("reasoning_tokens").notNull(),
  units: units("units").notNull(),
  extraUnits: units("extra_units").notNull(),
  unchargedUnits: units("uncharged_units").notNull(),
};
const rolledUpKey = ["organizationId", "startsAt", "keyId", "model", "operation", "outcome"] as const;

/** What was used, by the hour and by the day of admission. */
export const usageHour = pgTable("usage_hour", rolledUp, (table) => [
  primaryKey({ columns: rolledUpKey.map((name) => table[name]) as [typeof table.organizationId] }),
  index("usage_hour_by_start").using("brin", table.startsAt),
]);
export const usageDay = pgTable("usage_day", rolledUp, (table) => [
  primaryKey({ columns: rolledUpKey.map((name) => table[name]) as [typeof table.organizationId] }),
  index("usage_day_by_start").using("brin", table.startsAt),
]);

/** What each day's roll-ups are made of, and whether they were compared with it. */
export const usageRolled = pgTable("usage_rolled", {
  startsAt: instant("starts_at").primaryKey(),
  firstXact: units("first_xact").notNull(),
  lastXact: units("last_xact").notNull(),
  records: units("records").notNull(),
  sealedAt: instant("sealed_at"),
});

export const usageRate = pgTable(
  "usage_rate",
  {
    organizationId: uuid("organization_id").notNull(),
    countsUntil: instant("counts_until").notNull(),
    entry: text("entry").notNull(),
    requests: units("requests").notNull(),
    tokens: units("tokens").notNull(),
  },
  (table) => [primaryKey({ columns: [table.organizationId, table.countsUntil, table.entry] })],
);

export const usageRateNow = pgTable(
  "usage_rate_now",
  {
    organizationId: uuid("organization_id").notNull(),
    generation: units("generation").notNull(),
    updates: integer("updates").notNull(),
    requests: units("requests").notNull(),
    tokens: units("tokens").notNull(),
    sweptUntil: instant("swept_until").notNull(),
    readAt: instant("read_at"),
  },
  (table) => [primaryKey({ columns: [table.organizationId, table.generation] })],
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

export const keptResponse = pgTable(
  "kept_response",
  {
    id: uuid("id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    previousId: uuid("previous_id"),
    createdAt: instant("created_at").notNull(),
    bytes: units("bytes").notNull(),
    input: text("input").notNull(),
    output: text("output").notNull(),
    response: text("response").notNull(),
  },
  (table) => [index("kept_response_by_age").on(table.organizationId, table.id)],
);

export const keptResponseTotal = pgTable("kept_response_total", {
  organizationId: uuid("organization_id").primaryKey(),
  bytes: units("bytes").notNull(),
});

export const modelCalibration = pgTable("model_calibration", {
  modelId: text("model_id").primaryKey(),
  inputRatio: doublePrecision("input_ratio"),
  inputSpread: doublePrecision("input_spread"),
  inputBytes: doublePrecision("input_bytes"),
  outputTokens: doublePrecision("output_tokens"),
  outputDeltas: doublePrecision("output_deltas"),
  outputCodeUnits: doublePrecision("output_code_units"),
  outputWholeTokens: doublePrecision("output_whole_tokens"),
  outputWholeCodeUnits: doublePrecision("output_whole_code_units"),
  updatedAt: instant("updated_at").notNull(),
});

export const noticeHook = pgTable("notice_hook", {
  organizationId: uuid("organization_id").primaryKey(),
  url: text("url").notNull(),
  secret: text("secret").notNull(),
  shares: integer("shares").array().notNull(),
  keyExpiryDays: integer("key_expiry_days").notNull(),
  changedAt: instant("changed_at").notNull(),
});

export const notice = pgTable(
  "notice",
  {
    id: uuid("id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    kind: text("kind", { enum: ["usage.share_reached", "organization.suspended", "key.expiring"] }).notNull(),
    about: text("about").notNull(),
    details: jsonb("details").notNull(),
    createdAt: instant("created_at").notNull(),
    attempts: integer("attempts").notNull().default(0),
    nextAttemptAt: instant("next_attempt_at"),
    deliveredAt: instant("delivered_at"),
    problem: text("problem"),
  },
  (table) => [unique().on(table.organizationId, table.about), index("notice_due").on(table.nextAttemptAt)],
);

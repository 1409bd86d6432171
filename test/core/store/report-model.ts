// The expected figures of a report, computed plainly from the records themselves.

import type { ReportMeasures, ReportQuery, reportCosts, reportCounts } from "../../../src/admin/store/report.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";

export const always = { from: new Date("2025-01-01T00:00:00Z"), to: new Date("2028-01-01T00:00:00Z") };

/**
 * The key is the JSON of period, organization, team, key, model, operation and outcome, with null for each group that
 * was not asked for; the value, the measures.
 */
export type Plain = Map<string, ReportMeasures>;

type RecordRow = Record<string, string | number | null> & {
  admitted_at: Date;
  organization_id: string;
  source: string;
};

export const plainSum = async (db: Database, query: ReportQuery): Promise<Plain> => sumOf(await recordsIn(db), query);

export const recordsIn = (db: Database): Promise<RecordRow[]> => db.query<RecordRow>("select * from usage_record");

export function sumOf(records: readonly RecordRow[], query: ReportQuery): Plain {
  const sums: Plain = new Map();
  for (const record of records) {
    const isEntry = record.operation === "adjustment";
    if (record.admitted_at < query.from || record.admitted_at >= query.to) continue;
    if (query.organizationId !== null && idOf(record.organization_id, "org_") !== query.organizationId) continue;
    if (isEntry && record.month_starts_at === null) continue;
    if (query.teamId !== undefined && shown(record.team_id, "team_") !== query.teamId) continue;
    if (query.keyId !== undefined && shown(record.key_id, "key_") !== query.keyId) continue;
    if (query.model !== undefined && record.model !== query.model) continue;
    const key = groupOf(record, query);
    const before = sums.get(key);
    const add = (name: (typeof reportCounts)[number], value: unknown) => (before?.[name] ?? 0) + Number(value);
    const charge = (name: (typeof reportCosts)[number], value: unknown) =>
      (before?.[name] ?? 0n) + BigInt(Number(value));
    const paid = paidByKind(record);
    sums.set(key, {
      requests: add("requests", isEntry ? 0 : 1),
      inputTokens: add("inputTokens", record.input_tokens),
      cachedInputTokens: add("cachedInputTokens", record.cached_input_tokens),
      cacheWriteTokens: add("cacheWriteTokens", record.cache_write_tokens),
      outputTokens: add("outputTokens", record.output_tokens),
      reasoningTokens: add("reasoningTokens", record.reasoning_tokens),
      nanos: charge("nanos", record.charged),
      extraNanos: charge("extraNanos", record.source === "extra" ? record.charged : 0),
      unchargedNanos: charge("unchargedNanos", record.uncharged),
      inputNanos: charge("inputNanos", paid.input),
      cachedInputNanos: charge("cachedInputNanos", paid.cached_input),
      cacheWriteNanos: charge("cacheWriteNanos", paid.cache_write),
      outputNanos: charge("outputNanos", paid.output),
    });
  }
  return sums;
}

/**
 * The nanos of the charge by kind of token: the charge pays the kinds in turn, each up to its price, until it is used
 * up.
 */
function paidByKind(record: RecordRow): Record<"input" | "cached_input" | "cache_write" | "output", number> {
  let left = Math.max(0, Number(record.charged));
  const paid = (kind: string) => {
    const nanos = Math.min(
      left,
      Math.ceil((Number(record[`${kind}_tokens`]) * Number(record[`price_${kind}`])) / 1000),
    );
    left -= nanos;
    return nanos;
  };
  return {
    input: paid("input"),
    cached_input: paid("cached_input"),
    cache_write: paid("cache_write"),
    output: paid("output"),
  };
}

const shown = (id: unknown, prefix: "team_" | "key_") => (id === null ? null : idOf(String(id), prefix));

/** The local time of an instant, in the zone of a report by days or months, as if that time were in UTC. */
function clockOf(at: Date, { by, zone }: ReportQuery): Date {
  if (!zone || by.includes("hour")) return at;
  return new Date(`${at.toLocaleString("sv-SE", { timeZone: zone }).replace(" ", "T")}Z`);
}

function groupOf(record: RecordRow, query: ReportQuery): string {
  const { by } = query;
  const iso = clockOf(record.admitted_at, query).toISOString();
  const period = by.includes("hour")
    ? `${iso.slice(0, 13)}:00:00.000Z`
    : by.includes("day")
      ? `${iso.slice(0, 10)}T00:00:00.000Z`
      : by.includes("month")
        ? `${iso.slice(0, 7)}-01T00:00:00.000Z`
        : null;
  const named = (group: (typeof by)[number], value: unknown) => (by.includes(group) ? value : null);
  return JSON.stringify([
    period,
    by.includes("organization") ? idOf(record.organization_id, "org_") : undefined,
    by.includes("team") ? shown(record.team_id, "team_") : undefined,
    by.includes("key") ? shown(record.key_id, "key_") : undefined,
    named("model", record.model),
    named("operation", record.operation),
    named("outcome", record.outcome),
  ]);
}

/**
 * A report in one snapshot: roll-ups by the day, or by the hour if that is asked for, and the records that no pass of
 * the audit has read yet (docs/design/metering.md, Roll-ups).
 */
import { bare, idOf } from "../store/ids.ts";
import type { ReportGroup, ReportMeasures, ReportQuery, ReportRow, UsageReport } from "../store/report.ts";
import type { Database, Transaction } from "./database.ts";
import { isOfPerson } from "./request-hours.ts";

const statement_ms = 60_000;
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

/** The name of each group in the result, and its expression. */
const columns: Record<ReportGroup, readonly [name: string, expression: string]> = {
  organization: ["organization_id", "s.organization_id"],
  team: ["team_id", "s.team_id"],
  key: ["key_id", "s.key_id"],
  model: ["model", "s.model"],
  operation: ["operation", "s.operation"],
  outcome: ["outcome", "s.outcome"],
  hour: ["period", "s.starts_at"],
  day: ["period", "date_bin('1 day', s.starts_at, '2000-01-01Z')"],
  month: ["period", "date_trunc('month', s.starts_at at time zone 'UTC') at time zone 'UTC'"],
};

const sums: Record<keyof ReportMeasures, string> = {
  requests: "requests",
  inputTokens: "input_tokens",
  cachedInputTokens: "cached_input_tokens",
  cacheWriteTokens: "cache_write_tokens",
  outputTokens: "output_tokens",
  reasoningTokens: "reasoning_tokens",
  units: "units",
  extraUnits: "extra_units",
  unchargedUnits: "uncharged_units",
};

export function report(db: Database, query: ReportQuery): Promise<UsageReport> {
  return db.transaction((tx) => read(tx, query), { statement_ms });
}

async function read(tx: Transaction, query: ReportQuery): Promise<UsageReport> {
  await tx.exec(
    "set transaction isolation level repeatable read, read only; set local jit = off; set local enable_sort = off",
  );
  const { from, to, rows_max } = query;
  const organization = query.organizationId === null ? null : bare(query.organizationId, "org_");
  const person = query.personId ? bare(query.personId, "per_") : null;
  const found = await tx.query<Row>(textOf(query), [from, to, rows_max + 1, organization, person]);
  const [open] = await tx.query<{ at: Date; requests: number; units: number }>(
    `select store_now() as at, count(h.*) as requests, coalesce(sum(h.units), 0)::bigint as units
     from (select 1) one left join usage_hold h
       on h.admitted_at >= $1 and h.admitted_at < $2 and ($3::uuid is null or h.organization_id = $3)
       and ${isOfPerson("h", "$4")}`,
    [from, to, organization, person],
  );
  return {
    at: open!.at,
    rows: found.length > rows_max ? null : found.map((row) => rowOf(row, query.by)),
    running: { requests: open!.requests, heldUnits: open!.units },
  };
}

/**
 * Days are read if the span is whole days and nobody asks for hours. Each source is summed by itself, so that the
 * server can read the larger one in parallel. Pure.
 */
function textOf({ from, to, by, organizationId }: ReportQuery): string {
  const areDays = !by.includes("hour") && [from, to].every((at) => at.getTime() % day_ms === 0);
  const ofOne = organizationId === null ? "and $4::uuid is null" : "and s.organization_id = $4::uuid";
  const only = `${ofOne} and ${isOfPerson("s", "$5")}`;
  const groups = by.map((group) => columns[group]);
  const grouped = groups.map(([name, expression]) => `${expression} as ${name}`);
  const added = Object.entries(sums).map(([name, column]) => `sum(s.${column})::bigint as "${name}"`);
  const addedAgain = Object.keys(sums).map((name) => `sum(u."${name}")::bigint as "${name}"`);
  const grouping = groups.length === 0 ? "" : `group by ${groups.map((_, index) => index + 1).join(", ")}`;
  const part = (source: string) =>
    `select ${[...grouped, ...added].join(", ")} from ${source} s
     where s.starts_at >= $1 and s.starts_at < $2 ${only} ${grouping} having count(*) > 0`;
  return `
    with u as (
      ${part(areDays ? "usage_day" : "usage_hour")}
      union all
      ${part("usage_hours((select read_until from usage_audit), 9223372036854775807, $1, $2)")}
    ), g as (
      select ${[...groups.map(([name]) => `u.${name}`), ...addedAgain].join(", ")} from u
      ${grouping} having count(*) > 0
    )
    select g.*${by.includes("organization") ? ', o.slug, o.name as "organizationName"' : ""}
      ${by.includes("team") ? ', t.name as "teamName"' : ""}
      ${by.includes("key") ? ', k.name as "keyName", k.labels as "keyLabels"' : ""}
    from g
    ${by.includes("organization") ? "left join organization o on o.id = g.organization_id" : ""}
    ${by.includes("team") ? "left join team t on t.id = g.team_id" : ""}
    ${by.includes("key") ? "left join api_key k on k.id = g.key_id" : ""}
    ${groups.length === 0 ? "" : `order by ${groups.map(([name]) => `g.${name}`).join(", ")}`}
    limit $3`;
}

interface Row extends ReportMeasures {
  period?: Date;
  organization_id?: string;
  slug?: string | null;
  organizationName?: string | null;
  team_id?: string;
  teamName?: string | null;
  key_id?: string;
  keyName?: string | null;
  keyLabels?: Record<string, string> | null;
  model?: string;
  operation?: string;
  outcome?: string;
}

const none = "00000000-0000-0000-0000-000000000000";

function rowOf(row: Row, by: readonly ReportGroup[]): ReportRow {
  const { organization_id = "", slug = null, organizationName: name = null } = row;
  const { team_id = "", teamName = null, key_id = "", keyName = null, keyLabels } = row;
  const { model = null, operation = null, outcome = null, period = null } = row;
  const measured = Object.fromEntries(Object.keys(sums).map((one) => [one, row[one as keyof ReportMeasures]]));
  return {
    startsAt: period,
    organization: by.includes("organization") ? { id: idOf(organization_id, "org_"), slug, name } : null,
    team: by.includes("team") ? { id: team_id === none ? null : idOf(team_id, "team_"), name: teamName } : null,
    key: by.includes("key")
      ? { id: key_id === none ? null : idOf(key_id, "key_"), name: keyName, labels: keyLabels ?? {} }
      : null,
    ...{ model, operation, outcome },
    ...(measured as unknown as ReportMeasures),
  };
}

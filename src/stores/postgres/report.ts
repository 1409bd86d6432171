/**
 * Reads a report in one snapshot: from totals where they suffice, else from roll-ups by day, or by hour where the query
 * needs hours, and from the records that the audit has not rolled up yet (docs/design/metering.md, Totals).
 */
import {
  type ReportGroup,
  type ReportMeasures,
  type ReportQuery,
  type ReportRow,
  reportCosts,
  reportCounts,
  totalOf,
  type UsageReport,
} from "../../admin/store/report.ts";
import { snakeName } from "../../core/schema/codec.ts";
import { bare, idOf, uuid_min } from "../../core/store/ids.ts";
import type { Database, Transaction } from "./database.ts";
import { isOfPerson } from "./person-of-key.ts";
import {
  type Beginning,
  isByZone,
  type Range,
  type ReportSources,
  type Rolled,
  sourcesOf,
  totalFor,
} from "./report-sources.ts";

const statement_ms = 60_000;
/** Memory for 100,000 groups without a temporary file. */
const memory_kB = 32 * 1024;

/** The id that stands for "no team", "no person" or "no key". */
const none = uuid_min;

/**
 * How many months totals are kept. Older days are read from the roll-ups alone, because a total is deleted with its
 * month as a whole, while roll-ups are deleted day by day.
 */
const totalMonths = 13;
const ofKind = {
  day: `and s.kind = 'day' and s.organization_id = '${none}'`,
  organization: "and s.kind = 'organization'",
  key: "and s.kind = 'key'",
};
/** SQL for the rows with a key's sums over all months, which have no instant. */
const always = "s.starts_at = 'infinity' and s.kind = 'key_all'";

/** SQL for an instant as a number, which the driver reads several times as fast. */
const second = (instant: string) => `date_part('epoch', ${instant})`;

/** For each group, the name of its column in the result, and its expression. The person is derived from the key. */
const columns: Record<Exclude<ReportGroup, "person">, readonly [name: string, expression: string]> = {
  organization: ["organization_id", "s.organization_id"],
  team: ["team_id", "s.team_id"],
  key: ["key_id", "s.key_id"],
  model: ["model", "s.model"],
  operation: ["operation", "s.operation"],
  outcome: ["outcome", "s.outcome"],
  hour: ["period", second("s.starts_at")],
  day: ["period", second("date_bin('1 day', s.starts_at, '2000-01-01Z')")],
  month: ["period", second("date_trunc('month', s.starts_at at time zone 'UTC') at time zone 'UTC'")],
};

/** SQL for the first moment of a day or month in a zone, as a number: its local time is read as if it were UTC. */
const ofZone = (unit: "day" | "month", zone: string) =>
  second(`date_trunc('${unit}', s.starts_at at time zone ${zone}::text)`);

/** The measures with their columns. */
const sums = [...reportCounts, ...reportCosts].map((name) => [name, snakeName(name)] as const);

/** Costs are selected as text: as numbers, those above 2^53 would be rounded. */
const sumsWritten = [
  ...reportCounts.map((name) => `usage_sum(u."${name}") as "${name}"`),
  ...reportCosts.map((name) => `usage_sum(u."${name}")::text as "${name}"`),
];

export function report(db: Database, query: ReportQuery): Promise<UsageReport> {
  return db.transaction((tx) => read(tx, query), { statement_ms });
}

async function read(tx: Transaction, query: ReportQuery): Promise<UsageReport> {
  await tx.exec(
    `set transaction isolation level repeatable read, read only; set local jit = off; set local enable_sort = off;
     set local work_mem = '${memory_kB}kB'`,
  );
  const { from, to, rows_max, largest } = query;
  const rolled = await rolledDays(tx, query);
  const sources = sourcesOf(query, rolled, await rolledMonths(tx), await beginningsIn(tx, query));
  const { text, values } = statementOf(query, sources);
  // The text has a condition for each range of days, so there are thousands of texts.
  const found = await tx.queryOnce<Row>(text, values);
  const [open] = await tx.query<{ at: Date; requests: number; nanos: string }>(
    `select store_now() as at, count(h.*) as requests, coalesce(sum(h.nanos), 0)::text as nanos
     from (select 1) one left join usage_hold h
       on h.admitted_at >= $1 and h.admitted_at < $2 and ($3::uuid is null or h.organization_id = $3)
       and ${isOfPerson("h", "$4")} and ($5::uuid is null or h.team_id = $5) and ($6::uuid is null or h.key_id = $6)
       and ($7::text is null or h.model = $7)`,
    [from, to, organizationIn(query), personIn(query), teamIn(query), keyIn(query), query.model ?? null],
  );
  const running = { requests: open!.requests, heldNanos: BigInt(open!.nanos) };
  if (largest === undefined && found.length > rows_max)
    return { at: open!.at, rows: null, total: null, rowsLeftOut: 0, running };
  const sum = found.find(({ groups }) => groups !== null);
  const rows = await named(
    tx,
    query.by,
    found.filter((row) => row !== sum),
  );
  return {
    at: open!.at,
    rows,
    total: sum ? measuredAs(sum, {}) : totalOf(rows),
    rowsLeftOut: sum ? sum.groups! - rows.length : 0,
    running,
  };
}

const organizationIn = ({ organizationId }: ReportQuery) => organizationId && bare(organizationId, "org_");
const personIn = ({ personId }: ReportQuery) => (personId ? bare(personId, "per_") : null);
const teamIn = ({ teamId }: ReportQuery) => (teamId ? bare(teamId, "team_") : null);
const keyIn = ({ keyId }: ReportQuery) => (keyId ? bare(keyId, "key_") : null);

/** The days that have roll-ups, of all months that the span touches; empty if no totals can be used. */
async function rolledDays(tx: Transaction, query: ReportQuery): Promise<readonly Rolled[]> {
  if (totalFor(query) === null) return [];
  return tx.query<Rolled>(
    `select starts_at as "startsAt",
       starts_at >= (select store_now() - make_interval(months => $3)) as "isTotalled"
     from usage_rolled
     where starts_at >= date_trunc('month', $1::timestamptz at time zone 'UTC') at time zone 'UTC'
       and starts_at < (date_trunc('month', $2::timestamptz at time zone 'UTC') + interval '1 month') at time zone 'UTC'
     order by 1`,
    [query.from, query.to, totalMonths],
  );
}

/** The number of months that have roll-ups. */
async function rolledMonths(tx: Transaction): Promise<number> {
  const [found] = await tx.query<{ months: number }>(
    "select count(distinct date_trunc('month', starts_at at time zone 'UTC')) as months from usage_rolled",
  );
  return found!.months;
}

/**
 * The beginnings of the zone's days or months that could be in the span, as the server knows the zone. A midnight that
 * clocks pass twice, or leap over, is taken to be an hour after 23:00.
 */
async function beginningsIn(tx: Transaction, query: ReportQuery): Promise<readonly Beginning[]> {
  if (!isByZone(query)) return [];
  const unit = query.by.includes("day") ? "day" : "month";
  return tx.query<Beginning>(
    `select d at time zone 'UTC' as "inUtc",
       least(d at time zone $3, (d - interval '1 hour') at time zone $3 + interval '1 hour') as "inZone"
     from generate_series(date_trunc('${unit}', $1::timestamptz at time zone 'UTC' - interval '1 day'),
       $2::timestamptz at time zone 'UTC' + interval '1 day', interval '1 ${unit}') d`,
    [query.from, query.to, query.zone],
  );
}

/**
 * Makes the SQL statement of a report. Each source is summed by itself, so that the server can read the larger one in
 * parallel. A report by person is first summed by key, and then each key's person is looked up. Names are looked up
 * afterwards, each once. Pure.
 */
function statementOf(query: ReportQuery, sources: ReportSources): { text: string; values: unknown[] } {
  const { from, to, by, rows_max, largest, groups_max } = query;
  const values: unknown[] = [];
  const value = (one: unknown) => `$${values.push(one)}`;
  const within = (ranges: readonly Range[]) =>
    ranges
      .map(({ from, to }) => `s.starts_at >= ${value(from)}::timestamptz and s.starts_at < ${value(to)}::timestamptz`)
      .map((one) => `(${one})`)
      .join(" or ");
  const only = [
    query.organizationId === null ? "" : `and s.organization_id = ${value(organizationIn(query))}`,
    query.personId ? `and ${isOfPerson("s", value(personIn(query)))}` : "",
    query.teamId ? `and s.team_id = ${value(teamIn(query))}` : "",
    query.keyId ? `and s.key_id = ${value(keyIn(query))}` : "",
    query.model ? `and s.model = ${value(query.model)}` : "",
  ].join(" ");
  const isByPerson = by.includes("person");
  const others = by.filter((group) => group !== "person");
  const summed = isByPerson && !others.includes("key") ? [...others, "key" as const] : others;
  const zone = isByZone(query) ? value(query.zone) : null;
  const zoned = (group: (typeof summed)[number]) =>
    zone !== null && (group === "day" || group === "month") ? ofZone(group, zone) : columns[group][1];
  const grouped = (expressionOf: typeof zoned) =>
    summed.map((group) => `${expressionOf(group)} as ${columns[group][0]}`);
  const inUtc = grouped((group) => columns[group][1]);
  const inZone = grouped(zoned);
  // The groups for an hour that belongs to different periods in UTC and in the zone. The hour is subtracted from its
  // UTC period and added to its period in the zone.
  const inBoth = grouped((group) => `case m.sign when 1 then ${zoned(group)} else ${columns[group][1]} end`);
  const counted = [["records", "records"] as const, ...sums];
  const added = counted.map(([name, column]) => `usage_sum(s.${column}) as "${name}"`);
  const signed = counted.map(([name, column]) => `usage_sum(m.sign * s.${column}) as "${name}"`);
  const single = (sign: "" | "-") => counted.map(([name, column]) => `${sign}s.${column} as "${name}"`);
  const listed = (source: string, condition: string, sign: "" | "-" = "") =>
    `select ${[...inUtc, ...single(sign)].join(", ")} from ${source} s where ${condition} ${only}`;
  const part = (source: string, ranges: readonly Range[], groups: readonly string[], measures = added) =>
    ranges.length === 0
      ? []
      : `select ${[...groups, ...measures].join(", ")} from ${source} where (${within(ranges)}) ${only}
         ${groupingOf(groups)} having count(*) > 0`;
  const { total, rollUps, moved } = sources;
  const totals = (ranges: readonly Range[]) => {
    // A key has about one total a month, so summing totals by key would save nothing.
    const isSingle = summed.includes("key") && ranges.length > 0;
    if (isSingle) return listed("usage_total", `(${within(ranges)}) ${ofKind[total.kind]}`);
    return part(`(select * from usage_total s where true ${ofKind[total.kind]}) s`, ranges, inUtc);
  };
  const unread = `usage_recorded_hours((select read_until from usage_audit), 9223372036854775807, ${value(from)}, ${value(to)})`;
  const fromTotals = total.others
    ? [listed("usage_total", always), listed("usage_total", `(${within(total.others)}) ${ofKind.key}`, "-")]
    : totals(total.ranges);
  const parts = [
    fromTotals,
    part("usage_day s", rollUps.usage_day, inUtc),
    part("usage_hour s", rollUps.usage_hour, inZone),
    part("usage_hour s cross join (values (1), (-1)) m (sign)", moved, inBoth, signed),
    part(`${unread} s`, [{ from, to }], inZone),
  ];
  const union = parts.flat().join(" union all ");
  const all = isByPerson
    ? `select u.*, coalesce(k.person_id, '${none}') as person_id from (${union}) u left join api_key k on k.id = u.key_id`
    : union;
  const names = [...others.map((group) => columns[group][0]), ...(isByPerson ? ["person_id"] : [])];
  const summedOf = (of: readonly string[], measures: readonly string[], source: string, condition = "") => `
    select ${[...of.map((name) => `u.${name}`), ...measures].join(", ")} from ${source} u ${condition}
    ${groupingOf(of)} having usage_sum(u.records) <> 0`;
  const first = (of: readonly string[]) => `order by ${['"nanos"::bigint desc', ...of].join(", ")}`;
  const told = names.filter((name) => name !== "period");
  if (groups_max !== undefined && told.length > 0) {
    const period = names.includes("period") ? ["u.period"] : [];
    const folded = [...period, ...told.map((name) => `f.${name}`), "f.is_first"];
    return {
      text: `with parts as materialized (${all}),
        ranked as materialized (${summedOf(told, ['usage_sum(u."nanos") as "nanos"'], "parts")}),
        first as materialized (
          select ${told.join(", ")}, true as is_first from ranked ${first(told)} limit ${value(groups_max)}
        )
        select null as groups, r.* from (
          select ${[...folded, ...sumsWritten].join(", ")} from parts u
          left join first f on ${told.map((name) => `f.${name} = u.${name}`).join(" and ")}
          ${groupingOf(folded)} having usage_sum(u.records) <> 0
        ) r limit ${value(rows_max + 1)}`,
      values,
    };
  }
  if (largest === undefined) {
    const report = summedOf(names, sumsWritten, `(${all})`);
    return { text: `select null as groups, r.* from (${report}) r limit ${value(rows_max + 1)}`, values };
  }
  const order = first(names);
  const isFirst = () => `where (${names.map((name) => `u.${name}`).join(", ")}) in
    (select ${names.join(", ")} from ranked ${order} limit ${value(Math.min(largest, rows_max))})`;
  const largestRows = summedOf(names, sumsWritten, "parts", names.length > 0 ? isFirst() : "");
  // Only costs decide which rows come first, so the other sums are computed only for the rows that are returned and for
  // the total.
  return {
    text: `with parts as materialized (${all}),
      ranked as materialized (${summedOf(names, ['usage_sum(u."nanos") as "nanos"'], "parts")})
      (select null::bigint as groups, r.* from (${largestRows}) r ${order})
      union all
      select ${["(select count(*) from ranked)", ...names.map(() => "null"), ...sumsWritten].join(", ")} from parts u`,
    values,
  };
}

function groupingOf(selected: readonly string[]): string {
  return selected.length === 0 ? "" : `group by ${selected.map((_, index) => index + 1).join(", ")}`;
}

/** A row of the result, whose costs are text. */
type Measured = { [Name in keyof ReportMeasures]: ReportMeasures[Name] extends bigint ? string : number };

interface Row extends Measured {
  /** The number of groups, in the row that sums all of them; null in other rows. */
  groups: number | null;
  /** True in rows of the first groups, null in rows that sum all other groups; undefined if all groups have rows. */
  is_first?: boolean | null;
  /** The start of the period in seconds since 1970. */
  period?: number;
  organization_id?: string;
  team_id?: string;
  person_id?: string;
  key_id?: string;
  model?: string;
  operation?: string;
  outcome?: string;
}

async function named(tx: Transaction, by: readonly ReportGroup[], rows: readonly Row[]): Promise<ReportRow[]> {
  const { organization, team, person, key } = namings;
  const organizations = await found(tx, organization, by.includes("organization") ? rows : []);
  const teams = await found(tx, team, by.includes("team") ? rows : []);
  const people = await found(tx, person, by.includes("person") ? rows : []);
  const keys = await found(tx, key, by.includes("key") ? rows : []);
  const starts = new Map<number, Date>();
  return rows.map((row) => {
    const { period, organization_id = "", team_id = "", person_id = "", key_id = "" } = row;
    const { model = null, operation = null, outcome = null } = row;
    return measuredAs(row, {
      startsAt: period === undefined ? null : starts.getOrInsertComputed(period, (seconds) => new Date(seconds * 1000)),
      organization: organizations.get(organization_id) ?? null,
      team: teams.get(team_id) ?? null,
      person: people.get(person_id) ?? null,
      key: keys.get(key_id) ?? null,
      model,
      operation,
      outcome,
      ...(row.is_first === null && { isOthers: true as const }),
    });
  });
}

/** Copies the measures one by one: a spread takes several times as long with so many rows. */
function measuredAs<Groups extends object>(row: Measured, groups: Groups): Groups & ReportMeasures {
  const listed = groups as Groups & ReportMeasures;
  const measured: ReportMeasures = listed;
  for (const name of reportCounts) measured[name] = row[name];
  for (const name of reportCosts) measured[name] = BigInt(row[name]);
  return listed;
}

interface Naming<Thing extends { id: string }, Listed> {
  column: "organization_id" | "team_id" | "person_id" | "key_id";
  statement: string;
  /** The reported form of a thing; `thing` is undefined if it no longer exists. */
  listed(id: string, thing: Thing | undefined): Listed;
}

const namings = {
  organization: {
    column: "organization_id",
    statement: "select id, slug, name from organization where id = any ($1)",
    listed: (id, thing) => ({ id: idOf(id, "org_"), slug: thing?.slug ?? null, name: thing?.name ?? null }),
  } satisfies Naming<{ id: string; slug: string; name: string }, ReportRow["organization"]>,
  team: {
    column: "team_id",
    statement: "select id, name from team where id = any ($1)",
    listed: (id, thing) => ({ id: id === none ? null : idOf(id, "team_"), name: thing?.name ?? null }),
  } satisfies Naming<{ id: string; name: string }, ReportRow["team"]>,
  person: {
    column: "person_id",
    statement: "select id, coalesce(name, email) as name from person where id = any ($1)",
    listed: (id, thing) => ({ id: id === none ? null : idOf(id, "per_"), name: thing?.name ?? null }),
  } satisfies Naming<{ id: string; name: string | null }, ReportRow["person"]>,
  key: {
    column: "key_id",
    statement: "select id, name, labels from api_key where id = any ($1)",
    listed: (id, thing) => ({
      id: id === none ? null : idOf(id, "key_"),
      name: thing?.name ?? null,
      labels: thing?.labels ?? {},
    }),
  } satisfies Naming<{ id: string; name: string; labels: Record<string, string> }, ReportRow["key"]>,
} as const;

/** Reads the names of the things in the rows, by their ids. Rows of one thing share the value. */
async function found<Thing extends { id: string }, Listed>(
  tx: Transaction,
  { column, statement, listed }: Naming<Thing, Listed>,
  rows: readonly Row[],
): Promise<ReadonlyMap<string, Listed>> {
  const ids = [...new Set(rows.flatMap((row) => row[column] ?? []))];
  if (ids.length === 0) return new Map();
  const things = new Map((await tx.query<Thing>(statement, [ids])).map((thing) => [thing.id, thing]));
  return new Map(ids.map((id) => [id, listed(id, things.get(id))]));
}

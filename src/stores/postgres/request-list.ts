/**
 * Lists requests over SQL without an index of its own, so that a settlement costs nothing more. Ids begin with their
 * time, so each source is read along its primary key, a bounded number of rows at a time; an organization's records are
 * read only around the hours in which the roll-ups have any (docs/operating.md, Listing requests).
 */

import type { ListedRequest, RequestList, RequestPage, RequestQuery } from "../../admin/store/request-list.ts";
import { bare, idOf, uuid_max, uuid_min } from "../../core/store/ids.ts";
import type { Querying } from "./database.ts";
import { lateEntries } from "./ledger-late.ts";
import { isOfPerson } from "./person-of-key.ts";
import { hourSpans } from "./request-hours.ts";
import { holdListed, recordListed, refusalListed, withLate } from "./request-rows.ts";
import { type FoundRequests, type Span, uuidAt } from "./request-spans.ts";
import { uuidIfAny } from "./rows.ts";

interface RequestListBounds {
  /** The most rows that one statement reads. */
  scanned_max: number;
  /** The time that a page may take: after it, no further statement is sent. */
  page_ms: number;
}
/**
 * The most by which the time in a request's id (its arrival by the node's clock) may differ from the admission's time
 * (by the store's clock).
 */
const slack_ms = 600_000;
const usualBounds: RequestListBounds = { scanned_max: 5_000, page_ms: 75 };

/** The state of one page while it is read. */
interface ListReading {
  db: Querying;
  query: RequestQuery;
  scanned_max: number;
  /** The value of `now_ms` after which no further statement is sent. */
  until_ms: number;
  now_ms: () => number;
}

export function requestList(db: Querying, bounds = usualBounds, now_ms = () => performance.now()): RequestList {
  return {
    async listRequests(query) {
      const span: Span = {
        since: query.from ? uuidAt(query.from.getTime() - slack_ms) : uuid_min,
        until: query.before ? bare(query.before, "req_") : query.to ? uuidAt(query.to.getTime() + slack_ms) : null,
      };
      const { scanned_max, page_ms } = bounds;
      const page: ListReading = { db, query, scanned_max, until_ms: now_ms() + page_ms, now_ms };
      // Running requests are read first: a request that ends meanwhile is found in both sources, and its record is
      // used.
      const holds = await foundHolds(page, span);
      const refusals = await scanned(page, refusalsOf, [span]);
      const records = await foundRecords(page, span);
      return withLateSettlements(db, merged(query.limit, span, [records, refusals, holds]));
    },
  };
}

/**
 * Merges the newest requests of all sources, down to the id that the reading of every source has reached. If a request
 * is in two sources, the first one is used.
 */
function merged(limit: number, { since }: Span, sources: readonly FoundRequests[]): RequestPage {
  const reached = sources
    .map((source) => source.reached)
    .toSorted()
    .at(-1)!;
  const all = new Map<string, ListedRequest>();
  for (const { items } of sources)
    for (const item of items) if (!all.has(item.requestId)) all.set(item.requestId, item);
  const inReach = [...all.values()]
    .filter(({ requestId }) => requestId >= idOf(reached, "req_"))
    .toSorted((one, other) => (one.requestId < other.requestId ? 1 : -1));
  const items = inReach.slice(0, limit);
  if (inReach.length > limit) return { items, next: items.at(-1)!.requestId };
  return { items, next: reached > since ? idOf(reached, "req_") : null };
}

/**
 * The page, where a request that was recovered and then settled by its own node has the sums of its record and its late
 * settlement.
 */
async function withLateSettlements(db: Querying, page: RequestPage): Promise<RequestPage> {
  const recovered = page.items.filter((item) => item.recovered).map(({ requestId }) => requestId);
  const entries = await lateEntries(db, recovered);
  if (entries.size === 0) return page;
  const items = page.items.map((item) => {
    const late = entries.get(item.requestId);
    return late ? withLate(item, late) : item;
  });
  return { ...page, items };
}

async function foundRecords(page: ListReading, span: Span): Promise<FoundRequests> {
  const { db, query, scanned_max } = page;
  if (query.outcome === "running" || query.outcome === "refused") return { items: [], reached: span.since };
  const { spans, reached } = await hourSpans(db, query, span, scanned_max);
  const found = await scanned(page, recordsOf, spans);
  const isWhole = spans.length === 0 || found.reached === spans.at(-1)!.since;
  return isWhole ? { ...found, reached } : found;
}

async function foundHolds({ db, query }: ListReading, span: Span): Promise<FoundRequests> {
  const isOther = query.outcome !== undefined && query.outcome !== "running";
  // A running request has no upstream before its end.
  if (isOther || query.upstream !== undefined) return { items: [], reached: span.since };
  const items = await db.query<ListedRequest>(holding, [...valuesOf(query, span), query.limit + 1]);
  return { items, reached: items.length > query.limit ? bare(items.at(-1)!.requestId, "req_") : span.since };
}

/** A table that is read along its primary key. */
interface Source {
  reading: string;
  /** Whether the table can have matching rows. */
  canMatch(query: RequestQuery): boolean;
}

/**
 * Reads the spans from the newest down, more rows each time, until there are enough or the time is over. A statement
 * reads no more rows than fit into the remaining time at the speed of the last statement.
 */
async function scanned(page: ListReading, source: Source, spans: readonly Span[]): Promise<FoundRequests> {
  const { db, query, scanned_max, until_ms, now_ms } = page;
  const found: FoundRequests = { items: [], reached: spans.at(-1)?.since ?? uuid_min };
  if (!source.canMatch(query)) return found;
  const rows_min = Math.min(scanned_max, query.limit + 1);
  let rows_max = Math.min(scanned_max, 4 * rows_min);
  for (const span of spans) {
    let until = span.until;
    for (;;) {
      const missing = query.limit + 1 - found.items.length;
      const values = [...valuesOf(query, { since: span.since, until }), missing, rows_max];
      const sent_ms = now_ms();
      const rows = await db.query<ListedRequest & { read_to: string | null }>(source.reading, values);
      const answered_ms = now_ms();
      const matching = rows.filter(({ requestId }) => requestId !== null);
      found.items.push(...matching.map(({ read_to: _, ...request }) => request));
      const isFull = matching.length === missing;
      const readTo = rows[0]?.read_to ?? null;
      if (isFull) return { ...found, reached: bare(matching.at(-1)!.requestId, "req_") };
      if (readTo !== null) until = readTo;
      const inTime = Math.floor((rows_max * (until_ms - answered_ms)) / (answered_ms - sent_ms));
      rows_max = Math.min(scanned_max, 4 * rows_max, inTime);
      if (answered_ms >= until_ms || rows_max < rows_min) return { ...found, reached: readTo ?? span.since };
      if (readTo === null) break;
    }
  }
  return found;
}

function valuesOf(query: RequestQuery, { since, until }: Span): unknown[] {
  const { organizationId, keyId, teamId, model, operation, outcome, upstream, personId } = query;
  return [
    uuidIfAny(organizationId, "org_"),
    uuidIfAny(keyId, "key_"),
    uuidIfAny(teamId, "team_"),
    model ?? null,
    outcome ?? null,
    upstream ?? null,
    since,
    until,
    uuidIfAny(personId, "per_"),
    operation ?? null,
    query.from ?? null,
    query.to ?? null,
  ];
}

/** Both conditions are bounds of the index, whatever plan the server chooses. */
const isInSpan = `r.request_id >= $7::uuid and r.request_id < coalesce($8::uuid, '${uuid_max}')`;
const matches = (at: "admitted_at" | "refused_at") => `($1::uuid is null or r.organization_id = $1)
  and ($2::uuid is null or r.key_id = $2) and ($4::text is null or r.model = $4) and ${isOfPerson("r", "$9")}
  and ($10::text is null or r.operation = $10)
  and ($11::timestamptz is null or r.${at} >= $11) and ($12::timestamptz is null or r.${at} < $12)`;

const names = (team: string) => `
  left join api_key k on k.id = r.key_id left join person p on p.id = k.person_id left join team t on t.id = ${team}`;

const holding = `
  select ${holdListed} from usage_hold r ${names("r.team_id")}
  where ${isInSpan} and ${matches("admitted_at")} and ($3::uuid is null or r.team_id = $3)
    and ($5::text is null or $5 = 'running') and $6::text is null
  order by r.request_id desc limit $13`;

/**
 * SQL for the matching rows, or one empty row. `read_to`: the id down to which rows were read; null if the span was
 * read to its end.
 */
function reading(
  table: string,
  listed: string,
  at: "admitted_at" | "refused_at",
  team: string,
  condition: string,
): string {
  return `
  with scanned as materialized (
    select r.request_id, coalesce(${matches(at)} and ${condition}, false) as matches
    from ${table} r where ${isInSpan} order by r.request_id desc limit $14
  ), chosen as materialized (
    select s.request_id from scanned s where s.matches order by s.request_id desc limit $13
  ), ended as (
    select case when count(*) = $14 then (select s.request_id from scanned s order by s.request_id limit 1) end as read_to
    from scanned
  )
  select e.read_to, ${listed} from ended e left join (
    select r.* from chosen c cross join lateral (select * from ${table} o where o.request_id = c.request_id offset 0) r
  ) r on true ${names(team)}
  order by r.request_id desc`;
}

const recordsOf: Source = {
  reading: reading(
    "usage_record",
    recordListed,
    "admitted_at",
    "r.team_id",
    `r.operation <> 'adjustment' and ($3::uuid is null or r.team_id = $3) and ($5::text is null or r.outcome = $5)
      and ($6::text is null or r.upstream = $6)`,
  ),
  canMatch: () => true,
};

/** Refusals, which have no team and no upstream. */
const refusalsOf: Source = {
  reading: reading(
    "usage_refusal",
    refusalListed,
    "refused_at",
    "null::uuid",
    "$3::uuid is null and ($5::text is null or $5 = 'refused') and $6::text is null",
  ),
  canMatch: ({ outcome, teamId, upstream }) =>
    (outcome === undefined || outcome === "refused") && teamId === undefined && upstream === undefined,
};

// Reads all records and windows of the ledger at the end of a run.

import type { Transaction } from "../../src/stores/postgres/database.ts";
import type { Received } from "./load.ts";
import { ask } from "./stores.ts";

export interface Row {
  request_id: string;
  organization_id: string;
  operation: string;
  stream: boolean;
  /** Whether the record is of a background response, whose text is stored as it is generated. */
  is_background: boolean;
  outcome: string;
  stopped_by: string | null;
  recovered: boolean;
  /**
   * Whether the request's own node later settled tokens that the recovery did not know of; the record's sums include
   * them.
   */
  is_late: boolean;
  output_tokens: number;
  charged: number;
  uncharged: number;
  input_tokens: number;
  attempts: number | null;
  session_used_after: number | null;
  usage_source: string;
  is_rejected: boolean;
  session_starts_at: string | null;
  /** The times of admission and settlement, by the store's clock. */
  admitted_ms: number;
  ended_ms: number;
  /** UUIDs of the keys, people and teams with limits in whose usage windows the record counts. */
  subjects: string[] | null;
}

interface Total {
  /** UUID of the window's owner: an organization, a key, a person's subject or a team. */
  subject_id: string;
  starts_at: string;
  kind: string;
  used: number;
  held: number;
  /**
   * The sum of the window's records, and of the usage of a key, a person or a team from before the ledger had a window
   * for it.
   */
  charged: number;
  /**
   * For a person whose usage is counted: the sum of all records of the person's keys, whichever subjects the records
   * name. Null for others.
   */
  of_own_keys: number | null;
}

/** How long reading the ledger may take, in milliseconds. Adding up every window takes long on a busy machine. */
const reading_ms = 60_000;

/** Reads the open requests whose output the ledger knows from a checkpoint. */
export function openWithOutput(port: number): Promise<{ request_id: string; stream: boolean }[]> {
  return ask(port, (db) => db.query("select request_id, stream from usage_hold where produced_tokens > 0"));
}

export function readBook(port: number): Promise<{ rows: Row[]; windows: Total[] }> {
  return ask(port, (db) => db.transaction(readIn, { statement_ms: reading_ms }));
}

async function readIn(tx: Pick<Transaction, "query">): Promise<{ rows: Row[]; windows: Total[] }> {
  return {
    rows: [
      ...(await tx.query<Row>(`
        select r.request_id, r.organization_id, r.operation::text, r.stream, r.outcome, r.stopped_by, r.recovered, l.request_id is not null is_late,
          (r.output_tokens + coalesce(l.output_tokens, 0))::int output_tokens,
          (r.charged + coalesce(l.charged, 0))::int charged, (r.uncharged + coalesce(l.uncharged, 0))::int uncharged,
          (r.input_tokens + coalesce(l.input_tokens, 0))::int input_tokens, r.attempts::int,
          coalesce(l.session_used_after, r.session_used_after)::float8 session_used_after,
          coalesce(l.usage_source, r.usage_source) usage_source, r.report_rejected is not null is_rejected,
          r.session_starts_at::text, r.subjects,
          (extract(epoch from r.admitted_at) * 1000)::float8 admitted_ms, (extract(epoch from r.ended_at) * 1000)::float8 ended_ms,
          exists (select from kept_answer k where k.request_id = r.request_id and k.response_id is not null) is_background
        from usage_record r left join usage_record l on l.request_id = usage_late_id(r.request_id)
        where r.operation <> 'adjustment'`)),
    ],
    windows: [
      ...(await tx.query<Total>(`
        select w.subject_id, w.starts_at::text, w.kind, w.used::float8 used, w.held::float8 held,
          (select coalesce(sum(nanos), 0)::float8 from usage_opening o
            where o.subject_id = w.subject_id and o.kind = w.kind and o.starts_at = w.starts_at)
          + (select coalesce(sum(charged), 0)::float8 from usage_record r
            where (r.organization_id = w.subject_id or w.subject_id = any(r.subjects))
            and case w.kind when 'session' then r.session_starts_at when 'week' then r.week_starts_at
              else r.month_starts_at end = w.starts_at
            and r.source = case w.kind when 'extra' then 'extra' else 'plan' end::usage_billing) charged,
          (select sum(r.charged)::float8 from usage_record r
            where r.key_id = any(usage_keys_of(w.subject_id)) and r.organization_id = s.organization_id
            and case w.kind when 'session' then r.session_starts_at when 'week' then r.week_starts_at
              else r.month_starts_at end = w.starts_at and w.kind <> 'extra') of_own_keys
        from usage_window w
        left join usage_subject s
          on s.subject_id = w.subject_id and s.person_id is not null and s.summed_at is not null`)),
    ],
  };
}

/** How long outages may delay the settlement of a request. */
const settled_ms = 8_000;

export function isForgotten(
  { began_ms, ended_ms }: Pick<Received, "began_ms" | "ended_ms">,
  spans: readonly { from_ms: number; to_ms: number }[],
): boolean {
  return spans.some(({ from_ms, to_ms }) => began_ms <= to_ms && ended_ms + settled_ms >= from_ms);
}

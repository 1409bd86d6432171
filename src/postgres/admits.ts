/** Checks that a database accepts the writes of an admission. */
import { answeredWithin, type Database } from "./database.ts";
import { DatabaseError } from "./database-error.ts";

/**
 * Returns null, or the reason why nothing can be admitted. It answers within `timeout_ms` and never rejects. One
 * statement writes a row into the table into which every admission writes, and takes it back: a read-only database or a
 * full disk fails it as it would fail an admission.
 */
export async function whyNoAdmission(db: Database, timeout_ms: number): Promise<string | null> {
  try {
    await answeredWithin(db.exec(trial), timeout_ms, "the database");
    return null;
  } catch (error) {
    return reasonOf(error instanceof DatabaseError ? error.code : "");
  }
}

function reasonOf(code: string): string {
  if (code === "25006") return "the database is read-only";
  if (code === "53100") return "the disk of the database is full";
  // 3F and 42P01: the table does not exist; the check of the schema says more.
  if (/^[0-9A-Z]{5}$/.test(code)) return `the database refuses writes (SQLSTATE ${code})`;
  return "the database does not answer";
}

const trial = `do $$ begin
  insert into usage_hold (
    request_id, organization_id, key_id, operation, model, stream,
    price_input, price_cached_input, price_cache_write, price_output, source, units, output_tokens,
    admitted_at, lease_until, session_starts_at, session_ends_at, session_used,
    week_starts_at, week_ends_at, week_used, month_starts_at, month_ends_at, month_used, lease_ms)
  select id, id, id, '', '', false, 0, 0, 0, 0, 'plan', 0, 0, at, at, at, at, 0, at, at, 0, at, at, 0, 0
  from (select gen_random_uuid() as id, clock_timestamp() as at) as trial;
  raise exception 'taken back' using errcode = 'SL000';
exception when sqlstate 'SL000' then null;
end $$`;

/**
 * Kept answers over SQL: the answers of requests with an idempotency key, and of background responses, stored to be
 * read again. A claim on an idempotency key is unique, so only one request runs for a key.
 */

import { bare, idOf, uuidOf } from "../../core/store/ids.ts";
import type { LogName } from "../../features/responses/store/answer-log.ts";
import type { Kept, KeptAnswers } from "../../features/responses/store/kept.ts";
import type { Querying } from "./database.ts";
import { shownId, uuidIfAny } from "./rows.ts";

/** The most rows that one statement deletes, so that it blocks nobody. */
const forgotten_max = 500;
/**
 * How long notes of replayed answers (answers given to repeated requests) are kept: as long as receipts of refused
 * requests.
 */
const noted_days = 31;

interface KeptSettings {
  kept_hours(): number;
}

export function keptAnswers(db: Querying, { kept_hours }: KeptSettings): KeptAnswers {
  async function begin(row: readonly unknown[], claim: string | null): Promise<"begun" | Kept> {
    for (;;) {
      if ((await db.query(beginning, row)).length > 0) return "begun";
      const [held] = await db.query<Kept>(`${selecting} claim = decode($1, 'hex')`, [claim]);
      if (held && held.age_ms < kept_hours() * 3_600_000) return held;
      // The row stays, because it names the log that `forget` removes.
      if (held) await db.query(expiring, [bare(held.requestId, "req_")]);
    }
  }

  return {
    begin({ requestId, organizationId, claim }) {
      const row = [bare(requestId, "req_"), bare(organizationId, "org_"), claim?.key ?? null, claim?.body ?? null];
      return begin(row, claim?.key ?? null);
    },
    async find(requestId) {
      const [row] = await db.query<Kept>(`${selecting} request_id = $1`, [bare(requestId, "req_")]);
      return row ?? null;
    },
    async response(organizationId, responseId) {
      const uuid = uuidOf(responseId, "resp_");
      if (!uuid) return null;
      const values = [uuid, bare(organizationId, "org_"), kept_hours()];
      const [row] = await db.query<Kept>(
        `${selecting} response_id = $1 and organization_id = $2 and ${isKept("$3")}`,
        values,
      );
      return row ?? null;
    },
    async end(requestId, { state, bytes, response, responseId, freesClaim = false }) {
      const responseUuid = uuidIfAny(responseId, "resp_");
      const values = [bare(requestId, "req_"), state, bytes, response ?? null, freesClaim, responseUuid];
      return (await db.query(ending, values)).length > 0;
    },
    async measured(requestId, bytes) {
      await db.query(measuring, [bare(requestId, "req_"), bytes]);
    },
    async respond(requestId, responseId, response) {
      const values = [bare(requestId, "req_"), bare(responseId, "resp_"), response];
      return (await db.query(responding, values)).length > 0;
    },
    async free(requestId) {
      const gone = await db.query("delete from kept_answer where request_id = $1 returning request_id", [
        bare(requestId, "req_"),
      ]);
      return gone.length > 0;
    },
    async abandon(requestId) {
      const [row] = await db.query<{ is_free: boolean }>(abandoning, [bare(requestId, "req_")]);
      return row!.is_free;
    },
    async open(requestIds) {
      if (requestIds.length === 0) return [];
      const rows = await db.query<{ request_id: string }>(
        "select request_id from kept_answer where request_id = any($1::uuid[]) and state = 'open'",
        [requestIds.map((id) => bare(id, "req_"))],
      );
      return rows.map(({ request_id }) => idOf(request_id, "req_"));
    },
    makeRoom: async (organizationId, bytes_max) =>
      db.query<LogName>(makingRoom, [bare(organizationId, "org_"), bytes_max]),
    async forget() {
      await db.query(forgettingNotes, [noted_days, forgotten_max]);
      return db.query<LogName>(forgetting, [kept_hours(), forgotten_max]);
    },
    async writeNote({ requestId, organizationId }, note) {
      const replay = note.kind === "replay" ? note : null;
      await db.query(noting, [
        bare(requestId, "req_"),
        bare(organizationId, "org_"),
        note.kind === "detached",
        replay && bare(replay.replayOf, "req_"),
        replay && bare(replay.keyId, "key_"),
        replay?.operation ?? null,
        replay?.model ?? null,
        replay?.stream ?? null,
      ]);
    },
  };
}

/** Deletes the text of all answers of an organization that keeps no content. The rounds of `forget` delete the rest. */
export async function purgeKept(db: Querying, owner: string): Promise<void> {
  await db.query(purging, [owner]);
}

const purging = `
  with emptied as (
    update kept_answer set response = null where organization_id = $1 returning request_id
  )
  delete from kept_answer_entry where request_id in (select request_id from emptied)`;

/** SQL for the columns of a `LogName`. */
const logName = `${shownId("request_id", "req_")} as "requestId", ${shownId("organization_id", "org_")} as "organizationId"`;

const isKept = (hours: string) => `created_at > store_now() - ${hours}::integer * interval '1 hour'`;

const beginning = `
  insert into kept_answer (request_id, organization_id, claim, body, created_at)
  values ($1, $2, decode($3, 'hex'), decode($4, 'hex'), store_now())
  on conflict (claim) do nothing returning request_id`;

const selecting = `
  select ${logName}, state, encode(body, 'hex') as body, ${shownId("response_id", "resp_")} as "responseId", response,
    (extract(epoch from store_now() - created_at) * 1000)::bigint as age_ms
  from kept_answer where`;

const responding = `
  update kept_answer set response_id = $2, response = $3 where request_id = $1 and state = 'open'
    and not exists (select from usage_record r where r.request_id = $1)
  returning request_id`;

const ending = `
  update kept_answer set state = $2, bytes = $3, response = coalesce($4, response),
    response_id = coalesce(response_id, $6::uuid),
    claim = case when $5::boolean then null else claim end, body = case when $5::boolean then null else body end
  where request_id = $1 and state = 'open' returning request_id`;

const measuring = "update kept_answer set bytes = $2 where request_id = $1 and state = 'ended'";

const expiring = "update kept_answer set claim = null, body = null where request_id = $1";

const abandoning = `
  with gone as (
    update kept_answer k set state = 'ended', claim = null, body = null where k.request_id = $1
      and (k.state <> 'open' or k.response is null)
      and not exists (select from usage_hold h where h.request_id = $1)
      and not exists (select from usage_record r where r.request_id = $1 and r.charged > 0)
    returning k.request_id
  )
  select exists (select from gone)
    or not exists (select from kept_answer where request_id = $1 and claim is not null) as is_free`;

/**
 * Deletes the oldest answers of an organization beyond the bytes that it may keep. A deleted answer (`lost`) keeps its
 * claim on the idempotency key, so that a request with this key is never charged again.
 */
const makingRoom = `
  with newest as (
    select request_id, sum(bytes) over (order by request_id desc) as total
    from kept_answer where organization_id = $1 and state = 'ended'
  )
  update kept_answer set state = 'lost', bytes = 0, response = null
  where request_id in (select request_id from newest where total > $2::bigint) and bytes > 0
  returning ${logName}`;

/**
 * Finds expired rows by their ids, which begin with the time by the clock of the node that made them. They are kept a
 * day longer, because that clock may be slow. Logs in the database are deleted in the same statement as the rows that
 * name them, so that a crash leaves no log that no row names.
 */
const forgetting = `
  with gone as (
    delete from kept_answer where request_id in (
      select request_id from kept_answer
      where request_id < (select usage_record_id(store_now() - ($1::integer + 24) * interval '1 hour'))
      order by request_id limit $2
    ) or organization_id in (
      select id from organization where not keeps_content or status = 'closed'
    ) returning request_id, organization_id
  ), emptied as (
    delete from kept_answer_entry where request_id in (select request_id from gone)
  )
  select ${logName} from gone`;

const forgettingNotes = `
  delete from answer_note where request_id in (
    select request_id from answer_note
    where request_id < (select usage_record_id(store_now() - $1::integer * interval '1 day'))
    order by request_id limit $2
  )`;

const noting = `
  insert into answer_note
    (request_id, organization_id, detached, replay_of, key_id, operation, model, stream, noted_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, store_now()) on conflict do nothing`;

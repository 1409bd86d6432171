/**
 * Stored responses over SQL. SQL functions maintain the total size of an organization's responses, and make room by
 * deleting the oldest.
 */
import { bare, idOf, uuidOf } from "../../core/store/ids.ts";
import type { KeptResponse, KeptTurn, Reader, ResponseStore } from "../../features/responses/store/responses.ts";
import type { Querying } from "./database.ts";
import { isOfPerson } from "./person-of-key.ts";
import { uuidIfAny } from "./rows.ts";

/** The most rows that one statement deletes, so that it blocks nobody. */
const forgotten_max = 500;
/** The most turns of a conversation, whatever their size. */
const turns_max = 10_000;

export function keptResponses(db: Querying, settings: { kept_days(): number }): ResponseStore {
  return {
    async keep({ organizationId, keyId }, { id, previousId, input, output, response }, bytes_max) {
      const previous = uuidIfAny(previousId, "resp_");
      const made = [bare(organizationId, "org_"), bare(id, "resp_"), previous, input, output, response];
      const values = [...made, bytes_max, bare(keyId, "key_")];
      const [row] = await db.query<{ kept: boolean }>(
        "select kept_response_keep($1, $2, $3, $4, $5, $6, $7, $8) as kept",
        values,
      );
      return row!.kept;
    },
    async conversation(reader, id, bytes_max) {
      const uuid = uuidOf(id, "resp_");
      if (!uuid) return "not_found";
      const values = [...readerOf(reader), uuid, settings.kept_days(), bytes_max, turns_max];
      const rows = await db.query<TurnRow & { total: number; depth: number }>(conversation, values);
      const oldest = rows[0];
      if (!oldest) return "not_found";
      if (oldest.total > bytes_max || oldest.depth >= turns_max) return "too_long";
      return oldest.previous_id === null ? rows.map(turnOf) : "not_found";
    },
    async turns(reader, ids, { inputs, bytes_max }) {
      const uuids = [...new Set(ids)].map((id) => uuidOf(id, "resp_")).filter((uuid) => uuid !== null);
      if (uuids.length === 0) return [];
      const values = [...readerOf(reader), settings.kept_days(), uuids, inputs, bytes_max];
      const rows = await db.query<TurnRow & { total: number }>(turns, values);
      return (rows[0]?.total ?? 0) > bytes_max ? "too_long" : rows.map(turnOf);
    },
    async find(reader, id) {
      const uuid = uuidOf(id, "resp_");
      if (!uuid) return null;
      const [row] = await db.query<TurnRow & { response: string }>(
        `select id, previous_id, input, output, response from kept_response where id = $4 and ${isKept}`,
        [...readerOf(reader), settings.kept_days(), uuid],
      );
      return row ? ({ ...turnOf(row), response: row.response } satisfies KeptResponse) : null;
    },
    async remove(reader, id) {
      const uuid = uuidOf(id, "resp_");
      if (!uuid) return false;
      const [row] = await db.query<{ removed: boolean }>(
        `select kept_response_remove($1, id) as removed from kept_response where id = $3 and ${isReaders}`,
        [...readerOf(reader), uuid],
      );
      return row?.removed ?? false;
    },
    async forget() {
      for (const { id } of await db.query<{ id: string }>(keepNothing)) await purge(db, id);
      const [row] = await db.query<{ gone: number }>(forgetting, [settings.kept_days(), forgotten_max]);
      return row!.gone === forgotten_max;
    },
  };
}

/** Deletes all stored responses of an organization that keeps no content. Does nothing for others. */
export async function purge(db: Querying, owner: string): Promise<void> {
  for (;;) {
    const [row] = await db.query<{ gone: number }>("select kept_response_purge($1, $2) as gone", [
      owner,
      forgotten_max,
    ]);
    if (row!.gone < forgotten_max) return;
  }
}

/** SQL for organizations that keep no content and still have responses, because a node ended while it deleted them. */
const keepNothing = `
  select t.organization_id as id from kept_response_total t join organization o on o.id = t.organization_id
  where t.bytes > 0 and (not o.keeps_content or o.status = 'closed')`;

/** The reader as the parameters `$1` and `$2` of each query. */
const readerOf = ({ organizationId, personId }: Reader) => [bare(organizationId, "org_"), uuidIfAny(personId, "per_")];

const isReaders = `organization_id = $1 and ${isOfPerson("kept_response", "$2")}`;

interface TurnRow {
  id: string;
  previous_id: string | null;
  input: string;
  output: string;
}

function turnOf({ id, previous_id, input, output }: TurnRow): KeptTurn {
  return { id: idOf(id, "resp_"), previousId: previous_id && idOf(previous_id, "resp_"), input, output };
}

const isKept = `${isReaders} and created_at > store_now() - $3::integer * interval '1 day'`;

/** Inputs and outputs are read only if the whole conversation has at most `$5` bytes. */
const conversation = `
  with recursive turn as (
    select id, previous_id, bytes as total, 1 as depth from kept_response
    where id = $3 and ${isReaders} and created_at > store_now() - $4::integer * interval '1 day'
    union all
    select k.id, k.previous_id, t.total + k.bytes, t.depth + 1
    from turn t join kept_response k on k.id = t.previous_id
    where k.organization_id = $1 and ${isOfPerson("k", "$2")}
      and k.created_at > store_now() - $4::integer * interval '1 day' and t.total <= $5::bigint and t.depth < $6::integer
  ), whole as (select max(total) as total from turn)
  select k.id, k.previous_id, t.total, t.depth,
    case when w.total <= $5::bigint then k.input else '' end as input,
    case when w.total <= $5::bigint then k.output else '' end as output
  from turn t join kept_response k using (id) cross join whole w
  order by t.depth desc`;

const turns = `
  with requested as (
    select id, (case when $5::boolean then octet_length(input) else 0 end) + octet_length(output) as bytes
    from kept_response where id = any($4::uuid[]) and ${isKept}
  ), whole as (select sum(bytes)::bigint as total from requested)
  select k.id, k.previous_id, w.total,
    case when $5::boolean and w.total <= $6::bigint then k.input else '[]' end as input,
    case when w.total <= $6::bigint then k.output else '[]' end as output
  from requested join kept_response k using (id) cross join whole w`;

/**
 * Finds expired rows by their ids, which begin with the time by the clock of the node that made them. They are kept a
 * day longer, because that clock may be slow.
 */
const forgetting = `
  select kept_response_forget(usage_record_id(store_now() - ($1::integer + 1) * interval '1 day'), $2) as gone`;

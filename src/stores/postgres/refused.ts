/**
 * Refused requests over SQL. A unique key limits the number of an organization's rows in each second, whichever nodes
 * write them.
 */
import type { LimitMet } from "../../core/inference/fault.ts";
import { bare } from "../../core/store/ids.ts";
import { type RefusedRequest, type RefusedRequests, refused_per_second_max } from "../../core/store/refused.ts";
import type { Querying } from "./database.ts";
import { personOfKey } from "./person-of-key.ts";
import { shownId } from "./rows.ts";

/** The most rows that one statement deletes, so that it blocks nobody. */
const forgotten_max = 2_000;

export function refusedRequests(db: Querying): RefusedRequests {
  return {
    async keep(requests) {
      if (requests.length === 0) return;
      await db.query(keeping, [
        requests.map((one) => bare(one.requestId, "req_")),
        requests.map((one) => bare(one.organizationId, "org_")),
        requests.map((one) => bare(one.keyId, "key_")),
        requests.map((one) => one.operation),
        requests.map((one) => one.model),
        requests.map((one) => one.stream),
        requests.map((one) => one.errorCode),
        requests.map((one) => Math.max(0, Math.round(one.age_ms))),
        refused_per_second_max,
        requests.map((one) => one.message),
        requests.map((one) => (one.limit ? JSON.stringify(one.limit) : null)),
      ]);
    },
    async find(requestId) {
      const [row] = await db.query<RefusedRow>(finding, [bare(requestId, "req_")]);
      if (!row) return null;
      const { limit, ...refusal } = row;
      return { ...refusal, ...(limit && { limit: limitOf(limit) }) };
    },
    async personOf(keyId) {
      const person = `select ${shownId("person_id", "per_")} as "personId" from api_key where id = $1`;
      const [key] = await db.query<Pick<RefusedRow, "personId">>(person, [bare(keyId, "key_")]);
      return key?.personId ?? null;
    },
    async forget() {
      const gone = await db.query(forgetting, [forgotten_max]);
      return gone.length === forgotten_max;
    },
  };
}

interface RefusedRow extends Omit<RefusedRequest, "limit"> {
  limit: KeptLimit | null;
}

/** A limit in the form of its stored JSON. */
type KeptLimit = Omit<LimitMet, "resetAt"> & { resetAt?: string };

const limitOf = ({ resetAt, ...limit }: KeptLimit): LimitMet =>
  resetAt === undefined ? limit : { ...limit, resetAt: new Date(resetAt) };

const finding = `
  select ${shownId("r.request_id", "req_")} as "requestId", ${shownId("r.organization_id", "org_")} as "organizationId",
    ${shownId("r.key_id", "key_")} as "keyId", ${shownId(personOfKey("r"), "per_")} as "personId", r.operation, r.model,
    r.stream, r.error_code as "errorCode", r.error_message as message, r.limit_met as "limit", r.refused_at as "refusedAt"
  from usage_refusal r where r.request_id = $1`;

/**
 * Each refusal gets the next number within its second (`place`). If another node stores one with that number at the
 * same moment, this refusal is dropped. A refusal that is stored already takes no number.
 */
const keeping = `
  with refused as (
    select *, store_now() - age_ms * interval '1 millisecond' as refused_at
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::bigint[],
        $10::text[], $11::text[])
      as one (request_id, organization_id, key_id, operation, model, stream, error_code, age_ms, error_message, limit_met)
    where not exists (select from usage_refusal k where k.request_id = one.request_id)
  ), numbered as (
    select *, floor(extract(epoch from refused_at))::bigint as second,
      row_number() over (partition by organization_id, floor(extract(epoch from refused_at)) order by request_id) as number
    from refused
  ), placed as (
    select n.*, n.number + (
      select count(*) from usage_refusal k where k.organization_id = n.organization_id and k.second = n.second
    ) as place
    from numbered n
  )
  insert into usage_refusal
    (request_id, organization_id, second, place, key_id, operation, model, stream, error_code, refused_at,
      error_message, limit_met)
  select request_id, organization_id, second, place, key_id, operation, model, stream, error_code, refused_at,
    error_message, limit_met::jsonb
  from placed where place <= $9
  on conflict do nothing`;

/**
 * Finds expired rows by their ids, which begin with the time by the clock of the node that made them. They are kept a
 * day longer, because that clock may be slow.
 */
const forgetting = `
  delete from usage_refusal where request_id in (
    select request_id from usage_refusal where request_id < (select usage_record_id(store_now() - interval '31 days'))
    order by request_id limit $1
  ) returning request_id`;

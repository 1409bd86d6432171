/**
 * Limit requests over SQL. A decision locks the subject and its organization first, as every change of limits does, and
 * then the request: of two simultaneous decisions, the second finds the request already decided.
 */
import {
  type LimitRequestAdministration,
  limitRequest_days,
  limitRequestKept_days,
  limitRequestsADay_max,
  type NewLimitRequest,
  openLimitRequests_max,
  type StoredLimitRequest,
} from "../../admin/store/limit-requests.ts";
import { camelName, snakeName } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import { bare, idOf, uuid_min, uuidOf } from "../../core/store/ids.ts";
import { appendAuditEntry, storeNow, transact } from "./acts.ts";
import { change } from "./change.ts";
import type { Database, Querying, Transaction } from "./database.ts";
import { idPrefixes, uuidOfLimitSubject } from "./limit-reading.ts";
import { changeableLimits, setLimits } from "./limit-values.ts";
import { addNotice, addPersonalNotice } from "./notice-finding.ts";
import { lockPerson } from "./person.ts";
import { pageOf, shownId, uuidIfAny } from "./rows.ts";

/**
 * Makes the administration of limit requests. `actingOn` returns the same database for an act that locks this person;
 * that database may refuse the act because it would raise one of the actor's own limits.
 */
export function limitRequests(
  db: Database,
  actingOn: (person: string) => Database = () => db,
): LimitRequestAdministration {
  return {
    openLimitRequest: (wanted, { actor, details }) =>
      transact(db, async (tx) => {
        // Locks the person, so that two simultaneous requests are counted one after the other.
        await lockPerson(tx, wanted.personId);
        const owner = bare(wanted.organizationId, "org_");
        await tx.query(forgetting, [owner, limitRequestKept_days]);
        await tx.query(closingExpired, [bare(wanted.personId, "per_"), owner]);
        const [before] = await tx.query<{ open: number; today: number }>(counting, [
          bare(wanted.personId, "per_"),
          owner,
        ]);
        const [made] = await tx.query(inserting, valuesOf(wanted, owner));
        if (!made) return "already";
        if (before!.open >= openLimitRequests_max) throw new TooMany("too_many");
        if (before!.today >= limitRequestsADay_max) throw new TooMany("too_often");
        await addNotice(tx, owner, { kind: "limit.requested", about: wanted.id, details });
        const { id, subject, subjectId, models, limit, requestId } = wanted;
        const limited = { subject, subject_id: subjectId, models: models || null, limit: snakeName(limit) };
        const entry = { actor, action: "limit_request.create", owner, subject: id };
        await appendAuditEntry(tx, await storeNow(tx), { ...entry, details: { ...limited, request_id: requestId } });
        return (await find(tx, id))!;
      }).catch((thrown) => {
        if (thrown instanceof TooMany) return thrown.answer;
        throw thrown;
      }),

    findLimitRequest: (id) => find(db, id),

    async pageLimitRequests({ organizationId, personId, state, after, limit }) {
      const rows = await db.query<Row>(
        `${reading} where ($1::uuid is null or r.organization_id = $1) and ($2::uuid is null or r.person_id = $2)
           and ($3::text is null or ${stateOf} = $3) and ($4::uuid is null or r.id < $4) order by r.id desc limit $5`,
        [
          uuidIfAny(organizationId, "org_"),
          uuidIfAny(personId, "per_"),
          state ?? null,
          after === undefined ? null : (uuidOf(after, "lreq_") ?? uuid_min),
          limit + 1,
        ],
      );
      return pageOf(rows.map(requestOf), limit);
    },

    async approveLimitRequest(request, { actor, granted, until, patch, told }) {
      const { id, organizationId, subject, subjectId } = request;
      const limited = { subject, id: subjectId, organizationId };
      const answer = await change(
        subject === "person" ? actingOn(subjectId) : db,
        changeableLimits(limited),
        { id: subjectId, actor },
        async (tx, _, at) => {
          if (!(await isOpen(tx, id))) return "not_open" as const;
          const made = await setLimits(tx, { subject: limited, actor, at }, patch);
          await tx.query(approving, [bare(id, "lreq_"), at, actor, granted, until]);
          await tellAsker(tx, request, told);
          const { action = `${subject}.limits`, details = {}, unsummed = [] } = made ?? {};
          const owner = bare(organizationId, "org_");
          return { action, details: { ...details, limit_request: id }, owner, unsummed };
        },
      );
      if (answer === null) return "gone";
      return typeof answer === "string" ? answer : ((await find(db, id)) ?? "gone");
    },

    closeLimitRequest: (id, { actor, state, reason, told }) =>
      transact(db, async (tx) => {
        const request = await find(tx, id);
        if (!request) return "gone" as const;
        if (!(await isOpen(tx, id))) return "not_open" as const;
        const at = await storeNow(tx);
        await tx.query(closing, [bare(id, "lreq_"), at, actor, state, reason]);
        await tellAsker(tx, request, told);
        const owner = bare(request.organizationId, "org_");
        const action = state === "declined" ? "limit_request.decline" : "limit_request.withdraw";
        await appendAuditEntry(tx, at, { actor, action, owner, subject: id, details: {} });
        return (await find(tx, id))!;
      }),
  };
}

async function tellAsker(
  tx: Transaction,
  { id, personId }: StoredLimitRequest,
  details: Record<string, unknown> | null,
): Promise<void> {
  if (details) await addPersonalNotice(tx, bare(personId, "per_"), { kind: "limit.decided", about: id, details });
}

/** Thrown, so that what the transaction wrote is undone. */
class TooMany extends Error {
  constructor(readonly answer: "too_many" | "too_often") {
    super(answer);
  }
}

/**
 * SQL for the state that readers see. An expired request is recognised by its time: nothing writes that it has expired.
 */
const stateOf = "case when r.state = 'open' and r.expires_at <= store_now() then 'expired' else r.state end";

const subjectNames = `case r.subject
  when 'organization' then o.slug
  when 'team' then (select t.name from team t where t.id = r.subject_id)
  when 'key' then (select k.name from api_key k where k.id = r.subject_id)
  else coalesce(p.name, p.email) end`;

const reading = `
  select ${shownId("r.id", "lreq_")} as id, ${shownId("r.organization_id", "org_")} as "organizationId",
    o.slug as organization, ${shownId("r.person_id", "per_")} as "personId", coalesce(p.name, p.email) as person, r.subject,
    r.subject_id as "subjectId", ${subjectNames} as name, r.models, r.limit_name as "limit", r.value, r.asked, r.message,
    ${shownId("r.request_id", "req_")} as "requestId", r.created_at as "createdAt", r.expires_at as "expiresAt",
    ${stateOf} as state, r.decided_at as "decidedAt", r.decided_by as "decidedBy", r.granted, r.until, r.reason
  from limit_request r join organization o on o.id = r.organization_id join person p on p.id = r.person_id`;

interface Row extends Omit<StoredLimitRequest, "limit"> {
  /** The subject's UUID, until `requestOf` has made it an id. */
  subjectId: string;
  /** The column of the limit. */
  limit: string;
}

const requestOf = (row: Row): StoredLimitRequest => ({
  ...row,
  subjectId: idOf(row.subjectId, idPrefixes[row.subject]),
  limit: camelName(row.limit) as keyof Budget,
});

async function find(db: Querying, id: string): Promise<StoredLimitRequest | null> {
  const uuid = uuidOf(id, "lreq_");
  const [row] = uuid === null ? [] : await db.query<Row>(`${reading} where r.id = $1`, [uuid]);
  return row ? requestOf(row) : null;
}

/** Whether the limit request can still be decided. Its row is locked until the commit. */
async function isOpen(tx: Querying, id: string): Promise<boolean> {
  const rows = await tx.query(
    "select from limit_request where id = $1 and state = 'open' and expires_at > store_now() for update",
    [bare(id, "lreq_")],
  );
  return rows.length > 0;
}

const forgetting = `delete from limit_request
  where organization_id = $1 and created_at < store_now() - make_interval(days => $2)`;

const closingExpired = `update limit_request set state = 'expired'
  where person_id = $1 and organization_id = $2 and state = 'open' and expires_at <= store_now()`;

const counting = `select count(*) filter (where state = 'open')::int as open,
    count(*) filter (where created_at > store_now() - interval '1 day')::int as today
  from limit_request where person_id = $1 and organization_id = $2`;

const inserting = `insert into limit_request (id, organization_id, person_id, subject, subject_id, models, limit_name, value,
    asked, message, request_id, created_at, expires_at)
  select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now.at, now.at + make_interval(days => $12)
  from (select store_now() as at) now
  on conflict do nothing returning id`;

function valuesOf(wanted: NewLimitRequest, owner: string): unknown[] {
  const { id, personId, subject, subjectId, models, limit, value, asked, message, requestId } = wanted;
  const limited = uuidOfLimitSubject({ subject, id: subjectId, organizationId: wanted.organizationId });
  const request = requestId && bare(requestId, "req_");
  const whose = [bare(id, "lreq_"), owner, bare(personId, "per_"), subject, limited];
  return [...whose, models, snakeName(limit), value, asked, message, request, limitRequest_days];
}

const approving = `update limit_request set state = 'approved', decided_at = $2, decided_by = $3, granted = $4, until = $5
  where id = $1`;

const closing = "update limit_request set state = $4, decided_at = $2, decided_by = $3, reason = $5 where id = $1";

/**
 * Finds conditions that notices should report, and adds a notice to the queue of each destination that wants it. The
 * same thing is reported to each destination once.
 */
import type { Condition, NewNotice } from "../../features/notices/store/notice.ts";
import type { Querying } from "./database.ts";
import { expiresAt } from "./key-life.ts";
import { idPrefixes } from "./limit-reading.ts";
import { shownId } from "./rows.ts";
import { standingsWithDestination } from "./standing.ts";

/**
 * The most waiting notices of one destination, counted separately for two groups: notices of states, which are found
 * anew once the queue has room, and notices of events, each of which happens once.
 */
const waiting_max = 1_000;
/** A condition is reported once it has lasted this long, and its end once it has been absent for this long. */
const lasting_s = 15;

const inserting = "insert into notice (id, destination_id, kind, about, details, created_at, next_attempt_at)";
const isFoundAgain = "q.kind in ('usage.share_reached', 'key.expiring')";
const roomFor = (notices: string) =>
  `(select count(*) from notice q where q.destination_id = d.id and q.next_attempt_at is not null and ${notices}) < ${waiting_max}`;

/**
 * Adds a notice for each destination of `owner`, which is the UUID of an organization, or null for the operators'
 * destinations.
 */
export async function addNotice(
  db: Querying,
  owner: string | null,
  { kind, about, details }: NewNotice,
): Promise<void> {
  await db.query(
    `${inserting}
     select gen_random_uuid(), d.id, $2, $3, $4::jsonb, store_now(), store_now()
     from notice_destination d where d.organization_id is not distinct from $1::uuid and ${roomFor(`not ${isFoundAgain}`)}
     on conflict do nothing`,
    [owner, kind, about, details],
  );
}

/**
 * Adds a notice that is mailed to one person, if an issuer has verified the person's address. `person`: the person's
 * UUID.
 */
export async function addPersonalNotice(
  db: Querying,
  person: string,
  { kind, about, details }: NewNotice,
): Promise<void> {
  await db.query(
    `insert into notice (id, person_id, kind, about, details, created_at, next_attempt_at)
     select gen_random_uuid(), p.id, $2, $3, $4::jsonb, store_now(), store_now()
     from person p where p.id = $1::uuid and p.is_email_verified and p.email is not null on conflict do nothing`,
    [person, kind, about, details],
  );
}

export async function findNotices(tx: Querying): Promise<void> {
  for (const finding of [shares, expiries]) await tx.query(finding);
}

/** SQL: the prefix of a subject's public id, by the kind of the subject. */
const prefixes = Object.entries(idPrefixes).map(([subject, prefix]) => `when '${subject}' then '${prefix}'`);

/**
 * SQL for when the window would be full if use continued at its average rate. Null if the window ends before, or is
 * full already.
 */
const fullAt = `case when w.used < w.nanos and w.used > 0
  and w.starts_at + (s.at - w.starts_at) * (w.nanos::float8 / w.used) < w.ends_at
  then to_json(date_trunc('second', w.starts_at + (s.at - w.starts_at) * (w.nanos::float8 / w.used))) end`;

/**
 * SQL that adds notices of the percentages of limits that organizations, their teams, people and keys have reached.
 * Only settled use counts, as in the percentages that clients read. The largest shares come first, so that they are
 * sent if there is no room for all.
 */
const shares = `
  with reached as materialized (
    select d.id, share, w.used::numeric / w.nanos as used_share,
      concat_ws(':', nullif(s.subject, 'organization'), nullif(s.subject_id, s.organization_id),
        w.kind, extract(epoch from w.starts_at)::bigint, share) as about,
      jsonb_build_object('subject', s.subject,
        'subject_id', case s.subject ${prefixes.join(" ")} end || replace(coalesce(s.person_id, s.owner_id)::text, '-', ''),
        'name', s.name, 'models', s.models, 'window', w.kind, 'share_percent', share, 'used', usage_money(w.used), 'limit', usage_money(w.nanos), 'plan', s.plan,
        'starts_at', to_json(w.starts_at), 'full_at', ${fullAt}, 'reset_at', to_json(w.ends_at)) as details
    from (${standingsWithDestination}) s
    join notice_destination d on d.organization_id = s.organization_id
    cross join unnest(array['session', 'week', 'month'], s.used[1:3], s.starts_at[1:3], s.ends_at[1:3],
      s.limits) w (kind, used, starts_at, ends_at, nanos)
    cross join unnest(d.shares) share
    where w.used::numeric * 100 >= w.nanos::numeric * share
  ), missing as (
    select r.*, row_number() over (partition by r.id order by r.used_share desc, r.about) as place
    from reached r
    where not exists (select from notice n where n.destination_id = r.id and n.about = r.about)
  ), waiting as (
    select q.destination_id, count(*) as notices from notice q
    where q.next_attempt_at is not null and ${isFoundAgain} group by 1
  )
  ${inserting}
  select gen_random_uuid(), u.id, 'usage.share_reached', u.about, u.details, store_now(), store_now()
  from missing u left join waiting q on q.destination_id = u.id
  where u.place <= ${waiting_max} - coalesce(q.notices, 0)
  on conflict do nothing`;

const expiries = `${inserting}
  select gen_random_uuid(), d.id, 'key.expiring',
    concat_ws(':', 'key', api_key.id, extract(epoch from e.expires_at)::bigint),
    jsonb_build_object('key_id', ${shownId("api_key.id", "key_")}, 'name', api_key.name, 'expires_at', to_json(e.expires_at)),
    store_now(), store_now()
  from notice_destination d
  join organization on organization.id = d.organization_id
  join api_key on api_key.organization_id = d.organization_id
  cross join lateral (select ${expiresAt} as expires_at) e
  where api_key.revoked_at is null and e.expires_at > store_now()
    and e.expires_at <= store_now() + make_interval(days => d.key_expiry_days) and ${roomFor(isFoundAgain)}
  on conflict do nothing`;

interface ConditionToTell {
  about: string;
  kind: NewNotice["kind"];
  details: Record<string, unknown>;
  since: Date;
}

/**
 * Remembers the conditions that exist now, and adds notices of those that have lasted long enough or have ended. A
 * condition that disappears briefly and returns counts as the same one.
 */
export async function keepConditions(tx: Querying, now: readonly Condition[]): Promise<void> {
  const lasting = `store_now() - interval '${lasting_s} seconds'`;
  for (const { about, kind, ends, details } of now)
    await tx.query(
      `insert into notice_condition (about, kind, ends, details, since) values ($1, $2, $3, $4::jsonb, store_now())
       on conflict (about) do update set details = excluded.details, absent_since = null`,
      [about, kind, ends, details],
    );
  await tx.query(
    `update notice_condition set absent_since = store_now() where absent_since is null and not about = any($1::text[])`,
    [now.map(({ about }) => about)],
  );
  const begun = await tx.query<ConditionToTell>(
    `update notice_condition set is_told = true where not is_told and absent_since is null and since <= ${lasting}
     returning about, kind, details, since`,
  );
  const over = await tx.query<ConditionToTell & { is_told: boolean }>(
    `delete from notice_condition where absent_since <= ${lasting} returning about, ends as kind, details, since, is_told`,
  );
  const told = [...begun, ...over.filter(({ kind, is_told }) => kind !== null && is_told)];
  for (const { about, kind, details, since } of told) {
    const at = since.toISOString();
    await addNotice(tx, null, { kind, about: `${kind}:${about}:${at}`, details: { ...details, since: at } });
  }
}

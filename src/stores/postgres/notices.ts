/** The webhooks of organizations, and the queue of their notices, over SQL (docs/notices.md). */

import type { NoticeAdministration, Notices } from "../../admin/store/notices.ts";
import { maskedUrl } from "../../core/inference/masked.ts";
import { bare, idOf, uuid_max, uuidOf } from "../../core/store/ids.ts";
import type { NoticeKind, NoticeQueue } from "../../core/store/notice.ts";
import type { Sealing } from "../../core/store/sealing.ts";
import { standingSubjects } from "../../core/store/standing.ts";
import { act, audit, detailsOf, storeNow } from "./acts.ts";
import type { Database, Transaction } from "./database.ts";
import { openedSecret, sealSecrets, storedSecret } from "./hook-secrets.ts";
import { expiresAt } from "./key-life.ts";
import { pageOf, shownId } from "./rows.ts";
import { standingsWithHook } from "./standing.ts";

/** The most notices of one organization that wait. Others are found again once there is room. */
const waiting_max = 1_000;
/** A node that has not reported the result of a notice by then is gone. It is longer than any attempt. */
const lease_s = 60;
/** Longer than any window, and than the time before a key's expiry at which a notice is sent. */
const kept_days = 100;

export function noticeHooks(db: Database, sealing: Sealing | null = null): NoticeAdministration {
  return {
    async pageNoticeHooks({ after, limit, organizationId, undelivered = false }) {
      const rows = await db.query<Notices>(
        `${reading}
         where ($1::uuid is null or h.organization_id > $1) and ($2::uuid is null or h.organization_id = $2)
           and (not $3::boolean or exists (
             select from notice n where n.organization_id = h.organization_id and n.problem is not null))
         order by h.organization_id limit $4`,
        [
          after === undefined ? null : (uuidOf(after, "org_") ?? uuid_max),
          organizationId === undefined ? null : bare(organizationId, "org_"),
          undelivered,
          limit + 1,
        ],
      );
      return pageOf(rows, limit);
    },
    noticeHook: (organizationId) => read(db, bare(organizationId, "org_")),
    setNoticeHook: (organizationId, { url, shares, keyExpiryDays }, { secret, renews }, actor) =>
      act(db, async (tx) => {
        const owner = bare(organizationId, "org_");
        await lockOwner(tx, owner);
        const before = await read(tx, owner);
        const at = await storeNow(tx);
        await tx.query(
          `insert into notice_hook values ($1, $2, $3, $4::integer[], $5, $6)
           on conflict (organization_id) do update set url = excluded.url, shares = excluded.shares,
             key_expiry_days = excluded.key_expiry_days, changed_at = excluded.changed_at,
             secret = case when $7 then excluded.secret else notice_hook.secret end`,
          [owner, url, storedSecret(sealing, owner, secret), shares, keyExpiryDays, at, renews],
        );
        const hook = (await read(tx, owner))!;
        const isNewSecret = renews || before === null;
        const details = { ...listed(hook), new_secret: isNewSecret, before: before && listed(before) };
        await audit(tx, at, { actor, action: "notice.set", owner, subject: organizationId, details });
        return { hook, isNewSecret };
      }),
    removeNoticeHook: (organizationId, actor) =>
      act(db, async (tx) => {
        const owner = bare(organizationId, "org_");
        await lockOwner(tx, owner);
        const before = await read(tx, owner);
        if (!before) return null;
        await tx.query("delete from notice where organization_id = $1 and next_attempt_at is not null", [owner]);
        await tx.query("delete from notice_hook where organization_id = $1", [owner]);
        const details = { before: listed(before) };
        const at = await storeNow(tx);
        await audit(tx, at, { actor, action: "notice.remove", owner, subject: organizationId, details });
        return before;
      }),
  };
}

export function noticeQueue(db: Database, sealing: Sealing | null = null): NoticeQueue {
  return {
    look: () =>
      db.transaction(async (tx) => {
        const [own] = await tx.query<{ locked: boolean }>(
          "select pg_try_advisory_xact_lock(hashtextextended('notices', 0)) as locked",
        );
        if (own!.locked) for (const finding of [shares, expiries]) await tx.query(finding, [waiting_max]);
      }),
    async claim(limit) {
      const rows = await db.query<DueRow>(claiming, [limit, lease_s]);
      return rows.map(({ id, organization_id, created_at, secret, ...rest }) => ({
        ...rest,
        secret: openedSecret(sealing, organization_id, secret),
        id: `notice_${id.replaceAll("-", "")}`,
        organizationId: idOf(organization_id, "org_"),
        createdAt: created_at,
      }));
    },
    async sent({ id, attempts }, problem, again_ms) {
      // After its lease, a notice belongs to another node, which decides.
      await db.query(
        `update notice set problem = $3, delivered_at = case when $3::text is null then store_now() end,
           next_attempt_at = store_now() + $4::double precision * interval '1 millisecond'
         where id = $1::uuid and attempts = $2`,
        [id.slice("notice_".length), attempts, problem, problem === null ? null : again_ms],
      );
    },
    seal: () => sealSecrets(db, sealing),
    async forget() {
      await db.query("delete from notice where created_at < store_now() - make_interval(days => $1)", [kept_days]);
    },
  };
}

/** Writes the notice of a suspension, in the same transaction. */
export async function addSuspensionNotice(tx: Transaction, owner: string, version: number): Promise<void> {
  await tx.query(
    `insert into notice (id, organization_id, kind, about, details, created_at, next_attempt_at)
     select gen_random_uuid(), organization_id, 'organization.suspended', 'suspended:' || $2::bigint, '{}', store_now(), store_now()
     from notice_hook where organization_id = $1 on conflict do nothing`,
    [owner, version],
  );
}

/** Writes the notice of somebody who asks for more, in the same transaction. `id`: that of the limit request. */
export async function addLimitRequestNotice(
  tx: Pick<Transaction, "query">,
  owner: string,
  { id, details }: { id: string; details: Record<string, unknown> },
): Promise<void> {
  await tx.query(
    `${inserting}
     select gen_random_uuid(), h.organization_id, 'limit.requested', $2::text, $3::text::jsonb, store_now(), store_now()
     from notice_hook h where h.organization_id = $4 and ${roomy} on conflict do nothing`,
    [waiting_max, id, JSON.stringify(details), owner],
  );
}

/** A notice of a node that died is claimed by another once its lease is over. */
const claiming = `
  update notice n set attempts = n.attempts + 1, next_attempt_at = store_now() + make_interval(secs => $2)
  from notice_hook h join organization o on o.id = h.organization_id
  where h.organization_id = n.organization_id and n.id in (
    select id from notice where next_attempt_at <= store_now() order by next_attempt_at limit $1 for update skip locked)
  returning n.id, n.organization_id, o.slug as organization, n.kind, n.details, n.created_at, n.attempts, h.url, h.secret`;

const inserting = `insert into notice (id, organization_id, kind, about, details, created_at, next_attempt_at)`;
const roomy = `(select count(*) from notice q where q.organization_id = h.organization_id and q.next_attempt_at is not null) < $1`;

/** Clients know a person by the person's own id, and not by that in an organization. */
const prefixes = Object.entries({ ...standingSubjects, person: "per_" }).map(
  ([subject, prefix]) => `when '${subject}' then '${prefix}'`,
);

/**
 * Settled use, as the percentages that clients read, of organizations, their teams, people and keys. The largest shares
 * come first, so that they are sent if there is no room for all.
 */
const shares = `
  with reached as materialized (
    select s.organization_id, share, w.used::numeric / w.nanos as used_share,
      concat_ws(':', nullif(s.subject, 'organization'), nullif(s.subject_id, s.organization_id),
        w.kind, extract(epoch from w.starts_at)::bigint, share) as about,
      jsonb_build_object('subject', s.subject,
        'subject_id', case s.subject ${prefixes.join(" ")} end || replace(coalesce(s.person_id, s.owner_id)::text, '-', ''),
        'name', s.name, 'models', s.models, 'window', w.kind, 'share_percent', share, 'used', usage_money(w.used), 'limit', usage_money(w.nanos), 'plan', s.plan,
        'starts_at', to_json(w.starts_at), 'reset_at', to_json(w.ends_at)) as details
    from (${standingsWithHook}) s
    join notice_hook h on h.organization_id = s.organization_id
    cross join unnest(array['session', 'week', 'month'], s.used[1:3], s.starts_at[1:3], s.ends_at[1:3],
      s.limits) w (kind, used, starts_at, ends_at, nanos)
    cross join unnest(h.shares) share
    where w.used::numeric * 100 >= w.nanos::numeric * share
  ), missing as (
    select r.*, row_number() over (partition by r.organization_id order by r.used_share desc, r.about) as place
    from reached r
    where not exists (select from notice n where n.organization_id = r.organization_id and n.about = r.about)
  ), waiting as (
    select q.organization_id, count(*) as notices from notice q where q.next_attempt_at is not null group by 1
  )
  ${inserting}
  select gen_random_uuid(), u.organization_id, 'usage.share_reached', u.about, u.details, store_now(), store_now()
  from missing u left join waiting q on q.organization_id = u.organization_id
  where u.place <= $1 - coalesce(q.notices, 0)
  on conflict do nothing`;

const expiries = `${inserting}
  select gen_random_uuid(), h.organization_id, 'key.expiring',
    concat_ws(':', 'key', api_key.id, extract(epoch from e.expires_at)::bigint),
    jsonb_build_object('key_id', 'key_' || replace(api_key.id::text, '-', ''), 'name', api_key.name,
      'expires_at', to_json(e.expires_at)),
    store_now(), store_now()
  from notice_hook h
  join organization on organization.id = h.organization_id
  join api_key on api_key.organization_id = h.organization_id
  cross join lateral (select ${expiresAt} as expires_at) e
  where api_key.revoked_at is null and e.expires_at > store_now()
    and e.expires_at <= store_now() + make_interval(days => h.key_expiry_days) and ${roomy}
  on conflict do nothing`;

interface DueRow {
  id: string;
  organization_id: string;
  organization: string;
  kind: NoticeKind;
  details: Record<string, unknown>;
  created_at: Date;
  attempts: number;
  url: string;
  secret: string;
}

async function lockOwner(tx: Transaction, owner: string): Promise<void> {
  await tx.query("select 1 from organization where id = $1 for update", [owner]);
}

const reading = `
  select ${shownId("h.organization_id", "org_")} as "organizationId", o.slug as organization, h.url, h.shares,
    h.key_expiry_days as "keyExpiryDays", h.changed_at as "changedAt",
    (select count(*)::int from notice n where n.organization_id = h.organization_id and n.next_attempt_at is not null)
      as waiting,
    (select n.problem from notice n where n.organization_id = h.organization_id and n.problem is not null
     order by n.created_at desc limit 1) as problem
  from notice_hook h join organization o on o.id = h.organization_id`;

async function read(db: Pick<Database, "query">, owner: string): Promise<Notices | null> {
  const [row] = await db.query<Notices>(`${reading} where h.organization_id = $1`, [owner]);
  return row ?? null;
}

/** For the audit log, which nobody can delete: what a URL has that may be a secret is left out. */
const listed = ({ url, shares, keyExpiryDays }: Notices) => detailsOf({ url: maskedUrl(url), shares, keyExpiryDays });

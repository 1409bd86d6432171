/** The queue of notices, over SQL (docs/notices.md). */
import type { Sealing } from "../../core/store/sealing.ts";
import type { DueNotice, NoticeQueue } from "../../features/notices/store/notice.ts";
import type { Database, Transaction } from "./database.ts";
import { openedSecret, type SecretColumn, sealSecrets } from "./destination-secrets.ts";
import { fleet } from "./fleet-reports.ts";
import { addNotice, findNotices, keepConditions } from "./notice-finding.ts";
import { shownId } from "./rows.ts";

/**
 * A node that has not reported the result of a notice within this time counts as ended. The time is longer than any
 * attempt to send.
 */
const lease_s = 60;
/** How many notices of one destination a node sends at a time. */
const each_max = 4;
/**
 * How long notices are kept: longer than any window, and than the time before a key's expiry at which a notice is sent.
 */
const kept_days = 100;

export function noticeQueue(db: Database, sealing: Sealing | null = null): NoticeQueue {
  return {
    async look(conditions) {
      // Conditions of engines and nodes come first, in a transaction of their own, because the queries about all limits
      // can take too long.
      await aloneInTransaction(db, "conditions", async (tx, at) =>
        keepConditions(tx, conditions(await fleet(tx).listProcesses(), at)),
      );
      await aloneInTransaction(db, "notices", findNotices);
    },
    add: (notice) => addNotice(db, null, notice),
    async claim(limit, sending = []) {
      const rows = await db.query<DueRow>(claiming, [limit, lease_s, sending.map(uuidOfNotice), each_max]);
      return rows.map((row) => dueOf(row, sealing));
    },
    async sent({ id, attempts }, { problem, settled = [] }, again_ms) {
      // After its lease a notice belongs to another node, whose result counts.
      await db.query(
        `update notice set problem = $3, delivered_at = case when $3::text is null then store_now() end,
           next_attempt_at = store_now() + $4::double precision * interval '1 millisecond', settled = settled || $5::text[]
         where id = $1::uuid and attempts = $2`,
        [uuidOfNotice(id), attempts, problem, problem === null ? null : again_ms, settled],
      );
    },
    seal: () => sealSecrets(db, sealing),
    async forget() {
      await db.query("delete from notice where created_at < store_now() - make_interval(days => $1)", [kept_days]);
    },
  };
}

/** Runs `work` in a transaction, unless another node is doing the same work. */
async function aloneInTransaction(
  db: Database,
  name: "conditions" | "notices",
  work: (tx: Transaction, at: Date) => Promise<void>,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [own] = await tx.query<{ locked: boolean; at: Date }>(
      "select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as locked, store_now() as at",
      [name],
    );
    if (own!.locked) await work(tx, own!.at);
  });
}

const uuidOfNotice = (id: string) => id.slice("notice_".length);

/** Adds the notice of an organization's suspension, in the transaction that suspends it. */
export async function addSuspensionNotice(tx: Transaction, owner: string, version: number): Promise<void> {
  await addNotice(tx, owner, { kind: "organization.suspended", about: `suspended:${version}`, details: {} });
}

/** SQL for whether the address belongs to a person who administers the destination. */
const isOwn = `exists (
  select from membership m join person a on a.id = m.person_id
  where m.organization_id is not distinct from d.organization_id and m.ended_at is null
    and m.role in ('organization-admin', 'admin') and a.is_email_verified and lower(a.email) = t.address)`;

/**
 * SQL for the addresses to which a mail is still to be sent: those of the destination that have not unsubscribed, or,
 * for a notice to one person, that person's address.
 */
const recipients = `array(
  select jsonb_build_object('address', t.address, 'unsubscribes', case when not ${isOwn} then replace(r.id::text, '-', '') end)
  from unnest(string_to_array(d.address, ',')) t (address)
  join mail_recipient r on r.organization_id is not distinct from d.organization_id and r.address = t.address
  where d.form = 'mail' and r.unsubscribed_at is null and not t.address = any (n.settled)
  union all
  select jsonb_build_object('address', p.email, 'unsubscribes', null) where p.is_email_verified and p.suspended_at is null)`;

/**
 * SQL that claims notices which are due: the oldest of each destination or person, then the second oldest of each, and
 * so on. At most `$4` of one recipient are in progress on a node, including those that it is sending now (`$3`), so
 * that a destination that does not answer delays no other. If a node dies with a claimed notice, another node claims
 * the notice after the lease.
 */
const claiming = `
  with sent as (
    select coalesce(destination_id, person_id) as whose, count(*) from notice where id = any ($3::uuid[]) group by 1
  ), due as (
    select id, coalesce(sent.count, 0) + row_number() over (partition by destination_id, person_id order by next_attempt_at, id)
      as place
    from notice left join sent on sent.whose = coalesce(destination_id, person_id) where next_attempt_at <= store_now()
  ), n as (
    update notice set attempts = attempts + 1, next_attempt_at = store_now() + make_interval(secs => $2)
    where id in (
      select w.id from notice w join due on due.id = w.id where w.next_attempt_at <= store_now() and due.place <= $4
      order by due.place, w.next_attempt_at limit $1 for update of w skip locked)
    returning *)
  select 'notice_' || replace(n.id::text, '-', '') as id, d.id as "destinationUuid",
    ${shownId("d.organization_id", "org_")} as "organizationId", o.slug as organization, n.kind, n.details,
    n.created_at as "createdAt", n.attempts, coalesce(d.name, ${shownId("p.id", "per_")}) as destination,
    coalesce(d.form, 'mail') as form, d.address, d.secret, ${recipients} as recipients
  from n left join notice_destination d on d.id = n.destination_id left join organization o on o.id = d.organization_id
    left join person p on p.id = n.person_id`;

interface DueRow extends DueNotice {
  destinationUuid: string | null;
}

function dueOf({ destinationUuid, ...due }: DueRow, sealing: Sealing | null): DueNotice {
  const opened = (column: SecretColumn) => {
    const stored = due[column];
    return stored && destinationUuid && openedSecret(sealing, column, destinationUuid, stored);
  };
  return { ...due, address: opened("address"), secret: opened("secret") };
}

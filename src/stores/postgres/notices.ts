/** The queue of notices, over SQL (docs/notices.md). */
import { idOf } from "../../core/store/ids.ts";
import type { Sealing } from "../../core/store/sealing.ts";
import type { DueNotice, NoticeForm, NoticeKind, NoticeQueue } from "../../features/notices/store/notice.ts";
import type { Database, Transaction } from "./database.ts";
import { openedSecret, sealSecrets } from "./destination-secrets.ts";
import { fleet } from "./fleet-reports.ts";
import { addNotice, findNotices, keepConditions } from "./notice-finding.ts";

/** A node that has not reported the result of a notice by then is gone. It is longer than any attempt. */
const lease_s = 60;
/**
 * How long notices are kept: longer than any window, and than the time before a key's expiry at which a notice is sent.
 */
const kept_days = 100;

export function noticeQueue(db: Database, sealing: Sealing | null = null): NoticeQueue {
  return {
    look: (conditions) =>
      db.transaction(async (tx) => {
        const [own] = await tx.query<{ locked: boolean; at: Date }>(
          "select pg_try_advisory_xact_lock(hashtextextended('notices', 0)) as locked, store_now() as at",
        );
        if (!own!.locked) return;
        await findNotices(tx);
        await keepConditions(tx, conditions(await fleet(tx).listProcesses(), own!.at));
      }),
    add: (notice) => addNotice(db, null, notice),
    async claim(limit) {
      const rows = await db.query<DueRow>(claiming, [limit, lease_s]);
      return rows.map((row) => dueOf(row, sealing));
    },
    async sent({ id, attempts }, problem, again_ms) {
      // After its lease a notice belongs to another node, whose result counts.
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

/** Adds the notice of a suspension, in the same transaction. */
export async function addSuspensionNotice(tx: Transaction, owner: string, version: number): Promise<void> {
  await addNotice(tx, owner, { kind: "organization.suspended", about: `suspended:${version}`, details: {} });
}

/** A notice of a node that died is claimed by another one after its lease. */
const claiming = `
  update notice n set attempts = n.attempts + 1, next_attempt_at = store_now() + make_interval(secs => $2)
  from notice_destination d left join organization o on o.id = d.organization_id
  where d.id = n.destination_id and n.id in (
    select id from notice where next_attempt_at <= store_now() order by next_attempt_at limit $1 for update skip locked)
  returning n.id, d.id as destination_id, d.organization_id, o.slug as organization, n.kind, n.details, n.created_at, n.attempts,
    d.name as destination, d.form, d.address, d.secret`;

interface DueRow {
  id: string;
  destination_id: string;
  organization_id: string | null;
  organization: string | null;
  kind: NoticeKind;
  details: Record<string, unknown>;
  created_at: Date;
  attempts: number;
  destination: string;
  form: NoticeForm;
  address: string;
  secret: string | null;
}

function dueOf(
  { id, destination_id, organization_id, created_at, address, secret, ...rest }: DueRow,
  sealing: Sealing | null,
): DueNotice {
  return {
    ...rest,
    id: `notice_${id.replaceAll("-", "")}`,
    organizationId: organization_id && idOf(organization_id, "org_"),
    createdAt: created_at,
    address: openedSecret(sealing, "address", destination_id, address),
    secret: secret && openedSecret(sealing, "secret", destination_id, secret),
  };
}

/** The destinations to which organizations and operators have notices sent, over SQL (docs/notices.md). */
import {
  type DestinationSettings,
  type NoticeAdministration,
  type NoticeDestination,
  tests_max,
} from "../../admin/store/notices.ts";
import { maskedUrl } from "../../core/inference/masked.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import type { Sealing } from "../../core/store/sealing.ts";
import type { NoticeOwner } from "../../features/notices/store/notice.ts";
import { appendAuditEntry, detailsOf, storeNow, transact } from "./acts.ts";
import type { Database, Querying, Transaction } from "./database.ts";
import { hasSecretAddress, storedSecret } from "./destination-secrets.ts";
import { nameRecipients, unsubscribedOf } from "./mail-recipients.ts";
import { pageOf, shownId, uuidIfAny } from "./rows.ts";

export function noticeDestinations(db: Database, sealing: Sealing | null = null): NoticeAdministration {
  return {
    canSeal: sealing !== null,
    async pageDestinations({ after, limit, organizationId, undelivered = false }) {
      const rows = await db.query<NoticeDestination>(
        `${reading}
         where ($1::uuid is null or d.id > $1) and ($2::uuid is null or d.organization_id = $2)
           and (not $3::boolean or exists (
             select from notice n where n.destination_id = d.id and n.problem is not null))
         order by d.id limit $4`,
        [
          after === undefined ? null : (uuidOf(after, "dest_") ?? uuid_max),
          uuidIfAny(organizationId, "org_"),
          undelivered,
          limit + 1,
        ],
      );
      return pageOf(rows, limit);
    },
    findDestination: (owner, name) => read(db, uuidOfOwner(owner), name),
    setDestination: (owner, name, settingsAfter, { id, secret, renews }, actor) =>
      transact(db, async (tx) => {
        const uuid = uuidOfOwner(owner);
        await lockOwner(tx, uuid);
        const before = await read(tx, uuid, name);
        const settings = settingsAfter(before);
        const at = await storeNow(tx);
        await write(tx, sealing, { uuid, name, id: before?.id ?? id, isNew: before === null }, settings, {
          secret: before === null || renews ? secret : null,
          at,
        });
        if (settings.form === "mail" && settings.address !== null)
          await nameRecipients(tx, uuid, settings.address.split(","));
        const destination = (await read(tx, uuid, name))!;
        const isNewSecret = settings.form === "json" && (renews || before === null);
        const details = { ...listed(destination), new_secret: isNewSecret, before: before && listed(before) };
        await appendAuditEntry(tx, at, { actor, action: "notice.set", ...whose(owner), details });
        return { destination, isNewSecret };
      }),
    removeDestination: (owner, name, actor) =>
      transact(db, async (tx) => {
        const uuid = uuidOfOwner(owner);
        await lockOwner(tx, uuid);
        const before = await read(tx, uuid, name);
        if (!before) return null;
        await tx.query("delete from notice_destination where id = $1", [bare(before.id, "dest_")]);
        const details = { before: listed(before) };
        await appendAuditEntry(tx, await storeNow(tx), { actor, action: "notice.remove", ...whose(owner), details });
        return before;
      }),
    addTest: ({ id, organizationId, name }, actor) =>
      transact(db, async (tx) => {
        const own = bare(id, "dest_");
        // Locks the destination, so that two simultaneous tests are counted one after the other.
        await tx.query("select from notice_destination where id = $1 for update", [own]);
        const at = await storeNow(tx);
        const [before] = await tx.query<{ waiting: number; recent: number }>(countingTests, [own, at]);
        if (before!.waiting > 0) return "waiting";
        if (before!.recent >= tests_max) return "too_many";
        const [row] = await tx.query<{ id: string }>(
          `insert into notice (id, destination_id, kind, about, details, created_at, next_attempt_at)
           values (gen_random_uuid(), $1, 'notice.test', 'test:' || gen_random_uuid(), '{}', $2, $2) returning id`,
          [own, at],
        );
        await appendAuditEntry(tx, at, { actor, action: "notice.test", ...whose(organizationId), details: { name } });
        return row!;
      }),
    async outcome(noticeId) {
      const [row] = await db.query<{ isDelivered: boolean; problem: string | null }>(
        `select delivered_at is not null as "isDelivered", problem from notice where id = $1::uuid`,
        [noticeId],
      );
      return row ?? null;
    },
  };
}

const countingTests = `
  select count(*) filter (where next_attempt_at is not null)::int as waiting,
    count(*) filter (where created_at > $2::timestamptz - interval '1 hour')::int as recent
  from notice where destination_id = $1 and kind = 'notice.test'`;

const uuidOfOwner = (owner: NoticeOwner) => owner && bare(owner, "org_");

/** The owner and the subject of an audit entry about destinations. */
const whose = (owner: NoticeOwner) => ({ owner: uuidOfOwner(owner), subject: owner ?? "fleet" });

async function lockOwner(tx: Transaction, owner: string | null): Promise<void> {
  if (owner === null) await tx.query("select pg_advisory_xact_lock(hashtextextended('notices of the fleet', 0))");
  else await tx.query("select 1 from organization where id = $1 for update", [owner]);
}

interface DestinationKey {
  /** The UUID of the organization; null for the operators' destinations. */
  uuid: string | null;
  name: string;
  id: string;
  isNew: boolean;
}

/** Writes a destination. If `address` or `secret` is null, the stored one is kept. */
async function write(
  tx: Transaction,
  sealing: Sealing | null,
  { uuid, name, id, isNew }: DestinationKey,
  { form, address, host, shares, keyExpiryDays }: DestinationSettings,
  { secret, at }: { secret: string | null; at: Date },
): Promise<void> {
  const own = bare(id, "dest_");
  const storedAddress =
    address !== null && hasSecretAddress(form) ? storedSecret(sealing, "address", own, address) : address;
  const storedSigning = form === "json" && secret !== null ? storedSecret(sealing, "secret", own, secret) : null;
  const values = [own, storedAddress, host, storedSigning, shares, keyExpiryDays, at];
  if (isNew)
    await tx.query(
      `insert into notice_destination (id, address, host, secret, shares, key_expiry_days, changed_at, organization_id, name, form)
       values ($1, $2, $3, $4, $5::integer[], $6, $7, $8, $9, $10)`,
      [...values, uuid, name, form],
    );
  else
    await tx.query(
      `update notice_destination set address = coalesce($2, address), host = case when $2::text is null then host else $3 end,
         secret = coalesce($4, secret), shares = $5::integer[], key_expiry_days = $6, changed_at = $7 where id = $1`,
      values,
    );
}

const reading = `
  select ${shownId("d.id", "dest_")} as id, ${shownId("d.organization_id", "org_")} as "organizationId",
    o.slug as organization, d.name, d.form, case d.form when 'json' then d.address end as url, d.host,
    case d.form when 'mail' then string_to_array(d.address, ',') end as "to", ${unsubscribedOf} as unsubscribed, d.shares,
    d.key_expiry_days as "keyExpiryDays", d.changed_at as "changedAt",
    (select count(*)::int from notice n where n.destination_id = d.id and n.next_attempt_at is not null) as waiting,
    (select n.problem from notice n where n.destination_id = d.id and n.problem is not null
     order by n.created_at desc limit 1) as problem
  from notice_destination d left join organization o on o.id = d.organization_id`;

async function read(db: Querying, owner: string | null, name: string): Promise<NoticeDestination | null> {
  const [row] = await db.query<NoticeDestination>(
    `${reading} where d.organization_id is not distinct from $1::uuid and d.name = $2`,
    [owner, name],
  );
  return row ?? null;
}

/**
 * The destination in the form of the audit log, from which nothing can be deleted: parts of a URL that may be secret
 * are left out, and so are people's addresses.
 */
function listed({ name, form, url, host, to, shares, keyExpiryDays }: NoticeDestination) {
  const place = to !== null ? { recipients: to.length } : url === null ? { host } : { url: maskedUrl(url) };
  return detailsOf({ name, form, ...place, shares, keyExpiryDays });
}

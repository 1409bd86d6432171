/**
 * The mail addresses that notice destinations have named, and which of them have unsubscribed, over SQL
 * (docs/notices.md, Mail).
 */
import { idOf } from "../../core/store/ids.ts";
import type { Subscription, Subscriptions } from "../../features/notices/store/notice.ts";
import { appendAuditEntry, storeNow, transact } from "./acts.ts";
import type { Database, Transaction } from "./database.ts";

/**
 * Remembers the addresses that a destination names. An address that has unsubscribed before stays unsubscribed.
 * `owner`: the UUID of the organization.
 */
export async function nameRecipients(
  tx: Transaction,
  owner: string | null,
  addresses: readonly string[],
): Promise<void> {
  await tx.query(
    `insert into mail_recipient (organization_id, address) select $1::uuid, unnest($2::text[]) on conflict do nothing`,
    [owner, addresses],
  );
}

/** The addresses of the destination `d` that have unsubscribed. */
export const unsubscribedOf = `array(
  select r.address from mail_recipient r
  where d.form = 'mail' and r.organization_id is not distinct from d.organization_id and r.unsubscribed_at is not null
    and r.address = any (string_to_array(d.address, ',')) order by r.address)`;

export function mailSubscriptions(db: Database): Subscriptions {
  return {
    async findSubscription(secret) {
      const [row] = await db.query<Row>(`${reading} where r.id = $1::uuid`, [uuidIn(secret)]);
      return row ? subscriptionOf(row) : null;
    },
    subscribe: (secret, isSubscribed) =>
      transact(db, async (tx) => {
        const [row] = await tx.query<Row>(`${reading} where r.id = $1::uuid for update of r`, [uuidIn(secret)]);
        if (!row) return null;
        if (row.isSubscribed !== isSubscribed) {
          const at = await storeNow(tx);
          await tx.query("update mail_recipient set unsubscribed_at = $2 where id = $1", [
            row.id,
            isSubscribed ? null : at,
          ]);
          const { owner } = row;
          await appendAuditEntry(tx, at, {
            actor: "mail",
            action: isSubscribed ? "notice.subscribe" : "notice.unsubscribe",
            owner,
            subject: owner === null ? "fleet" : idOf(owner, "org_"),
            details: {},
          });
        }
        return { ...subscriptionOf(row), isSubscribed };
      }),
  };
}

interface Row extends Subscription {
  id: string;
  /** The UUID of the organization. */
  owner: string | null;
}

const reading = `select r.id, r.organization_id as owner, o.slug as organization, r.address, r.unsubscribed_at is null as "isSubscribed"
  from mail_recipient r left join organization o on o.id = r.organization_id`;

const uuidIn = (secret: string) => (/^[0-9a-f]{32}$/.test(secret) ? secret : null);

const subscriptionOf = ({ organization, address, isSubscribed }: Row): Subscription => ({
  organization,
  address,
  isSubscribed,
});

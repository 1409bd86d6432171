/** Invitations over SQL, and how a sign-in accepts them. */
import {
  type InvitationAdministration,
  invitation_days,
  invitationKept_days,
  type NewInvitation,
  openInvitations_max,
  type StoredInvitation,
} from "../../admin/store/invitations.ts";
import { bare, idOf, uuid_min, uuidOf } from "../../core/store/ids.ts";
import { appendAuditEntry, creating, type NewAuditEntry, storeNow, transact } from "./acts.ts";
import { budgetShown } from "./budgets.ts";
import type { Database, Querying, Transaction } from "./database.ts";
import { budgetFrom } from "./limit-reading.ts";
import { setLimits } from "./limit-values.ts";
import { inForce } from "./memberships.ts";
import { arrayOf } from "./own-value.ts";
import { pageOf, shownId, uuidIfAny } from "./rows.ts";

export function invitations(db: Database): InvitationAdministration {
  return {
    createInvitation: (wanted, actor, repeat) =>
      creating(db, { actor, id: wanted.id, repeat }, (tx) => invited(tx, wanted, actor)),

    findInvitation: (id) => find(db, id),

    async pageInvitations({ organizationId, state, after, limit }) {
      const rows = await db.query<Row>(
        `${reading} where ($1::uuid is null or i.organization_id = $1) and ($2::text is null or ${stateOf} = $2)
           and ($3::uuid is null or i.id < $3) order by i.id desc limit $4`,
        [
          uuidIfAny(organizationId, "org_"),
          state ?? null,
          after === undefined ? null : (uuidOf(after, "inv_") ?? uuid_min),
          limit + 1,
        ],
      );
      return pageOf(rows.map(invitationOf), limit);
    },

    revokeInvitation: (id, actor) =>
      transact(db, async (tx) => {
        const found = await find(tx, id);
        if (!found) return null;
        const at = await storeNow(tx);
        const ended = await tx.query(revoking, [bare(id, "inv_"), at, actor]);
        if (ended.length === 0) return "not_open";
        const owner = bare(found.organizationId, "org_");
        await appendAuditEntry(tx, at, { actor, action: "invitation.revoke", owner, subject: id, details: {} });
        return (await find(tx, id))!;
      }),
  };
}

/** Creates an invitation, or returns why not. */
async function invited(tx: Transaction, wanted: NewInvitation, actor: string) {
  const { id, role, issuer, email, limits, organizationId, teamId } = wanted;
  const owner = bare(organizationId, "org_");
  // Locks the organization, so that two simultaneous invitations are counted one after the other.
  await tx.query("select from organization where id = $1 for no key update", [owner]);
  await tx.query(forgetting, [owner, invitation_days + invitationKept_days]);
  const [known] = await tx.query<{ members: number; open: number }>(knowing, [owner, issuer, email]);
  if (known!.members > 0) return "member";
  if (known!.open >= openInvitations_max) return "too_many";
  const at = await storeNow(tx);
  if ((await tx.query(inserting, [...valuesOf(wanted, owner), at, actor, invitation_days])).length === 0)
    return "already";
  // The audit log cannot forget, so the address is left out of its entry.
  const details = { issuer, role, team_id: teamId, limits: limits && budgetShown(limits) };
  await appendAuditEntry(tx, at, { actor, action: "invitation.create", owner, subject: id, details });
  return (await find(tx, id))!;
}

interface SignedIn {
  /** The UUID of the person, whose row is locked. */
  person: string;
  issuer: string;
  /** The address that the issuer has verified, in the form in which invitations store it. */
  email: string;
}

/**
 * The invitations that a sign-in accepted or revoked. The caller then updates the limits in force and writes the audit
 * entries.
 */
interface TakenInvitations {
  /** The UUIDs of the organizations in which the person got a membership. */
  organizations: string[];
  /** The audit entries, to be written at the end of the transaction. */
  acts: NewAuditEntry[];
  /**
   * Sets the limits that came with the memberships. Returns the subjects whose usage of before is not summed yet: call
   * `sumEarlier` for them after the commit.
   */
  limit(): Promise<string[]>;
}

/**
 * Accepts the open invitations for this address at this issuer. A person who is already a member of the organization
 * keeps that membership. An invitation whose inviter may no longer invite is revoked.
 */
export async function takeInvitations(
  tx: Transaction,
  { person, issuer, email }: SignedIn,
  at: Date,
): Promise<TakenInvitations> {
  const open = await tx.query<OpenRow>(taking, [issuer, email, at]);
  const given: OpenRow[] = [];
  const acts: NewAuditEntry[] = [];
  for (const one of open) {
    const subject = idOf(one.id, "inv_");
    const entry = { actor: "service", owner: one.organization_id, subject };
    if (!(await mayInvite(tx, one, at))) {
      await tx.query(revoking, [one.id, at, "service"]);
      acts.push({ ...entry, action: "invitation.revoke", details: { reason: "the inviter may no longer invite" } });
      continue;
    }
    const [made] = await tx.query(giving, [person, one.organization_id, one.team_id, one.role, at, one.created_by]);
    await tx.query(
      "update invitation set state = 'taken', ended_at = $2, ended_by = 'service', person_id = $3 where id = $1",
      [one.id, at, person],
    );
    const details = { person_id: idOf(person, "per_"), given: made !== undefined, invited_by: one.created_by };
    acts.push({ ...entry, action: "invitation.take", details });
    if (made) given.push(one);
  }
  return {
    organizations: given.map(({ organization_id }) => organization_id),
    acts,
    async limit() {
      const unsummed: string[] = [];
      for (const { limits, organization_id, created_by: actor } of given) {
        if (limits === null) continue;
        const organizationId = idOf(organization_id, "org_");
        const subject = { subject: "person", id: idOf(person, "per_"), organizationId } as const;
        const made = await setLimits(tx, { subject, actor, at }, () => ({ own: budgetFrom(limits) }));
        unsummed.push(...(made?.unsummed ?? []));
      }
      return unsummed;
    },
  };
}

/** SQL for the invitations of the verified address of the person $1. */
export const ofPerson =
  "(issuer, email) in (select issuer, lower(email) from person where id = $1 and is_email_verified)";

/** Revokes the open invitations of the person's address into the organization. Returns their number. */
export async function revokeInvitations(
  tx: Transaction,
  person: string,
  { owner, actor, at }: { owner: string; actor: string; at: Date },
): Promise<number> {
  const revoked = await tx.query(
    `update invitation set state = 'revoked', ended_at = $3, ended_by = $4
     where organization_id = $2 and state = 'open' and ${ofPerson} returning id`,
    [person, owner, at, actor],
  );
  return revoked.length;
}

interface OpenRow {
  id: string;
  organization_id: string;
  team_id: string | null;
  role: string;
  limits: (number | null)[] | null;
  created_by: string;
}

/**
 * Selects the open invitations and locks them. The person's row is locked earlier, so no deadlock is possible. An
 * invitation whose team or organization no longer exists stays open until it expires.
 */
const taking = `
  select i.id, i.organization_id, i.team_id, i.role, i.limits, i.created_by
  from invitation i join organization o on o.id = i.organization_id and o.status <> 'closed'
  left join team t on t.id = i.team_id
  where i.issuer = $1 and i.email = $2 and i.state = 'open' and i.expires_at > $3 and t.removed_at is null
  order by i.id for update of i`;

/**
 * Whether the inviter still has a role that may invite: a member may not, nor an administrator of another organization.
 */
async function mayInvite(tx: Querying, { created_by, organization_id }: OpenRow, at: Date): Promise<boolean> {
  const [, kind, name] = /^(\w+):(.+)$/.exec(created_by) ?? [];
  // A user of the node's command line administers the node.
  if (kind === "cli") return true;
  const found =
    kind === "operator"
      ? await tx.query(operatorMay, [name, organization_id, at])
      : kind === "person"
        ? await tx.query(personMay, [uuidOf(name ?? "", "per_"), organization_id])
        : [];
  return found.length > 0;
}

const operatorMay = `select from operator where name = $1 and revoked_at is null and (expires_at is null or expires_at > $3)
  and (role = 'admin' or (role = 'organization-admin' and organization_id = $2))`;

const personMay = `select from (${inForce}) m join person p on p.id = m.person_id
  where m.person_id = $1 and p.suspended_at is null and p.forgotten_at is null
    and ((m.role = 'admin' and m.organization_id is null)
      or (m.role = 'organization-admin' and m.organization_id = $2::uuid))`;

/**
 * Gives a person a membership, unless one is in force in the organization. The row of an ended membership is reused.
 */
const giving = `insert into membership (person_id, organization_id, team_id, role, scopes, models, source, created_at, created_by)
  select $1::uuid, $2::uuid, $3::uuid, $4::text, array['models:read', 'inference:create', 'usage:read'], null, 'hand', $5::timestamptz, $6::text
  where not exists (select from membership m where m.person_id = $1 and m.organization_id = $2 and m.ended_at is null)
  on conflict (person_id, organization_id, source) do update set (team_id, role, scopes, models, created_at, created_by, ended_at) =
    (excluded.team_id, excluded.role, excluded.scopes, excluded.models, excluded.created_at, excluded.created_by, null)
  returning id`;

const stateOf = "case when i.state = 'open' and i.expires_at <= store_now() then 'expired' else i.state end";

const reading = `
  select ${shownId("i.id", "inv_")} as id, ${shownId("i.organization_id", "org_")} as "organizationId",
    o.slug as organization, ${shownId("i.team_id", "team_")} as "teamId", t.name as team, i.role, i.issuer, i.email, i.limits,
    i.created_at as "createdAt", i.created_by as "createdBy", i.expires_at as "expiresAt", ${stateOf} as state,
    i.ended_at as "endedAt", i.ended_by as "endedBy", ${shownId("i.person_id", "per_")} as "personId"
  from invitation i join organization o on o.id = i.organization_id
  left join team t on t.id = i.team_id and t.removed_at is null`;

interface Row extends Omit<StoredInvitation, "limits"> {
  limits: (number | null)[] | null;
}

const invitationOf = (row: Row): StoredInvitation => ({ ...row, limits: row.limits && budgetFrom(row.limits) });

async function find(db: Querying, id: string): Promise<StoredInvitation | null> {
  const uuid = uuidOf(id, "inv_");
  const [row] = uuid === null ? [] : await db.query<Row>(`${reading} where i.id = $1`, [uuid]);
  return row ? invitationOf(row) : null;
}

const forgetting =
  "delete from invitation where organization_id = $1 and created_at < store_now() - make_interval(days => $2)";

/**
 * Marks an expired invitation as such, so that the address can be invited again, and counts members with this address
 * and open invitations.
 */
const knowing = `
  with expired as (
    update invitation set state = 'expired', ended_at = expires_at, ended_by = 'service'
    where organization_id = $1 and issuer = $2 and email = $3 and state = 'open' and expires_at <= store_now()
  )
  select (select count(*)::int from person p join membership m on m.person_id = p.id and m.organization_id = $1 and m.ended_at is null
      where p.issuer = $2 and lower(p.email) = $3 and p.is_email_verified) as members,
    (select count(*)::int from invitation i
      where i.organization_id = $1 and i.state = 'open' and i.expires_at > store_now()) as open`;

const inserting = `insert into invitation (id, organization_id, team_id, role, issuer, email, limits, created_at, created_by, expires_at)
  values ($1, $2, $3, $4, $5, $6, $7::bigint[], $8, $9, $8::timestamptz + make_interval(days => $10))
  on conflict do nothing returning id`;

function valuesOf({ id, teamId, role, issuer, email, limits }: NewInvitation, owner: string): unknown[] {
  const team = teamId && bare(teamId, "team_");
  return [bare(id, "inv_"), owner, team, role, issuer, email, limits && arrayOf(limits)];
}

const revoking = `update invitation set state = 'revoked', ended_at = $2, ended_by = $3
  where id = $1 and state = 'open' and expires_at > store_now() returning id`;

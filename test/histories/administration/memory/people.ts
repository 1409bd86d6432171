// Does in memory what src/stores/postgres/people-administration.ts does, and what a sign-in does to the memberships of a
// person.

import { isDeepStrictEqual } from "node:util";
import type { PeopleAdministration, PersonChanged } from "../../../../src/admin/store/people.ts";
import { scopes } from "../../../../src/core/store/directory.ts";
import type { NamedMembership } from "../../../../src/core/store/people.ts";
import type { KnownPerson, Membership } from "../../../../src/features/identity/store/people.ts";
import { audit, refreshPerson } from "./acts.ts";
import type { MemoryDatabase, MemoryTransaction } from "./memory.ts";
import { type MembershipRow, membershipIn, type PersonRow, type Reading, teamIn } from "./tables.ts";

type Verbs = `${"suspend" | "resume" | "forget"}Person` | `${"give" | "take"}Membership` | "findPerson";

/** Whether the action changed something, or the reason why it was refused. */
type Done<Refusal extends string> = boolean | Refusal;

export function people(db: MemoryDatabase): Pick<PeopleAdministration, Verbs> {
  const { memory } = db;
  const changing = <Refusal extends string>(
    id: string,
    version: number | null | undefined,
    work: (tx: MemoryTransaction, row: PersonRow) => Promise<Done<Refusal>>,
  ) =>
    db.transaction(async (tx): Promise<PersonChanged | Refusal> => {
      await tx.lock("administrators");
      await tx.lock(id, "no key update");
      const row = tx.get("people", id);
      if (!row) return null;
      if (typeof version === "number" && row.version !== version) return { stale: known(tx, row) };
      const done = await work(tx, row);
      if (typeof done === "string") return done;
      if (done) {
        tx.set("people", id, { ...tx.get("people", id)!, version: row.version + 1 });
        await audit(tx);
      }
      return known(tx, tx.get("people", id)!);
    });
  return {
    async findPerson(id) {
      await memory.scheduler.turn();
      const person = memory.get("people", id);
      return person ? known(memory, person) : null;
    },

    suspendPerson: (id, _, version) =>
      changing<never>(id, version, async (tx, row) => {
        if (row.suspendedAt) return false;
        tx.set("people", id, { ...row, suspendedAt: tx.now });
        return true;
      }),

    resumePerson: (id, _, version) =>
      changing<never>(id, version, async (tx, row) => {
        if (!row.suspendedAt) return false;
        tx.set("people", id, { ...row, suspendedAt: null });
        return true;
      }),

    forgetPerson: (id, _, version) =>
      changing<never>(id, version, async (tx, row) => {
        if (row.forgottenAt) return false;
        await revokeKeys(tx, id);
        for (const one of tx.all("memberships")) if (one.personId === id) tx.set("memberships", idOf(one), null);
        tx.set("people", id, { ...row, subject: null, email: null, name: null, groups: [], forgottenAt: tx.now });
        return true;
      }),

    giveMembership: (id, named, _, version) =>
      changing<"no_organization" | "no_team">(id, version, async (tx) => {
        const given = await resolved(tx, id, named, "hand");
        if (typeof given === "string") return given;
        if (isDeepStrictEqual(tx.get("memberships", idOf(given)), given)) return false;
        tx.set("memberships", idOf(given), given);
        await refreshPerson(tx, given.organizationId, id);
        return true;
      }),

    takeMembership: (id, organizationId, _, version) =>
      changing<"no_membership">(id, version, async (tx) => {
        await tx.statement();
        const gone = tx.get("memberships", `${organizationId} ${id} hand`);
        if (!gone) return "no_membership";
        tx.set("memberships", idOf(gone), null);
        await refreshPerson(tx, gone.organizationId, id);
        return true;
      }),
  };
}

/** A sign-in: those memberships of the person that rules gave are replaced by `named`, what the rules give now. */
export function confirm(db: MemoryDatabase, id: string, named: readonly NamedMembership[]): Promise<void> {
  return db.transaction(async (tx) => {
    await tx.lock(id, "no key update");
    tx.set("people", id, { ...tx.get("people", id)!, forgottenAt: null });
    const ruled = tx.all("memberships").filter((one) => one.personId === id && one.source === "rule");
    const wanted = new Map<string, MembershipRow>();
    for (const one of named) {
      const row = await resolved(tx, id, one, "rule");
      if (typeof row !== "string") wanted.set(row.organizationId, row);
    }
    await tx.statement();
    const lost = ruled.filter(({ isEnded, organizationId }) => !isEnded && !wanted.has(organizationId));
    for (const one of lost) tx.set("memberships", idOf(one), { ...one, isEnded: true });
    const given = [...wanted.values()].filter((one) => !isDeepStrictEqual(tx.get("memberships", idOf(one)), one));
    for (const one of given) tx.set("memberships", idOf(one), one);
    for (const { organizationId } of [...lost, ...given]) await refreshPerson(tx, organizationId, id);
    if (lost.length > 0 || given.length > 0) await audit(tx);
  });
}

const idOf = ({ organizationId, personId, source }: MembershipRow) => `${organizationId} ${personId} ${source}`;

async function revokeKeys(tx: MemoryTransaction, person: string): Promise<void> {
  for (const { id, personId } of tx.all("keys")) {
    if (personId !== person) continue;
    await tx.lock(id, "no key update");
    const key = tx.get("keys", id)!;
    if (key.revokedAt) continue;
    tx.set("keys", id, { ...key, revokedAt: tx.now, state: "revoked", endsAt: tx.now, version: key.version + 1 });
  }
}

/**
 * Makes the row of a named membership, or returns why it cannot be. Every membership here is in an organization. The
 * organization is locked, so that nobody closes it meanwhile.
 */
async function resolved(
  tx: MemoryTransaction,
  personId: string,
  { organization, team, role }: NamedMembership,
  source: Membership["source"],
): Promise<MembershipRow | "no_organization" | "no_team"> {
  const organizationId = organization!;
  await tx.lock(organizationId, "key share");
  if (tx.get("organizations", organizationId)?.status === "closed") return "no_organization";
  await tx.statement();
  const found = team === null ? null : teamIn(tx, team);
  if (team !== null && found?.organizationId !== organizationId) return "no_team";
  return { personId, organizationId, teamId: team, role, source, isEnded: false };
}

function known(of: Reading, { suspendedAt, forgottenAt, ...person }: PersonRow): KnownPerson {
  const organizations = of.all("organizations").filter(({ status }) => status !== "closed");
  const memberships = organizations.flatMap(({ id, slug }): Membership[] => {
    const row = membershipIn(of, id, person.id);
    if (!row) return [];
    const team = row.teamId === null ? null : teamIn(of, row.teamId);
    const { role, source } = row;
    const rights = { role, scopes: [...scopes], models: null, source, createdAt: of.now, createdBy: "service" };
    return [{ ...rights, organizationId: id, organization: slug, team: team && { id: team.id, name: team.name } }];
  });
  const state = forgottenAt ? "forgotten" : suspendedAt ? "suspended" : "active";
  return { ...person, state, memberships, readAt: of.now };
}

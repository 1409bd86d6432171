/** People and their memberships, over SQL. */
import { and, eq } from "drizzle-orm";
import { person } from "../../../db/schema.ts";
import { bare, idOf, uuidOf } from "../../core/store/ids.ts";
import type { Confirmation, KnownPerson, People } from "../../features/identity/store/people.ts";
import { appendAuditEntry, storeNow, transact } from "./acts.ts";
import { lockAdministrators } from "./administrators.ts";
import { batched } from "./batched.ts";
import { sumAll } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { takeInvitations } from "./invitations.ts";
import { lookUp } from "./look-up.ts";
import { applyRules } from "./memberships.ts";
import { lockPerson, type PersonRow, peopleIn, readPerson } from "./person.ts";
import { refreshPerson } from "./refresh-limits.ts";
import { announceChange } from "./revocations.ts";
import { unwrapErrors } from "./rows.ts";
import { tokenKey } from "./token-key.ts";

export function people(db: Database): People {
  // Prepared, because it runs for each request of a session, and twice a second for each stream in a session.
  const reading = lookUp<string, KnownPerson>({ name: "people", column: person.id, type: "uuid" }, (isAsked) =>
    peopleIn(db).where(isAsked),
  );
  const find = batched<string, KnownPerson>(
    (uuid) => uuid,
    async (uuids) => new Map((await reading(uuids)).map((one) => [bare(one.id, "per_"), one])),
  );
  return {
    async findPerson(id) {
      const uuid = uuidOf(id, "per_");
      return uuid === null ? null : unwrapErrors(find(uuid));
    },

    personOf: (issuer, subject) => unwrapErrors(readPerson(db, isSubject(issuer, subject))),

    async confirm(confirmation) {
      let unsummed: string[] = [];
      const confirming = async (tx: Transaction, isLocked: boolean) => {
        const now = await storeNow(tx);
        const { row, isNew, isLate } = await confirmed(tx, confirmation, now);
        const isSilent = isLate || confirmation.memberships === null;
        const rules = isSilent ? null : await applyRules(tx, row, confirmation, now);
        if (!isLocked && rules?.losesAdmin) throw new AdministratorLost();
        const changes = rules && (rules.given.length > 0 || rules.lost.length > 0) ? rules : null;
        const { issuer, invited } = confirmation;
        const taken = invited ? await takeInvitations(tx, { person: row.id, issuer, email: invited }, now) : null;
        const organizations = [...(changes?.organizations ?? []), ...(taken?.organizations ?? [])];
        if (changes || organizations.length > 0) await announceChange(tx, idOf(row.id, "per_"));
        unsummed = await refreshPerson(tx, [...new Set(organizations)], row.id);
        if (taken) unsummed.push(...(await taken.limit()));
        const found = (await readPerson(tx, eq(person.id, row.id)))!;
        if (isNew || changes) {
          const { kind } = confirmation;
          const details = {
            ...(isNew ? { kind, issuer } : {}),
            given: changes?.given ?? [],
            lost: changes?.lost ?? [],
          };
          const action = isNew ? "person.create" : "person.memberships";
          await appendAuditEntry(tx, now, { actor: "service", action, owner: null, subject: found.id, details });
        }
        for (const one of taken?.acts ?? []) await appendAuditEntry(tx, now, one);
        return { ...found, isNew, missing: rules?.missing ?? [] };
      };
      const answer = await transact(db, (tx) => confirming(tx, false)).catch((thrown) => {
        if (!(thrown instanceof AdministratorLost)) throw thrown;
        return transact(db, async (tx) => {
          await lockAdministrators(tx);
          return confirming(tx, true);
        });
      });
      await sumAll(db, unsummed);
      return answer;
    },

    endIssued: (id, actor) =>
      transact(db, async (tx) => {
        const row = await lockPerson(tx, id);
        if (!row) return;
        const at = await storeNow(tx);
        await tx.drizzle.update(person).set({ notBefore: at }).where(eq(person.id, row.id));
        await announceChange(tx, id);
        await appendAuditEntry(tx, at, { actor, action: "person.end_issued", owner: null, subject: id, details: {} });
      }),

    deleteVisitors: () => transact(db, deleteVisitors),

    async tokenKey(input) {
      const found = await transact(db, (tx) => tokenKey(tx, input));
      await sumAll(db, found?.unsummed ?? []);
      return found && { id: found.id, secretHash: found.secretHash };
    },
  };
}

/**
 * Thrown if a confirmation of a person by an issuer takes the role of an administrator away, which is rare. The
 * confirmation then starts again with the administrators' lock, so that a concurrent act cannot remove the last
 * administrator.
 */
class AdministratorLost extends Error {}

const isSubject = (issuer: string, subject: string) =>
  and(eq(person.issuer, issuer), eq(person.subjectHash, hashOf(subject)));

function hashOf(text: string): Uint8Array {
  return Bun.SHA256.hash(text) as Uint8Array;
}

/**
 * Finds or creates the person's row, locked until the commit, and stores the claims of the issuer. `isLate`: the claims
 * are older than the last ones or than the person's last sign-out or erasure, and nothing was stored.
 */
async function confirmed(
  tx: Transaction,
  confirmation: Confirmation,
  now: Date,
): Promise<{ row: PersonRow; isNew: boolean; isLate: boolean }> {
  const { issuer, subject, kind } = confirmation;
  const at = confirmation.at && confirmation.at < now ? confirmation.at : now;
  const [made] = await tx.drizzle
    .insert(person)
    .values({
      id: bare(confirmation.id, "per_"),
      issuer,
      subject,
      subjectHash: hashOf(subject),
      kind,
      createdAt: now,
      confirmedAt: at,
    })
    .onConflictDoNothing()
    .returning({ id: person.id });
  const [found] = await tx.drizzle.select().from(person).where(isSubject(issuer, subject)).for("no key update");
  // The person was deleted between the two statements, as a visitor who had not come back for a long time.
  if (!found) return confirmed(tx, confirmation, now);
  if (confirmation.at && isBefore(at, found)) return { row: found, isNew: false, isLate: true };
  const changes = changesOf(confirmation, at);
  await tx.drizzle.update(person).set(changes).where(eq(person.id, found.id));
  return { row: { ...found, ...changes }, isNew: made !== undefined, isLate: false };
}

function isBefore(at: Date, { confirmedAt, notBefore }: PersonRow): boolean {
  return at < confirmedAt || (notBefore !== null && at < notBefore);
}

function changesOf(confirmation: Confirmation, at: Date): Partial<PersonRow> {
  const { subject, kind, email, isEmailVerified, name, groups } = confirmation;
  return {
    kind,
    subject,
    confirmedAt: at,
    forgottenAt: null,
    ...(email === undefined ? {} : { email }),
    ...(isEmailVerified === undefined ? {} : { isEmailVerified }),
    ...(name === undefined ? {} : { name }),
    ...(groups === undefined ? {} : { groups: [...groups], groupsAt: at }),
  };
}

/**
 * Deletes visitors: people whom no issuer has confirmed for 30 days, and who have no membership, key or setting. One
 * statement locks their rows, and a later one checks again that they are visitors and deletes them. Everything that
 * gives a person a membership, key or setting takes the same lock, so it cannot come in between. A person with an ended
 * membership is kept, too, since there may be usage.
 */
async function deleteVisitors(tx: Transaction): Promise<number> {
  const old = await tx.query<{ id: string }>(
    `select id from person p where ${isVisitor} order by confirmed_at limit $1 for update skip locked`,
    [visitors_max],
  );
  const ids = old.map(({ id }) => id);
  for (const table of ["device_request", "browser_session", "notice"])
    await tx.query(`delete from ${table} where person_id = any ($1::uuid[])`, [ids]);
  const gone = await tx.query<{ id: string }>(
    `delete from person p where id = any ($1::uuid[]) and ${isVisitor} returning id`,
    [ids],
  );
  const at = await storeNow(tx);
  for (const { id } of gone) {
    const subject = idOf(id, "per_");
    await appendAuditEntry(tx, at, { actor: "service", action: "person.delete", owner: null, subject, details: {} });
  }
  return gone.length;
}

const visitors_max = 500;
const isVisitor = `
  p.confirmed_at < store_now() - interval '30 days' and p.suspended_at is null and p.forgotten_at is null
  and not exists (select from membership m where m.person_id = p.id)
  and not exists (select from api_key k where k.person_id = p.id)
  and not exists (select from sign_in s where s.person_id = p.id)
  and not exists (
    select from usage_subject s join limit_value l on l.subject_id = s.subject_id where s.person_id = p.id)`;

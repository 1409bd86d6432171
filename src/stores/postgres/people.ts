/** People over SQL, and their memberships. */
import { and, eq, getTableColumns, isNull, type SQL } from "drizzle-orm";
import { apiKey, person } from "../../../db/schema.ts";
import { scopes } from "../../core/store/directory.ts";
import { bare, idOf, uuidOf } from "../../core/store/ids.ts";
import type { Confirmation, KnownPerson, People, Person, TokenKey } from "../../core/store/people.ts";
import { act, audit, storeNow } from "./acts.ts";
import { lockAdministrators } from "./administrators.ts";
import { batched } from "./batched.ts";
import { sumAll } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { followMembership, teamOfMember } from "./members.ts";
import {
  applyRules,
  type MembershipColumns,
  membershipColumns,
  membershipOf,
  membershipOrder,
  membershipsOf,
  membershipTables,
  organizationNamed,
} from "./memberships.ts";
import { refreshPerson } from "./refresh-limits.ts";
import { announceChange } from "./revocations.ts";
import { plainly } from "./rows.ts";
import { keySecrets } from "./secrets.ts";
import { countNewKey } from "./teams.ts";

export type PersonRow = typeof person.$inferSelect;

export function people(db: Database): People {
  const find = batched<string, KnownPerson>(
    (uuid) => uuid,
    (uuids) => foundPeople(db, uuids),
  );
  return {
    async findPerson(id) {
      const uuid = uuidOf(id, "per_");
      return uuid === null ? null : plainly(find(uuid));
    },

    personOf: (issuer, subject) => plainly(readPerson(db, isSubject(issuer, subject))),

    async confirm(confirmation) {
      let unsummed: string[] = [];
      const confirming = async (tx: Transaction, isLocked: boolean) => {
        const now = await storeNow(tx);
        const { row, isNew } = await confirmed(tx, confirmation, now);
        const rules = confirmation.memberships === null ? null : await applyRules(tx, row, confirmation, now);
        if (!isLocked && rules?.losesAdmin) throw new AdministratorLost();
        const changes = rules && (rules.given.length > 0 || rules.lost.length > 0) ? rules : null;
        if (changes) await announceChange(tx, idOf(row.id, "per_"));
        if (changes) unsummed = await refreshPerson(tx, changes.organizations, row.id);
        const found = (await readPerson(tx, eq(person.id, row.id)))!;
        if (isNew || changes) {
          const { kind, issuer } = confirmation;
          const details = {
            ...(isNew ? { kind, issuer } : {}),
            given: changes?.given ?? [],
            lost: changes?.lost ?? [],
          };
          const action = isNew ? "person.create" : "person.memberships";
          await audit(tx, now, { actor: "service", action, owner: null, subject: found.person.id, details });
        }
        return { ...found, isNew, missing: rules?.missing ?? [] };
      };
      const answer = await act(db, (tx) => confirming(tx, false)).catch((thrown) => {
        if (!(thrown instanceof AdministratorLost)) throw thrown;
        return act(db, async (tx) => {
          await lockAdministrators(tx);
          return confirming(tx, true);
        });
      });
      await sumAll(db, unsummed);
      return answer;
    },

    endIssued: (id, actor) => endIssued(db, id, actor),

    deleteVisitors: () => act(db, deleteVisitors),

    async tokenKey(input) {
      const found = await act(db, (tx) => tokenKey(tx, input));
      await sumAll(db, found?.unsummed ?? []);
      return found && { id: found.id, secretHash: found.secretHash };
    },
  };
}

/** Rare, so it is begun again with the lock: an act beside it would take away an administrator who is not the last one any more. */
class AdministratorLost extends Error {}

const isSubject = (issuer: string, subject: string) =>
  and(eq(person.issuer, issuer), eq(person.subjectHash, hashOf(subject)));

function hashOf(text: string): Uint8Array {
  return Bun.SHA256.hash(text) as Uint8Array;
}

/** Finds or makes the row, locked until the commit, and stores the claims of the issuer. */
async function confirmed(
  tx: Transaction,
  confirmation: Confirmation,
  now: Date,
): Promise<{ row: PersonRow; isNew: boolean }> {
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
  // The person was deleted between the two statements, as a visitor who had not come for long.
  if (!found) return confirmed(tx, confirmation, now);
  const changes = changesOf(found, confirmation, at);
  if (Object.keys(changes).length > 0) await tx.drizzle.update(person).set(changes).where(eq(person.id, found.id));
  return { row: { ...found, ...changes }, isNew: made !== undefined };
}

/** The columns that change. A confirmation that is older than the last one changes none. */
function changesOf(before: PersonRow, confirmation: Confirmation, at: Date): Partial<PersonRow> {
  if (at < before.confirmedAt) return {};
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

export async function readPerson(
  tx: Pick<Transaction, "drizzle" | "query">,
  wanted?: SQL,
): Promise<KnownPerson | null> {
  const rows = await tx.drizzle.select().from(person).where(wanted);
  return (await knownOf(tx, rows))[0] ?? null;
}

const personColumns = Object.entries(getTableColumns(person)).map(
  ([name, { name: column }]) => [name, column] as const,
);
const selected = personColumns.map(([name, column]) => `p.${column} as "${name}"`).join(", ");

/**
 * People by their UUIDs, with their memberships: one statement of a fixed text, since it runs for each request of a session,
 * and twice a second for each stream that a session follows.
 */
async function foundPeople(db: Pick<Database, "query">, uuids: string[]): Promise<ReadonlyMap<string, KnownPerson>> {
  type Joined = PersonRow & Pick<KnownPerson, "readAt"> & (MembershipColumns | { person_id: null });
  const rows = await db.query<Joined>(
    `select ${selected}, store_now() as "readAt", ${membershipColumns}
     from person p left join (${membershipTables("$1")}) on f.person_id = p.id
     where p.id = any ($1::uuid[]) order by p.id, ${membershipOrder}`,
    [uuids],
  );
  return new Map(
    [...Map.groupBy(rows, ({ id }) => id)].map(([id, joined]) => {
      const row = joined[0]!;
      const own = Object.fromEntries(personColumns.map(([name]) => [name, row[name as keyof PersonRow]]));
      const memberships = joined.filter((one) => one.person_id !== null).map(membershipOf);
      return [id, { person: personOf(own as unknown as PersonRow), memberships, readAt: row.readAt }];
    }),
  );
}

/** Reads the memberships of all in one query. */
export async function knownOf(tx: Pick<Transaction, "query">, rows: PersonRow[]): Promise<KnownPerson[]> {
  const memberships = await membershipsOf(
    tx,
    rows.map(({ id }) => id),
  );
  const readAt = await storeNow(tx);
  return rows.map((row) => ({ person: personOf(row), memberships: memberships.get(row.id) ?? [], readAt }));
}

export function personOf({ subjectHash: _, ...row }: PersonRow): Person {
  return { ...row, id: idOf(row.id, "per_") };
}

/**
 * The person's row, locked until the commit. It is not locked for update: a new key of the person shares the row while its
 * organization is locked, and would wait.
 */
export async function lockPerson(tx: Transaction, id: string): Promise<PersonRow | null> {
  const uuid = uuidOf(id, "per_");
  if (uuid === null) return null;
  const [row] = await tx.drizzle.select().from(person).where(eq(person.id, uuid)).for("no key update");
  return row ?? null;
}

export function endIssued(db: Database, id: string, actor: string): Promise<Person | null> {
  return act(db, async (tx) => {
    const row = await lockPerson(tx, id);
    if (!row) return null;
    const at = await storeNow(tx);
    await tx.drizzle.update(person).set({ notBefore: at }).where(eq(person.id, row.id));
    await announceChange(tx, id);
    await audit(tx, at, { actor, action: "person.end_issued", owner: null, subject: id, details: {} });
    return personOf({ ...row, notBefore: at });
  });
}

/**
 * One statement locks the rows and the next checks them again: whatever gives a person something takes the same lock, so that
 * it is seen. Ended memberships count too, since a person who had one may have usage.
 */
async function deleteVisitors(tx: Transaction): Promise<number> {
  const old = await tx.query<{ id: string }>(
    `select id from person p where ${isVisitor} order by confirmed_at limit $1 for update skip locked`,
    [visitors_max],
  );
  const ids = old.map(({ id }) => id);
  await tx.query("delete from device_request where person_id = any ($1::uuid[])", [ids]);
  await tx.query("delete from browser_session where person_id = any ($1::uuid[])", [ids]);
  const gone = await tx.query<{ id: string }>(
    `delete from person p where id = any ($1::uuid[]) and ${isVisitor} returning id`,
    [ids],
  );
  const at = await storeNow(tx);
  for (const { id } of gone) {
    const subject = idOf(id, "per_");
    await audit(tx, at, { actor: "service", action: "person.delete", owner: null, subject, details: {} });
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

type TokenKeyInput = Parameters<People["tokenKey"]>[0];

async function tokenKey(tx: Transaction, input: TokenKeyInput): Promise<(TokenKey & { unsummed: string[] }) | null> {
  const person = await lockPerson(tx, input.personId);
  const owner = person && (await organizationNamed(tx, input.organization));
  const team = owner ? await teamOfMember(tx, owner, person.id) : "no_membership";
  if (!person || !owner || team === "no_membership") return null;
  const [found] = await tx.drizzle
    .select({ id: apiKey.id })
    .from(apiKey)
    .where(
      and(
        eq(apiKey.personId, person.id),
        eq(apiKey.organizationId, owner),
        eq(apiKey.kind, "jwt"),
        isNull(apiKey.revokedAt),
      ),
    )
    .orderBy(apiKey.id)
    .limit(1);
  const unsummed = found ? await followMembership(tx, { id: found.id, owner, person: person.id }) : [];
  const id = found?.id ?? (await makeTokenKey(tx, input, { owner, person: person.id, team }));
  return { id: idOf(id, "key_"), secretHash: secretHashOf(id), unsummed };
}

/** The hashed text does not have the form of a key, so no credential of a request has this hash. */
const secretHashOf = (keyId: string) => hashOf(`identity tokens of ${idOf(keyId, "key_")}`);

async function makeTokenKey(
  tx: Transaction,
  { id: keyId }: { id: string },
  { owner, person, team }: { owner: string; person: string; team: string | null },
): Promise<string> {
  const at = await storeNow(tx);
  const id = bare(keyId, "key_");
  const name = "identity token";
  await tx.drizzle.insert(apiKey).values({
    id,
    organizationId: owner,
    name,
    scopes: [...scopes],
    kind: "jwt",
    personId: person,
    createdAt: at,
    createdBy: "service",
  });
  const secret = { hash: secretHashOf(id), prefix: "", suffix: "" };
  await keySecrets.add(tx, id, secret, at);
  const teamId = team === null ? null : idOf(team, "team_");
  await countNewKey(tx, { id, owner, teamId, person, at });
  await announceChange(tx, keyId, secret.hash);
  const details = { kind: "jwt", person_id: idOf(person, "per_"), ...(teamId === null ? {} : { team_id: teamId }) };
  await audit(tx, at, { actor: "service", action: "key.create", owner, subject: keyId, details });
  return id;
}

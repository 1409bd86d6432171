/**
 * Administration of keys. A key keeps its id through rotations, each of which adds a secret. Older secrets work until
 * they are revoked, or until the end of the rotation's grace period.
 */
import { isDeepStrictEqual } from "node:util";
import { and, eq, getTableColumns, gt, isNull, type SQL, sql } from "drizzle-orm";
import { apiKey, organization, person } from "../../../db/schema.ts";
import type { Administration } from "../../admin/store/administration.ts";
import type { KeyChange, StoredKey } from "../../admin/store/key.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import { appendAuditEntry, creating, detailsOf, storeNow } from "./acts.ts";
import { budgetShown, saysAny, setTeam } from "./budgets.ts";
import { type Changeable, change } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { keyLife } from "./key-life.ts";
import { refreshLimits } from "./refresh-limits.ts";
import { announceChange } from "./revocations.ts";
import { idIn, type KeyRow, pageIn, shownId, unwrapErrors } from "./rows.ts";
import { credentialsOf, keySecrets, masked } from "./secrets.ts";
import { endRow } from "./sign-ins.ts";
import { hasUsed } from "./standing.ts";
import { countNewKey, lockOrganization, mayJoin } from "./teams.ts";

export function keys(db: Database) {
  return {
    createKey: (input) =>
      creating(db, input, async (tx) => {
        const at = await storeNow(tx);
        const id = bare(input.id, "key_");
        const owner = bare(input.organizationId, "org_");
        const { name, scopes, models, expiresAt, teamId, limits, labels, allowFrom } = input;
        const { personId = null } = input;
        const refusal = await refusalOf(tx, { owner, name: input.hasOwnName ? name : null, teamId });
        if (refusal) return refusal;
        const personUuid = personId && bare(personId, "per_");
        await tx.drizzle.insert(apiKey).values({
          id,
          organizationId: owner,
          name,
          scopes,
          models,
          expiresAt,
          owner: input.owner,
          labels,
          allowFrom,
          personId: personUuid,
          createdAt: at,
          createdBy: input.actor,
        });
        await keySecrets.add(tx, id, input.secret, at);
        await countNewKey(tx, { id, owner, teamId, person: personUuid, at, own: { limits, actor: input.actor } });
        const details = {
          name,
          scopes,
          models,
          expires_at: expiresAt,
          ...(input.owner === null ? {} : { owner: input.owner }),
          ...(Object.keys(labels).length === 0 ? {} : { labels }),
          ...(allowFrom === null ? {} : { allow_from: allowFrom }),
          ...(teamId === null ? {} : { team_id: teamId }),
          ...(personId === null ? {} : { person_id: personId }),
          ...(saysAny(limits) ? { limits: budgetShown(limits) } : {}),
          secret: masked(input.secret),
        };
        await announceChange(tx, input.id, input.secret.hash);
        await appendAuditEntry(tx, at, { actor: input.actor, action: "key.create", owner, subject: input.id, details });
        return (await readKey(tx, id))!;
      }),

    async pageKeys({ organizationId, teamId, personId, after, limit, kind = "key", overPercent: over, ...life }) {
      const { state, unusedFor_ms, endsWithin_ms } = life;
      const owner = organizationId === undefined ? undefined : bare(organizationId, "org_");
      const wanted = and(
        owner === undefined ? undefined : eq(apiKey.organizationId, owner),
        after === undefined ? undefined : gt(apiKey.id, uuidOf(after, "key_") ?? uuid_max),
        teamId === undefined ? undefined : isInTeam(bare(teamId, "team_")),
        personId === undefined ? undefined : eq(apiKey.personId, bare(personId, "per_")),
        eq(apiKey.kind, kind),
        state === undefined ? undefined : eq(keyLife.state, state),
        unusedFor_ms === undefined ? undefined : isUnusedFor(unusedFor_ms),
        endsWithin_ms === undefined ? undefined : and(eq(keyLife.state, "active"), endsWithin(endsWithin_ms)),
        over === undefined ? undefined : hasUsed("key", apiKey.id, over, owner),
      );
      return pageIn(keysIn(db).where(wanted).orderBy(apiKey.id), limit);
    },

    async findKey(id) {
      const uuid = uuidOf(id, "key_");
      return uuid === null ? null : unwrapErrors(readKey(db, uuid));
    },

    updateKey: ({ id, actor, version }, patch) =>
      change(db, changeableKey, { id, actor, version }, async (tx, row) => {
        const key = (await readKey(tx, row.id))!;
        const { team: _, teamId, ...before } = { ...key, teamId: key.team?.id ?? null };
        const { teamId: toTeam = teamId, ...wanted } = patch(key);
        const named = Object.keys(wanted) as (keyof typeof wanted)[];
        const changed = named.filter((name) => !isDeepStrictEqual(before[name], wanted[name]));
        const isMoved = toTeam !== teamId;
        if (changed.length === 0 && !isMoved) return null;
        if (isMoved && !(await mayJoin(tx, row.organizationId, toTeam))) return "no_team";
        const only = (of: KeyChange) => Object.fromEntries(changed.map((name) => [name, of[name]]));
        await set(tx, row, only(wanted));
        const moved = (team_id: string | null) => (isMoved ? { team_id } : {});
        return {
          action: "key.update",
          details: {
            ...detailsOf(only(wanted)),
            ...moved(toTeam),
            before: { ...detailsOf(only(before)), ...moved(teamId) },
          },
          unsummed: isMoved ? await move(tx, row, toTeam) : [],
        };
      }),

    rotateKey: (rotation) => keyCredentials.rotate(db, changeableKey, rotation),
    revokeKey: (revocation) => keyCredentials.revoke(db, revocation.old ? changeableKey : endedKey, revocation),
  } satisfies Partial<Administration>;
}

export const changeableKey: Changeable<KeyRow, StoredKey> = {
  async lock(tx, id) {
    const uuid = uuidOf(id, "key_");
    if (uuid === null) return null;
    const [found] = await tx.drizzle.select({ owner: apiKey.organizationId }).from(apiKey).where(eq(apiKey.id, uuid));
    if (!found) return null;
    await lockOrganization(tx, found.owner);
    const [row] = await tx.drizzle.select().from(apiKey).where(eq(apiKey.id, uuid)).for("update");
    return row ?? null;
  },
  read: (tx, { id }) => readKey(tx, id),
  bump: (tx, row) => set(tx, row, { version: row.version + 1 }),
  owner: ({ organizationId }) => organizationId,
};

/**
 * How a key is revoked, together with its sign-in if it has one. The sign-in's row is locked before the key's, as in a
 * refresh.
 */
const endedKey: Changeable<KeyRow, StoredKey> = {
  ...changeableKey,
  async lock(tx, id) {
    const uuid = uuidOf(id, "key_");
    if (uuid !== null) await endRow(tx, uuid, await storeNow(tx));
    return changeableKey.lock(tx, id);
  },
};

const keyCredentials = credentialsOf("key", keySecrets, (tx, row: KeyRow, revokedAt) => set(tx, row, { revokedAt }));

const isInTeam = (team: string) =>
  sql`${apiKey.id} in (select s.subject_id from usage_subject s where s.team_id = ${team})`;

const isUnusedFor = (ms: number) =>
  sql`coalesce(${apiKey.lastUsedAt}, ${apiKey.createdAt}) <= store_now() - ${ms}::bigint * interval '1 ms'`;

const endsWithin = (ms: number) => sql`${keyLife.endsAt} <= store_now() + ${ms}::bigint * interval '1 ms'`;

/** Moves a key to another team, which may have other limits. */
async function move(tx: Transaction, { id, organizationId: owner }: KeyRow, team: string | null): Promise<string[]> {
  const isUnsummed = await setTeam(tx, { id, owner, team: team && bare(team, "team_") });
  const refreshed = await refreshLimits(tx, owner, [id]);
  return [...new Set([...(isUnsummed ? [id] : []), ...refreshed])];
}

/**
 * The reason why a key cannot be created in this organization, or null. The result stays valid until the commit: a
 * transaction that closes the organization waits.
 */
async function refusalOf(
  tx: Transaction,
  { owner, name, teamId }: { owner: string; name: string | null; teamId: string | null },
): Promise<"no_team" | "closed" | "name_taken" | null> {
  // The limits that a key inherits must not change before the key exists. The lock is not shared: two transactions that
  // shared it would wait for each other.
  const [row] = await tx.drizzle
    .select({ status: organization.status })
    .from(organization)
    .where(eq(organization.id, owner))
    .for("no key update");
  if (row?.status === "closed") return "closed";
  if (name !== null && (await isTaken(tx, owner, name))) return "name_taken";
  return (await mayJoin(tx, owner, teamId)) ? null : "no_team";
}

/**
 * Whether a key that is not revoked has this name. The organization is locked, so this stays valid until the commit.
 */
async function isTaken(tx: Transaction, owner: string, name: string): Promise<boolean> {
  const named = and(eq(apiKey.organizationId, owner), eq(apiKey.name, name), isNull(apiKey.revokedAt));
  const rows = await tx.drizzle.select({ id: apiKey.id }).from(apiKey).where(named).limit(1);
  return rows.length > 0;
}

async function set(tx: Transaction, { id }: KeyRow, values: Partial<KeyRow>): Promise<void> {
  if (Object.keys(values).length > 0) await tx.drizzle.update(apiKey).set(values).where(eq(apiKey.id, id));
}

/** Selects complete keys: their columns, and what is derived from other rows. */
const keysIn = (db: Pick<Transaction, "drizzle">) =>
  db.drizzle
    .select({
      ...getTableColumns(apiKey),
      id: idIn(apiKey.id, "key_"),
      organizationId: idIn(apiKey.organizationId, "org_"),
      personId: idIn(apiKey.personId, "per_"),
      person: nameOfPerson,
      organization: organization.slug,
      team: teamOfKey,
      ...keyLife,
      secrets: keySecrets.listed,
    })
    .from(apiKey)
    .innerJoin(organization, eq(organization.id, apiKey.organizationId))
    .leftJoin(person, eq(person.id, apiKey.personId));

const nameOfPerson = sql<string | null>`coalesce(${person.name}, ${person.email})`;

const teamOfKey = sql.raw(`(
  select json_build_object('id', ${shownId("t.id", "team_")}, 'name', t.name)
  from usage_subject s join team t on t.id = s.team_id where s.subject_id = api_key.id)`) as SQL<StoredKey["team"]>;

async function readKey(db: Transaction, uuid: string): Promise<StoredKey | null> {
  return (await keysIn(db).where(eq(apiKey.id, uuid)))[0] ?? null;
}

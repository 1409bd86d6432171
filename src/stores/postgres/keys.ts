/**
 * Administration of keys. A key keeps its id through rotations, each of which adds a secret. The older secrets work
 * until they are revoked, or until the end of the rotation's grace period.
 */
import { isDeepStrictEqual } from "node:util";
import { and, eq, gt, isNull, sql } from "drizzle-orm";
import { apiKey, organization } from "../../../db/schema.ts";
import type { Budget } from "../../core/store/budget.ts";
import type { Administration, Key, KeyChange, NewSecret } from "../../core/store/directory.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import { act, audit, repeated, storeNow, unrepeated } from "./acts.ts";
import { budgetShown, isLimited } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { keyLife } from "./key-life.ts";
import { announceChange } from "./revocations.ts";
import { type KeyRow, keyOf, type LivingKey, plainly } from "./rows.ts";
import { keySecrets } from "./secrets.ts";
import { endRow } from "./sign-ins.ts";
import { hasUsed } from "./standing.ts";
import { budgetNewKey, mayJoin } from "./teams.ts";

type Verbs = "createKey" | "updateKey" | "pageKeys" | "findKey" | "rotateKey" | "revokeKey";

export function keys(db: Database): Pick<Administration, Verbs> {
  return {
    createKey: (input) =>
      act(db, async (tx) => {
        const at = await storeNow(tx);
        const before = await repeated(tx, input.repeat, input.actor, input.id);
        if (before) return before;
        const id = bare(input.id, "key_");
        const owner = bare(input.organizationId, "org_");
        const { name, scopes, allowedModels, expiresAt, teamId, budget, labels, allowedAddresses } = input;
        const { personId = null } = input;
        const refusal = await refusalOf(tx, { owner, name: input.hasOwnName ? name : null, teamId, budget });
        if (refusal) {
          await unrepeated(tx, input.repeat, input.actor);
          return refusal;
        }
        const person = personId && bare(personId, "per_");
        await tx.drizzle.insert(apiKey).values({
          id,
          organizationId: owner,
          name,
          scopes,
          allowedModels,
          expiresAt,
          owner: input.owner,
          labels,
          allowedAddresses,
          personId: person,
          createdAt: at,
          createdBy: input.actor,
        });
        await keySecrets.add(tx, id, input.secret, at);
        await budgetNewKey(tx, { id, owner, teamId, budget, person, at });
        const details = {
          name,
          scopes,
          allowed_models: allowedModels,
          expires_at: expiresAt,
          ...(input.owner === null ? {} : { owner: input.owner }),
          ...(Object.keys(labels).length === 0 ? {} : { labels }),
          ...(allowedAddresses === null ? {} : { allowed_addresses: allowedAddresses }),
          ...(teamId === null ? {} : { team_id: teamId }),
          ...(personId === null ? {} : { person_id: personId }),
          ...(isLimited(budget) ? { limits: budgetShown(budget) } : {}),
          secret: masked(input.secret),
        };
        await announceChange(tx, input.id, input.secret.hash);
        await audit(tx, at, { actor: input.actor, action: "key.create", owner, subject: input.id, details });
        return (await readKey(tx, id))!;
      }),

    async pageKeys({ organizationId, personId, after, limit, state, kind = "key", unusedFor_ms, endsWithin_ms, over }) {
      const owner = organizationId === undefined ? undefined : bare(organizationId, "org_");
      const wanted = and(
        owner === undefined ? undefined : eq(apiKey.organizationId, owner),
        after === undefined ? undefined : gt(apiKey.id, uuidOf(after, "key_") ?? uuid_max),
        personId === undefined ? undefined : eq(apiKey.personId, bare(personId, "per_")),
        eq(apiKey.kind, kind),
        state === undefined ? undefined : eq(keyLife.state, state),
        unusedFor_ms === undefined ? undefined : isUnusedFor(unusedFor_ms),
        endsWithin_ms === undefined ? undefined : and(eq(keyLife.state, "active"), endsWithin(endsWithin_ms)),
        over === undefined ? undefined : hasUsed("key", apiKey.id, over, owner),
      );
      const page = living(db)
        .where(wanted)
        .orderBy(apiKey.id)
        .limit(limit + 1);
      const rows = await plainly(page);
      return { items: await plainly(withSecrets(db, rows.slice(0, limit))), hasMore: rows.length > limit };
    },

    async findKey(id) {
      const uuid = uuidOf(id, "key_");
      return uuid === null ? null : plainly(readKey(db, uuid));
    },

    updateKey: (id, change, actor, version) =>
      act(db, async (tx) => {
        const key = await lockKey(tx, id);
        if (!key) return null;
        if (typeof version === "number" && key.version !== version) return { stale: (await readKey(tx, key.id))! };
        const named = Object.keys(change) as (keyof KeyChange)[];
        const changed = named.filter((name) => !isDeepStrictEqual(key[name], change[name]));
        if (changed.length > 0) {
          const only = (of: KeyChange | KeyRow) => Object.fromEntries(changed.map((name) => [name, of[name]]));
          await set(tx, key, only(change));
          const details = { ...listed(only(change)), before: listed(only(key)) };
          await announceChange(tx, id);
          const entry = { actor, action: "key.update", owner: key.organizationId, subject: id, details };
          await audit(tx, await storeNow(tx), entry);
        }
        return readKey(tx, key.id);
      }),

    rotateKey: (input) =>
      act(db, async (tx) => {
        const key = await lockKey(tx, input.id);
        if (!key) return null;
        if (key.revokedAt) return "revoked";
        const at = await storeNow(tx);
        const { graceEndsAt } = input;
        if (graceEndsAt) await keySecrets.endAt(tx, key.id, graceEndsAt);
        await keySecrets.add(tx, key.id, input.secret, at);
        await set(tx, key, {});
        const details = { grace_ends_at: graceEndsAt, secret: masked(input.secret) };
        await announceChange(tx, input.id, input.secret.hash);
        const entry = {
          actor: input.actor,
          action: "key.rotate",
          owner: key.organizationId,
          subject: input.id,
          details,
        };
        await audit(tx, at, entry);
        return readKey(tx, key.id);
      }),

    revokeKey: (input) =>
      act(db, async (tx) => {
        const at = await storeNow(tx);
        // The row of a sign-in is locked before its key, as by its refresh.
        const uuid = uuidOf(input.id, "key_");
        if (uuid !== null && !input.old) await endRow(tx, uuid, at);
        const key = await lockKey(tx, input.id);
        if (!key) return null;
        const revoked = input.old ? await keySecrets.revokeReplaced(tx, key.id, at) : Number(key.revokedAt === null);
        if (revoked > 0) {
          await set(tx, key, input.old ? {} : { revokedAt: at });
          const action = input.old ? "key.revoke_old" : "key.revoke";
          const details = input.old ? { secrets: revoked } : {};
          await announceChange(tx, input.id);
          await audit(tx, at, { actor: input.actor, action, owner: key.organizationId, subject: input.id, details });
        }
        return readKey(tx, key.id);
      }),
  };
}

const isUnusedFor = (ms: number) =>
  sql`coalesce(${apiKey.lastUsedAt}, ${apiKey.createdAt}) <= store_now() - ${ms}::bigint * interval '1 ms'`;

const endsWithin = (ms: number) => sql`${keyLife.endsAt} <= store_now() + ${ms}::bigint * interval '1 ms'`;

/** Renames fields to the names that the audit log has. */
const listed = (of: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(of).map(([name, value]) => [name.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`), value]),
  );

/** The part of a secret that the audit log shows. */
export function masked({ prefix, suffix }: NewSecret): string {
  return `${prefix}…${suffix}`;
}

/** The key, locked until the commit, so that rotations and revocations of one key come one after another. */
async function lockKey(tx: Transaction, id: string): Promise<KeyRow | null> {
  const uuid = uuidOf(id, "key_");
  if (uuid === null) return null;
  const [row] = await tx.drizzle.select().from(apiKey).where(eq(apiKey.id, uuid)).for("update");
  return row ?? null;
}

/**
 * The reason why a key cannot be created in this organization, or null. The answer holds until the commit: a
 * transaction that closes the organization waits.
 */
async function refusalOf(
  tx: Transaction,
  { owner, name, teamId, budget }: { owner: string; name: string | null; teamId: string | null; budget: Budget },
): Promise<"no_team" | "closed" | "name_taken" | null> {
  // A limited key locks the row for update later. Two transactions that had shared the row before would then wait for
  // each other.
  const [row] = await tx.drizzle
    .select({ status: organization.status })
    .from(organization)
    .where(eq(organization.id, owner))
    .for(name !== null || teamId !== null || isLimited(budget) ? "update" : "key share");
  if (row?.status === "closed") return "closed";
  if (name !== null && (await isTaken(tx, owner, name))) return "name_taken";
  return (await mayJoin(tx, owner, teamId)) ? null : "no_team";
}

/** Whether a key that is not revoked has the name. The organization is locked, so the answer holds until the commit. */
async function isTaken(tx: Transaction, owner: string, name: string): Promise<boolean> {
  const named = and(eq(apiKey.organizationId, owner), eq(apiKey.name, name), isNull(apiKey.revokedAt));
  const rows = await tx.drizzle.select({ id: apiKey.id }).from(apiKey).where(named).limit(1);
  return rows.length > 0;
}

/** A change of a key that is locked. */
async function set(tx: Transaction, { id, version }: KeyRow, values: Partial<KeyRow>): Promise<void> {
  await tx.drizzle
    .update(apiKey)
    .set({ ...values, version: version + 1 })
    .where(eq(apiKey.id, id));
}

const living = (db: Pick<Transaction, "drizzle">) =>
  db.drizzle
    .select({ key: apiKey, ...keyLife })
    .from(apiKey)
    .innerJoin(organization, eq(organization.id, apiKey.organizationId));

async function readKey(db: Transaction, uuid: string): Promise<Key | null> {
  const rows = await living(db).where(eq(apiKey.id, uuid));
  return (await withSecrets(db, rows))[0] ?? null;
}

async function withSecrets(db: Transaction, keys: LivingKey[]): Promise<Key[]> {
  if (keys.length === 0) return [];
  const secrets = await keySecrets.of(
    db,
    keys.map(({ key }) => key.id),
  );
  return keys.map((one) => keyOf(one, secrets.get(one.key.id)!));
}

// Does in memory what src/stores/postgres/keys.ts does.

import { isDeepStrictEqual } from "node:util";
import type { Administration } from "../../../../src/admin/store/administration.ts";
import type { StoredKey } from "../../../../src/admin/store/key.ts";
import { audit, refreshLimits, saysAny, setTeam, setValue } from "./acts.ts";
import type { MemoryDatabase, MemoryTransaction } from "./memory.ts";
import { type KeyRow, type Reading, teamIn } from "./tables.ts";

type Verbs = "createKey" | "findKey" | "updateKey" | "rotateKey" | "revokeKey";
type Creation = Parameters<Administration["createKey"]>[0];

export function keys(db: MemoryDatabase): Pick<Administration, Verbs> {
  const { memory } = db;
  return {
    createKey: (input) =>
      db.transaction(async (tx) => {
        const { id, organizationId, teamId, limits, personId = null } = input;
        const refusal = await refusalOf(tx, input);
        if (refusal) return refusal;
        if (personId !== null) await tx.lock(personId, "key share");
        const row = newKey(input, tx.now);
        tx.set("keys", id, row);
        await tx.lock(organizationId, "no key update");
        if (teamId !== null || personId !== null) await setTeam(tx, { id, organizationId, teamId });
        const place = { subjectId: id, kind: "own", models: "" } as const;
        const own = { ...place, organizationId, limits, until: null, setAt: tx.now, setBy: input.actor };
        if (saysAny(limits)) setValue(tx, place, own);
        await refreshLimits(tx, organizationId, [id]);
        await audit(tx);
        return keyFrom(tx, row);
      }),

    async findKey(id) {
      await memory.scheduler.turn();
      const row = memory.get("keys", id);
      return row ? keyFrom(memory, row) : null;
    },

    updateKey: ({ id, version }, patch) =>
      db.transaction(async (tx) => {
        const row = await lockKey(tx, id);
        if (!row) return null;
        const now = keyFrom(tx, row);
        if (typeof version === "number" && row.version !== version) return { stale: now };
        const { organizationId } = row;
        const { teamId: before = null } = tx.get("subjects", id) ?? {};
        const { teamId = before, ...values } = patch(now);
        const isMoved = teamId !== before;
        const names = Object.keys(values) as (keyof typeof values)[];
        if (!isMoved && names.every((name) => isDeepStrictEqual(now[name], values[name]))) return now;
        if (isMoved && !(await mayJoin(tx, organizationId, teamId))) return "no_team";
        if (isMoved) {
          await setTeam(tx, { id, organizationId, teamId });
          await refreshLimits(tx, organizationId, [id]);
        }
        return changed(tx, row, values);
      }),

    rotateKey: ({ id }) =>
      db.transaction(async (tx) => {
        const row = await lockKey(tx, id);
        if (!row) return null;
        return row.revokedAt ? "revoked" : changed(tx, row, {});
      }),

    revokeKey: ({ id }) =>
      db.transaction(async (tx) => {
        const row = await lockKey(tx, id);
        if (!row) return null;
        if (row.revokedAt) return keyFrom(tx, row);
        return changed(tx, row, { revokedAt: tx.now, state: "revoked", endsAt: tx.now });
      }),
  };
}

/** Locks a key after its organization, as every act that changes a key does. */
export async function lockKey(tx: MemoryTransaction, id: string): Promise<KeyRow | null> {
  await tx.statement();
  const found = tx.get("keys", id);
  if (!found) return null;
  await tx.lock(found.organizationId, "no key update");
  await tx.lock(id);
  return tx.get("keys", id) ?? null;
}

/** Writes what an action changes in a key, and ends the action. */
async function changed(tx: MemoryTransaction, row: KeyRow, values: Partial<KeyRow>): Promise<StoredKey> {
  const now = { ...row, ...values, version: row.version + 1 };
  tx.set("keys", row.id, now);
  await audit(tx);
  return keyFrom(tx, now);
}

async function refusalOf(tx: MemoryTransaction, { organizationId, name, hasOwnName, teamId }: Creation) {
  await tx.lock(organizationId, "no key update");
  if (tx.get("organizations", organizationId)?.status === "closed") return "closed";
  const isNamed = (key: KeyRow) => key.organizationId === organizationId && key.name === name && !key.revokedAt;
  if (hasOwnName && tx.all("keys").some(isNamed)) return "name_taken";
  return (await mayJoin(tx, organizationId, teamId)) ? null : "no_team";
}

async function mayJoin(tx: MemoryTransaction, organizationId: string, teamId: string | null): Promise<boolean> {
  if (teamId === null) return true;
  await tx.lock(organizationId, "no key update");
  await tx.statement();
  return teamIn(tx, teamId)?.organizationId === organizationId;
}

function keyFrom(of: Reading, row: KeyRow): StoredKey {
  const { teamId = null } = of.get("subjects", row.id) ?? {};
  const team = teamId === null ? null : of.get("teams", teamId)!;
  const organization = of.get("organizations", row.organizationId)!.slug;
  const person = row.personId === null ? null : of.get("people", row.personId)!;
  return {
    ...row,
    organization,
    person: person && (person.name ?? person.email),
    team: team && { id: team.id, name: team.name },
  };
}

function newKey({ secret, actor, personId = null, ...input }: Creation, at: Date): KeyRow {
  const { teamId: _, limits: __, hasOwnName: ___, repeat: ____, ...given } = input;
  const { prefix, suffix } = secret;
  return {
    ...given,
    kind: "key",
    personId,
    createdAt: at,
    createdBy: actor,
    revokedAt: null,
    lastUsedAt: null,
    lastUsedFrom: null,
    state: "active",
    endsAt: given.expiresAt,
    version: 1,
    secrets: [{ prefix, suffix, createdAt: at, expiresAt: null, revokedAt: null }],
  };
}

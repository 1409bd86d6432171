// src/stores/postgres/keys.ts and src/stores/postgres/raises.ts in memory.

import { isDeepStrictEqual } from "node:util";
import type { Administration, Key, KeyChange } from "../../../../src/core/store/directory.ts";
import type { Raise } from "../../../../src/core/store/raise.ts";
import { audit, isLimited, limitsChanged, setSubject } from "./acts.ts";
import type { MemoryDatabase, MemoryTransaction } from "./memory.ts";
import { memberId, type Reading, teamIn } from "./tables.ts";

type Verbs = "createKey" | "findKey" | "updateKey" | "rotateKey" | "revokeKey";
type Creation = Parameters<Administration["createKey"]>[0];

export function keys(db: MemoryDatabase): Pick<Administration, Verbs> {
  const { memory } = db;
  return {
    createKey: (input) =>
      db.transaction(async (tx) => {
        const { id, organizationId, teamId, budget, personId = null } = input;
        const refusal = await refusalOf(tx, input);
        if (refusal) return refusal;
        if (personId !== null) await tx.lock(personId, "key share");
        tx.set("keys", id, keyFrom(input, tx.now));
        if (teamId !== null || isLimited(budget) || personId !== null) {
          await tx.lock(organizationId, "no key update");
          await setSubject(tx, { id, organizationId, teamId, budget });
        }
        await audit(tx);
        return tx.get("keys", id)!;
      }),

    async findKey(id) {
      await memory.scheduler.turn();
      return memory.get("keys", id) ?? null;
    },

    updateKey: (id, change, _, version) =>
      db.transaction(async (tx) => {
        const key = await lockKey(tx, id);
        if (!key) return null;
        if (typeof version === "number" && key.version !== version) return { stale: key };
        const names = Object.keys(change) as (keyof KeyChange)[];
        if (names.some((name) => !isDeepStrictEqual(key[name], change[name]))) {
          set(tx, key, change);
          await audit(tx);
        }
        return tx.get("keys", id)!;
      }),

    rotateKey: ({ id }) =>
      db.transaction(async (tx) => {
        const key = await lockKey(tx, id);
        if (!key) return null;
        if (key.revokedAt) return "revoked";
        set(tx, key, {});
        await audit(tx);
        return tx.get("keys", id)!;
      }),

    revokeKey: ({ id }) =>
      db.transaction(async (tx) => {
        const key = await lockKey(tx, id);
        if (!key) return null;
        if (!key.revokedAt) {
          set(tx, key, { revokedAt: tx.now, state: "revoked", endsAt: tx.now });
          await audit(tx);
        }
        return tx.get("keys", id)!;
      }),
  };
}

export function raises(db: MemoryDatabase): Pick<Administration, "raises" | "setRaise" | "memberId"> {
  const { memory } = db;
  return {
    raises: async (ids) => {
      const found = ids.map((id) => [id, raiseIn(memory, id)] as const);
      return new Map(found.filter((one): one is [string, Raise] => one[1] !== null));
    },

    setRaise: ({ id, organizationId }, raise, actor) =>
      db.transaction(async (tx) => {
        await tx.lock(organizationId, "no key update");
        if (tx.get("organizations", organizationId)?.status === "closed") return "closed";
        if (raise === null && raiseIn(tx, id) === null) return "none";
        if (raise && raise.until <= tx.now) return "past";
        const set = raise && { ...raise, setAt: tx.now, setBy: actor };
        tx.set("raises", id, set);
        await limitsChanged(tx);
        await audit(tx);
        return set ?? "ended";
      }),

    memberId: async (organizationId, personId) => memberId(organizationId, personId),
  };
}

function raiseIn(of: Reading, id: string): Raise | null {
  const raise = of.get("raises", id);
  return raise && raise.until > of.now ? raise : null;
}

async function lockKey(tx: MemoryTransaction, id: string): Promise<Key | null> {
  await tx.lock(id);
  return tx.get("keys", id) ?? null;
}

const set = (tx: MemoryTransaction, key: Key, values: Partial<Key>) =>
  tx.set("keys", key.id, { ...key, ...values, version: key.version + 1 });

async function refusalOf(tx: MemoryTransaction, { organizationId, name, hasOwnName, teamId, budget }: Creation) {
  const isChanged = hasOwnName || teamId !== null || isLimited(budget);
  await tx.lock(organizationId, isChanged ? "update" : "key share");
  if (tx.get("organizations", organizationId)?.status === "closed") return "closed";
  const isNamed = (key: Key) => key.organizationId === organizationId && key.name === name && !key.revokedAt;
  if (hasOwnName && tx.all("keys").some(isNamed)) return "name_taken";
  if (teamId === null) return null;
  await tx.lock(organizationId, "no key update");
  return teamIn(tx, teamId)?.organizationId === organizationId ? null : "no_team";
}

function keyFrom({ secret, actor, personId = null, ...input }: Creation, at: Date): Key {
  const { teamId: _, budget: __, hasOwnName: ___, repeat: ____, ...given } = input;
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

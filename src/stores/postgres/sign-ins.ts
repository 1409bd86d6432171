/**
 * Sign-ins of devices over SQL. Each act locks the row of its sign-in first, so that acts on one sign-in run one after
 * another.
 */

import { eq } from "drizzle-orm";
import { apiKey, signIn } from "../../../db/schema.ts";
import type { Scope } from "../../core/store/directory.ts";
import { bare, idOf } from "../../core/store/ids.ts";
import type { NewAccessToken, NewSignIn, Refreshed, SignIns } from "../../features/identity/store/sign-ins.ts";
import { appendAuditEntry, storeNow, transact } from "./acts.ts";
import { endedBy } from "./browser-sessions.ts";
import { sumAll } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { followMembership, teamOfMember } from "./members.ts";
import { lockPerson } from "./person.ts";
import { addRefreshToken, addSuccessor, beginRefresh } from "./refresh-tokens.ts";
import { announceChange } from "./revocations.ts";
import { keySecrets } from "./secrets.ts";
import { countNewKey } from "./teams.ts";

export function signIns(db: Database): SignIns {
  return {
    begin: (input) => transact(db, (tx) => begin(tx, input)),
    beginRefresh: (hash, times) =>
      transact(db, async (tx) => {
        const begun = await beginRefresh(tx, hash, times);
        if (begun.is === "reused") await end(tx, begun.keyId, "refresh_token_reused");
        return begun.is === "reused" ? { is: "reused" as const } : begun;
      }),
    async completeRefresh(refreshed) {
      const { isDone, unsummed } = await transact(db, (tx) => complete(tx, refreshed));
      await sumAll(db, unsummed);
      return isDone;
    },
    async releaseRefresh(keyId, claim) {
      await db.query(
        "update sign_in set refreshing_by = null, refreshing_until = null where key_id = $1 and refreshing_by = $2",
        [bare(keyId, "key_"), claim],
      );
    },
    addAccessToken: (keyId, access) =>
      transact(db, async (tx) => {
        const id = bare(keyId, "key_");
        const [key] = await tx.query<{ scopes: Scope[] }>(
          "select scopes from api_key where id = $1 and revoked_at is null for no key update",
          [id],
        );
        if (key) await addAccess(tx, id, access, await storeNow(tx));
        return key?.scopes ?? null;
      }),
    endAccessToken: (hash) =>
      transact(db, async (tx) => {
        const [row] = await tx.query<{ id: string }>(
          `update key_secret s set revoked_at = store_now() from api_key k
           where s.hash = $1 and s.revoked_at is null and k.id = s.key_id and k.kind = 'jwt' returning k.id`,
          [hash],
        );
        if (row) await announceChange(tx, idOf(row.id, "key_"));
        return row !== undefined;
      }),
    end: (keyId, why) => transact(db, (tx) => end(tx, bare(keyId, "key_"), why)),
    async ofToken(hash) {
      const [row] = await db.query<{ id: string }>(
        `select s.key_id as id from sign_in s where s.key_id in (
           select key_id from refresh_token where hash = $1 union all select key_id from key_secret where hash = $1)`,
        [hash],
      );
      return row ? idOf(row.id, "key_") : null;
    },
    endAtIssuer: (ended, why) =>
      transact(db, async (tx) => {
        const { condition, values } = endedBy(ended);
        const rows = await tx.query<{ id: string }>(
          `select key_id as id from sign_in where ${condition} and ended_at is null order by key_id for update`,
          values,
        );
        for (const { id } of rows) await end(tx, id, why);
        return rows.length + ("personId" in ended ? await endWorkloads(tx, values[0]!) : 0);
      }),
    async forget() {
      const access = await db.query(
        `delete from key_secret k using api_key a
         where a.id = k.key_id and a.kind <> 'key' and k.expires_at < store_now() - interval '1 day' returning k.number`,
      );
      const refresh = await db.query(
        `delete from refresh_token t using sign_in s where s.key_id = t.key_id
           and (t.used_at < store_now() - interval '30 days' or least(s.ended_at, s.ends_at) < store_now() - interval '30 days')
         returning t.created_at`,
      );
      return access.length + refresh.length;
    },
  };
}

async function begin(tx: Transaction, input: NewSignIn): Promise<"begun" | "gone"> {
  const person = await lockPerson(tx, input.personId);
  const owner = bare(input.organizationId, "org_");
  const [organization] = await tx.query(
    "select id from organization where id = $1 and status <> 'closed' for no key update",
    [owner],
  );
  const team = person && organization ? await teamOfMember(tx, owner, person.id) : "no_membership";
  if (!person || team === "no_membership") return "gone";
  const { keyId, agent, scopes, models, issuer, issuerSession, tokens, lasts_ms, address } = input;
  const teamId = team === null ? null : idOf(team, "team_");
  const id = bare(keyId, "key_");
  const at = await storeNow(tx);
  await tx.drizzle.insert(apiKey).values({
    id,
    organizationId: owner,
    name: agent.slice(0, 100) || "sign-in",
    scopes: [...scopes],
    models: models === null ? null : [...models],
    kind: "sign-in",
    personId: person.id,
    createdAt: at,
    createdBy: `person:${input.personId}`,
  });
  const endsAt = lasts_ms === null ? null : new Date(at.getTime() + lasts_ms);
  await tx.drizzle
    .insert(signIn)
    .values({ keyId: id, personId: person.id, issuer, issuerSession, tokens, agent, address, createdAt: at, endsAt });
  await addRefreshToken(tx, id, input.refreshHash, at);
  await countNewKey(tx, { id, owner, teamId, person: person.id, at });
  await addAccess(tx, id, input.access, at);
  const details = { person_id: input.personId, agent, address, ...(teamId === null ? {} : { team_id: teamId }) };
  await appendAuditEntry(tx, at, {
    actor: `person:${input.personId}`,
    action: "person.sign_in",
    owner,
    subject: keyId,
    details,
  });
  return "begun";
}

async function addAccess(tx: Transaction, id: string, { secret, lasts_ms }: NewAccessToken, at: Date): Promise<void> {
  await keySecrets.add(tx, id, secret, at, new Date(at.getTime() + lasts_ms));
  await announceChange(tx, idOf(id, "key_"), secret.hash);
}

const notDone = { isDone: false, unsummed: [] as string[] };

async function complete(tx: Transaction, refreshed: Refreshed) {
  const id = bare(refreshed.keyId, "key_");
  const [row] = await tx.query<{ tokens: Uint8Array | null; owner: string; person: string }>(
    `select s.tokens, k.organization_id as owner, s.person_id as person from sign_in s join api_key k on k.id = s.key_id
     where s.key_id = $1 and s.refreshing_by = $2 and s.ended_at is null and k.revoked_at is null for update of s`,
    [id, refreshed.claim],
  );
  if (!row) return notDone;
  const at = await storeNow(tx);
  if (!(await addSuccessor(tx, id, refreshed, at))) return notDone;
  const { tokens = row.tokens, rights } = refreshed;
  await tx.query("update sign_in set refreshing_by = null, refreshing_until = null, tokens = $2 where key_id = $1", [
    id,
    tokens,
  ]);
  const unsummed = await followMembership(tx, { ...row, id });
  await tx.drizzle
    .update(apiKey)
    .set({ scopes: [...rights.scopes], models: rights.models === null ? null : [...rights.models] })
    .where(eq(apiKey.id, id));
  await addAccess(tx, id, refreshed.access, at);
  return { isDone: true, unsummed };
}

/** Ends a sign-in. `id`: the bare UUID of its key. */
async function end(tx: Transaction, id: string, why: string): Promise<boolean> {
  const at = await storeNow(tx);
  const row = await endRow(tx, id, at);
  if (!row) return false;
  const keyId = idOf(id, "key_");
  await tx.query("update api_key set revoked_at = $2, version = version + 1 where id = $1 and revoked_at is null", [
    id,
    at,
  ]);
  await announceChange(tx, keyId);
  const details = { person_id: idOf(row.personId, "per_"), why };
  await appendAuditEntry(tx, at, {
    actor: "service",
    action: "person.sign_out",
    owner: row.owner,
    subject: keyId,
    details,
  });
  return true;
}

/**
 * Ends a sign-in, whose key the caller then revokes. Returns null if the key has no sign-in, or one that has ended
 * already.
 */
export async function endRow(tx: Transaction, id: string, at: Date) {
  const [row] = await tx.query<{ owner: string; personId: string }>(
    `update sign_in s set ended_at = $2, tokens = null, refreshing_by = null from api_key k
     where s.key_id = $1 and k.id = s.key_id and s.ended_at is null
     returning k.organization_id as owner, s.person_id as "personId"`,
    [id, at],
  );
  return row ?? null;
}

/** Ends the access tokens of a person's workloads. The person's `not_before` ends identity tokens. */
async function endWorkloads(tx: Transaction, personId: string): Promise<number> {
  const rows = await tx.query<{ id: string }>(
    `update key_secret s set revoked_at = store_now() from api_key k
     where k.person_id = $1 and k.kind = 'jwt' and s.key_id = k.id and s.prefix like 'slt%' and s.revoked_at is null
       and s.expires_at > store_now()
     returning k.id`,
    [personId],
  );
  for (const { id } of rows) await announceChange(tx, idOf(id, "key_"));
  return rows.length;
}

/**
 * The key that stands for a person's identity tokens in an organization, over SQL. Its hash is not the hash of any
 * key's text, so nobody can send it.
 */
import { and, eq, isNull } from "drizzle-orm";
import { apiKey } from "../../../db/schema.ts";
import { scopes } from "../../core/store/directory.ts";
import { bare, idOf } from "../../core/store/ids.ts";
import type { People, TokenKey } from "../../features/identity/store/people.ts";
import { appendAuditEntry, storeNow } from "./acts.ts";
import type { Transaction } from "./database.ts";
import { followMembership, teamOfMember } from "./members.ts";
import { organizationNamed } from "./memberships.ts";
import { lockPerson } from "./person.ts";
import { announceChange } from "./revocations.ts";
import { keySecrets } from "./secrets.ts";
import { countNewKey } from "./teams.ts";

type TokenKeyInput = Parameters<People["tokenKey"]>[0];

/** Finds the key, or creates it. `unsummed`: the subjects for which `sumAll` must follow. */
export async function tokenKey(
  tx: Transaction,
  input: TokenKeyInput,
): Promise<(TokenKey & { unsummed: string[] }) | null> {
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

/** The hashed text does not have the form of a key, so no credential in a request has this hash. */
const secretHashOf = (keyId: string) => Bun.SHA256.hash(`identity tokens of ${idOf(keyId, "key_")}`) as Uint8Array;

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
  await appendAuditEntry(tx, at, { actor: "service", action: "key.create", owner, subject: keyId, details });
  return id;
}

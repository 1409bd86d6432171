// Sets limits for models as management does, for every kind of subject that can have them.

import { newKey as newSecret, secretOf } from "../../../src/core/auth/credential.ts";
import { noBudget } from "../../../src/core/store/budget.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare } from "../../../src/core/store/ids.ts";
import type { SubjectReading, UsageLimits } from "../../../src/core/store/ledger.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { sumEarlier } from "../../../src/stores/postgres/budgets.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { setSubject } from "../../harness/limits.ts";
import { newMember } from "../../harness/members.ts";
import { newHex, type Store } from "./ledger-stores.ts";
import { unrestricted } from "./new-key.ts";

export type Whose = SubjectReading["subject"];
export const whose: readonly Whose[] = ["key", "person", "team", "organization"];

/** An organization with one key. */
export interface House {
  organization: string;
  key: string;
  /** The UUIDs by which limits refer to the key, person, team and organization. */
  ids: Record<Whose, string>;
}

/** Makes an organization whose key belongs to a person and is in a team. */
export async function house(store: Store, extra?: { enabled: boolean; capNanos: number | null }): Promise<House> {
  const organization = await store.newOrganization(extra ? { extra } : {});
  const key = `key_${newHex()}`;
  await newKeyOf(store, organization, key, await newMember(store.db, newHex(), { organization }));
  const uuids = { organization: bare(organization, "org_"), key: bare(key, "key_"), team: Bun.randomUUIDv7() };
  await store.db.transaction((tx) =>
    setSubject(tx, { id: uuids.key, organization: uuids.organization, team: uuids.team, budget: noBudget }),
  );
  const member = "select member_id as id from usage_subject where subject_id = $1";
  const [row] = await store.db.query<{ id: string }>(member, [uuids.key]);
  return { organization, key, ids: { ...uuids, person: row!.id } };
}

/** Sets a subject's limits for a pattern of models. Returns the UUID of the subject for that pattern. */
export async function limitModels(
  db: Database,
  organization: string,
  parent: string,
  pattern: string,
  limits: Partial<UsageLimits>,
): Promise<string> {
  const { session = null, week = null, month = null, concurrentRequests = null } = limits;
  const [row] = await db.query<{ id: string; unsummed: boolean }>(
    "select usage_models_subject($1, $2) as id, usage_set_models_subject($1, $2, $3, $4) as unsummed",
    [parent, pattern, organization, [session, week, month, concurrentRequests]],
  );
  if (row!.unsummed) await sumEarlier(db, row!.id);
  return row!.id;
}

export async function newKeyOf(
  store: Store,
  organizationId: string,
  id: string,
  personId: string | null,
): Promise<void> {
  const secret = secretOf(newSecret(crypto.getRandomValues(new Uint8Array(64))));
  await administration(store.db).createKey({
    ...{ ...unrestricted, id, organizationId, name: id, scopes: [...scopes], personId, secret, actor: "cli:test" },
  });
}

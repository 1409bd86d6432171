// Sets limits for models as management does, for every kind of subject that can have them.

import { bare } from "../../../src/core/store/ids.ts";
import type { SubjectReading, UsageLimits } from "../../../src/core/store/ledger.ts";
import { sumEarlier } from "../../../src/stores/postgres/budgets.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { newMember } from "../../harness/members.ts";
import { newHex, type Store } from "./ledger-stores.ts";
import { addKey } from "./made.ts";
import { setBudget } from "./subject-limits.ts";

export type Whose = SubjectReading["subject"];
export const whose: readonly Whose[] = ["key", "person", "team", "organization"];

/** An organization with one key, which belongs to a person and is in a team. */
export interface House {
  organization: string;
  key: string;
  /** The UUIDs by which limits refer to the key, person, team and organization. */
  ids: Record<Whose, string>;
}

/** Makes an organization whose key belongs to a person and is in a team. */
export async function house(store: Store, extra?: { enabled: boolean; capNanos: number | null }): Promise<House> {
  const organization = await store.newOrganization(extra ? { extra } : {});
  const personId = await newMember(store.db, newHex(), { organization });
  const { id: key } = await addKey(store.db, organization, { personId });
  const uuids = { organization: bare(organization, "org_"), key: bare(key, "key_"), team: Bun.randomUUIDv7() };
  await setBudget(store.db, organization, key, {}, uuids.team);
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
  await db.query("select usage_limits_changed(array[$1::uuid])", [parent]);
  if (row!.unsummed) await sumEarlier(db, row!.id);
  return row!.id;
}

// Organizations, teams and keys, made in a database as an administrator makes them.

import { noBudget } from "../../../src/admin/store/budget.ts";
import type { StoredKey } from "../../../src/admin/store/key.ts";
import type { Organization } from "../../../src/admin/store/organization.ts";
import type { StoredTeam } from "../../../src/admin/store/team.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { newSecret, unrestricted } from "./new-key.ts";

type Acts = ReturnType<typeof administration>;
type Fields<Act extends "createOrganization" | "createTeam" | "createKey"> = Partial<Parameters<Acts[Act]>[0]>;

const actor = "cli:ann";

/** The object that was made. Throws if making it was refused, or if it had been made before. */
function madeOf<Made extends object>(answer: Made | string | { repeated: unknown }): Made {
  if (typeof answer === "string" || "repeated" in answer) throw new Error(`refused: ${JSON.stringify(answer)}`);
  return answer;
}

export async function addOrganization(db: Database, fields: Fields<"createOrganization"> = {}): Promise<Organization> {
  const id = idOf(Bun.randomUUIDv7(), "org_");
  const input = { id, slug: id.slice(4), name: "Acme", plan: null, actor, ...fields };
  return madeOf<Organization>(await administration(db).createOrganization(input));
}

export async function addTeam(
  db: Database,
  organizationId: string,
  fields: Fields<"createTeam"> = {},
): Promise<StoredTeam> {
  const id = idOf(Bun.randomUUIDv7(), "team_");
  const input = { id, organizationId, name: id, limits: noBudget, actor, ...fields };
  return madeOf<StoredTeam>(await administration(db).createTeam(input));
}

/** Adds a key that may do everything, unless `fields` say otherwise. */
export async function addKey(
  db: Database,
  organizationId: string,
  fields: Fields<"createKey"> = {},
): Promise<StoredKey> {
  const id = idOf(Bun.randomUUIDv7(), "key_");
  const rights = { ...unrestricted, scopes: [...scopes] };
  const input = { ...rights, id, organizationId, name: "app", secret: newSecret(), actor, ...fields };
  return madeOf<StoredKey>(await administration(db).createKey(input));
}

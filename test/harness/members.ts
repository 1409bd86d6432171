/** Creates people known by an issuer who are members of an organization, for tests that need no sign-in. */

import { scopes } from "../../src/core/store/directory.ts";
import { idOf } from "../../src/core/store/ids.ts";
import type { Database } from "../../src/stores/postgres/database.ts";
import { people } from "../../src/stores/postgres/people.ts";

export const issuer = "https://login.example";

/** The organization and team in which a person is a member: the organization by slug or ID, the team by name or ID. */
export interface Place {
  organization: string;
  team?: string | null;
}

/** Creates a member, whom the issuer knows by the same name, and returns the person's ID. */
export async function newMember(db: Database, name: string, { organization, team = null }: Place): Promise<string> {
  const membership = { organization, team, role: "member", scopes, models: null } as const;
  const person = await people(db).confirm({
    ...{ id: idOf(Bun.randomUUIDv7(), "per_"), issuer, subject: name, kind: "person", name, groups: [] },
    ...{ email: `${name}@example.com`, isEmailVerified: true, memberships: [membership] },
  });
  return person.id;
}

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
export function newMember(db: Database, name: string, { organization, team = null }: Place): Promise<string> {
  const membership = { organization, team, role: "member", scopes, models: null } as const;
  return cameIn(db, { subject: name, memberships: [membership] });
}

/** What an issuer and the rules say of a person. */
export type Said = Parameters<ReturnType<typeof people>["confirm"]>[0];

/** Confirms a person as at a sign-in, and returns the person's ID. By default, the person has no membership. */
export async function cameIn(db: Database, said: Partial<Said> & Pick<Said, "subject">): Promise<string> {
  const { subject } = said;
  const person = await people(db).confirm({
    ...{ id: idOf(Bun.randomUUIDv7(), "per_"), issuer, kind: "person", name: subject, groups: [] },
    ...{ email: `${subject}@example.com`, isEmailVerified: true, memberships: [] },
    ...said,
  });
  return person.id;
}

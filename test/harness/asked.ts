// Fixtures for tests of the verbs that approve or end limit requests (a person asks for a higher limit) and
// invitations.

import { idOf } from "../../src/core/store/ids.ts";
import { administrationStores } from "../../src/stores/postgres/administration.ts";
import type { Database } from "../../src/stores/postgres/database.ts";

interface Whose {
  organizationId: string;
  personId: string;
  /** The email address that is invited. An organization cannot invite the same address twice. */
  email: string;
}

/**
 * Creates a person's request for a higher limit, and an invitation. Returns their IDs. The key of each ID is the first
 * segment of the path of its verbs, such as `/limit-requests/{id}`.
 */
export async function leaveAsked(
  db: Database,
  { organizationId, personId, email }: Whose,
): Promise<{ "limit-requests": string; invitations: string }> {
  const stores = administrationStores(db);
  const asked = {
    id: idOf(Bun.randomUUIDv7(), "lreq_"),
    personId,
    organizationId,
    models: "",
    limit: "month",
  } as const;
  await stores.limitRequests.openLimitRequest(
    { ...asked, subject: "person", subjectId: personId, value: 1, asked: null, message: "More", requestId: null },
    { actor: `person:${personId}`, details: {} },
  );
  const invited = { id: idOf(Bun.randomUUIDv7(), "inv_"), organizationId, teamId: null, role: "member" } as const;
  await stores.invitations.createInvitation(
    { ...invited, issuer: "https://login.example", email, limits: null },
    "cli:test",
  );
  return { "limit-requests": asked.id, invitations: invited.id };
}

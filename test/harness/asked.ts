// People's requests for a higher limit, and invitations, left in a database for tests of the verbs about them.

import { idOf } from "../../src/core/store/ids.ts";
import { administrationStores } from "../../src/stores/postgres/administration.ts";
import type { Database } from "../../src/stores/postgres/database.ts";

interface Whose {
  organizationId: string;
  personId: string;
  /** The address that is invited: an organization does not invite the same address twice. */
  email: string;
}

/**
 * Makes a person's request for a higher limit, and an invitation. Returns their ids, each under the path of the verbs
 * that show it.
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

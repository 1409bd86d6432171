/** Finds the key with which an administrator tries a model. A person without such a key gets one at the first try. */
import type { Trying } from "../admin/http/gate.ts";
import type { Caller } from "../admin/management/caller.ts";
import type { ManagementContext } from "../admin/management/context.ts";
import { ManagementError } from "../admin/management/error.ts";
import type { Authenticator } from "../core/auth/authenticate.ts";
import { idOf } from "../core/store/ids.ts";
import type { Database } from "../stores/postgres/database.ts";
import { people } from "../stores/postgres/people.ts";
import { newestSecret } from "../stores/postgres/secrets.ts";

interface TryingDependencies {
  database: Database;
  authenticateSecret: Authenticator["authenticateSecret"];
  contextFor(who: { caller: Caller; address: string; repeatKey: null }): ManagementContext;
}

export function trying({ database, authenticateSecret, contextFor }: TryingDependencies): Trying {
  return {
    async principalFor(caller, keyId, address) {
      const context = contextFor({ caller, address, repeatKey: null });
      const hash = keyId === null ? await ownSecret(database, caller) : await secretOf(database, context, keyId);
      return authenticateSecret(hash, address);
    },
  };
}

async function secretOf(database: Database, { keyFor }: ManagementContext, keyId: string): Promise<Uint8Array> {
  const { id } = await keyFor(keyId, "try");
  const hash = await newestSecret(database, id);
  if (hash === null) throw new ManagementError(`The key ${id} has no secret that works. Rotate it.`, "wrong_state");
  return hash;
}

/** Returns the secret of the key that stands for the person's identity tokens. No list shows that key. */
async function ownSecret(database: Database, { noted, within }: Caller): Promise<Uint8Array> {
  const all = people(database);
  const found = "person" in noted ? await all.findPerson(noted.person) : null;
  const membership = found?.memberships.find(
    ({ organizationId }) => organizationId !== null && organizationId === within,
  );
  if (!found || !membership?.organizationId)
    throw new ManagementError(
      "Name a key: '?key=key_…'. Only members of an organization try a model without one.",
      "missing_field",
    );
  const key = await all.tokenKey({
    id: idOf(Bun.randomUUIDv7(), "key_"),
    personId: found.id,
    organization: membership.organizationId,
  });
  if (!key) throw new ManagementError("The organization is gone, or your membership in it.", "resource_not_found");
  return key.secretHash;
}

/** Credential, organization and scope, in that order; the log learns who it was. Throws Fault 401, 403 or 503. */
import { type Principal, requireScope, Suspended } from "../auth/authenticate.ts";
import type { Scope } from "../store/directory.ts";
import type { Call } from "./call.ts";
import type { House } from "./house.ts";

export async function admitted(house: House, call: Call, scope: Scope): Promise<Principal> {
  const principal = await caller(house, call);
  requireScope(principal, scope);
  return principal;
}

/** Whoever holds a valid key, whatever its scopes. */
export async function caller(house: House, call: Call): Promise<Principal> {
  try {
    const principal = await house.authenticate(call.request.headers);
    Object.assign(call.notes, { organization: principal.organization.id, key: principal.key.id });
    return principal;
  } catch (thrown) {
    if (thrown instanceof Suspended) {
      Object.assign(call.notes, { organization: thrown.organizationId, key: thrown.keyId });
    }
    throw thrown;
  }
}

/** Credential, organization and scope, in that order; the log learns who it was. Throws Fault 401, 403 or 503. */
import { type Principal, requireScope } from "../auth/authenticate.ts";
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
  const principal = await house.authenticate(call.request.headers);
  call.notes.organization = principal.organization.id;
  call.notes.key = principal.key.id;
  return principal;
}

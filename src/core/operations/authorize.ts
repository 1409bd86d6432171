/**
 * Checks credential, organization and scope, in this order, and records the caller for the log. Throws Fault 401, 403,
 * 429 or 503.
 */
import { requireScope } from "../auth/authenticate.ts";
import { AddressNotAllowed, type Principal, Suspended } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import { Fault } from "../inference/fault.ts";
import type { Dependencies } from "./dependencies.ts";
import type { RequiredScope } from "./operation.ts";

/** `any`: any valid key will do, whatever its scopes. */
export async function authorize(
  dependencies: Dependencies,
  call: Call,
  scope: NonNullable<RequiredScope>,
): Promise<Principal> {
  let principal: Principal;
  try {
    principal = await dependencies.authenticate(call.request.headers, call.client);
  } catch (thrown) {
    if (thrown instanceof Suspended || thrown instanceof AddressNotAllowed) {
      call.identified({ organization: thrown.organizationId, key: thrown.keyId });
    }
    if (thrown instanceof Fault) dependencies.metrics.unauthenticated(thrown.code);
    throw thrown;
  }
  call.identified({ organization: principal.organization.id, key: principal.key.id });
  if (scope !== "any") requireScope(principal, scope);
  return principal;
}

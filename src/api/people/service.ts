/** What people and their devices call on the port of the service. */
import type { IdentityParts } from "../../identity/identity.ts";
import type { Operation } from "../operation.ts";
import { backchannelLogout } from "./leave.ts";

export function serviceOperations(parts: IdentityParts): Operation[] {
  return [backchannelLogout(parts)];
}

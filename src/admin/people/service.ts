/** The endpoints for people and their devices on the service's port. */

import type { Operation } from "../../core/operations/operation.ts";
import type { IdentityParts } from "../../features/identity/identity.ts";
import type { ManagementEntrance } from "../http/gate.ts";
import { managedSettings } from "./claude-code/settings.ts";
import { oauthUsage } from "./claude-code/usage.ts";
import { deviceOperations } from "./device.ts";
import { backchannelLogout } from "./leave.ts";
import { askForMore } from "./limit-requests.ts";
import { oauthOperations } from "./oauth.ts";

export function serviceOperations(parts: IdentityParts, contextFor: ManagementEntrance["contextFor"]): Operation[] {
  return [
    ...oauthOperations(parts),
    ...deviceOperations(parts),
    backchannelLogout(parts),
    managedSettings(parts),
    oauthUsage,
    askForMore(contextFor),
  ];
}

/** Receives an issuer's notification that a person has signed out (OpenID Connect Back-Channel Logout). */

import { json } from "../../core/http/json.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { notThere, unlisted } from "../../core/operations/unlisted.ts";
import { type IdentityParts, NotConfigured } from "../../features/identity/identity.ts";
import { IssuerAway, IssuerRefused } from "../../features/identity/issuer-clients.ts";
import { leave } from "../../features/identity/sessions.ts";
import { bounded } from "./bounded.ts";
import { readFields } from "./form.ts";

export function backchannelLogout(parts: IdentityParts): Operation {
  return unlisted({
    id: "backchannelLogout",
    method: "post",
    path: "/oauth/backchannel-logout",
    async handle({ log }, call) {
      const token = (await readFields(call)).get("logout_token") ?? "";
      try {
        const { sessions, signIns } = await bounded(parts, call, () => leave(parts, token));
        log.event("info", "issuer_logout", { request_id: call.requestId, sessions, sign_ins: signIns });
        return json(200, {});
      } catch (thrown) {
        if (thrown instanceof NotConfigured) throw notThere(call);
        if (!(thrown instanceof IssuerRefused || thrown instanceof IssuerAway)) throw thrown;
        log.event("warn", "issuer_logout_refused", { request_id: call.requestId, cause: thrown.message });
        // The message is the same for all causes, so that a sender of forged tokens learns nothing.
        return thrown instanceof IssuerAway
          ? json(
              503,
              { error: "temporarily_unavailable", error_description: "Send it again later." },
              { "retry-after": "5" },
            )
          : json(400, { error: "invalid_request", error_description: "This is no logout token for this service." });
      }
    },
  });
}

/** Limits how many invalid codes, tokens, cookies and issuer responses one client address may send. */
import type { Call } from "../../core/http/call.ts";
import { Fault } from "../../core/inference/fault.ts";
import type { IdentityParts } from "../../features/identity/identity.ts";
import { IssuerRefused } from "../../features/identity/issuer-clients.ts";
import { type CurrentSession, currentSession } from "../../features/identity/sessions.ts";
import { TokenRefused } from "../../features/identity/tokens.ts";
import { cookieIn } from "./cookies.ts";
import type { Visit } from "./place.ts";

/**
 * Runs the check. A result that is false or null counts as a failure of the client's address. Throws SlowRefusal if the
 * address has had too many failures.
 */
export async function bounded<Answer>(
  { unknown }: Pick<IdentityParts, "unknown">,
  { client }: Call,
  check: () => Promise<Answer>,
): Promise<Answer> {
  const place = await unknown.enter(client);
  let isValid = true;
  try {
    const answer = await check();
    isValid = answer !== false && answer !== null;
    return answer;
  } catch (thrown) {
    isValid = !isFailure(thrown);
    throw thrown;
  } finally {
    place.leave(isValid);
    if (!isValid) unknown.failed(client, new Fault("invalid_value", "This is not known here."));
  }
}

function isFailure(thrown: unknown): boolean {
  return thrown instanceof IssuerRefused || (thrown instanceof TokenRefused && !thrown.isExpected);
}

/**
 * The session that the browser's cookie names, for the console or the page for devices (place.ts); null: there is none.
 */
export async function sessionOf({ parts, place, call }: Visit): Promise<CurrentSession | null> {
  const secret = cookieIn(call.request.headers, place.session);
  if (secret === null) return null;
  return bounded(parts, call, () => currentSession(parts, place.kind, secret));
}

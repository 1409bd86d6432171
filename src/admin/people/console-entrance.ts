/**
 * Checks every request to the console: its `Host` is the console's own; a change comes from a page of the console; and
 * every request except those of a sign-in belongs to a session, for which the browser sends the cookie and the page
 * sends the session's secret.
 */
import type { Call } from "../../core/http/call.ts";
import { Fault } from "../../core/inference/fault.ts";
import {
  type ConsoleParts,
  type ConsoleSession,
  consoleSession,
  isPageSecret,
} from "../../features/identity/console.ts";
import { NotConfigured } from "../../features/identity/identity.ts";
import { bounded } from "./bounded.ts";
import { type CookieName, cookieIn } from "./cookies.ts";
import { requireHost, requireOrigin } from "./place.ts";

const secretHeader = "x-sluice-console";

const safe = ["GET", "HEAD"];

/** Requires the console's own host and, for a change, one of its pages as the origin. Throws Fault. */
export function requireOwnPage(parts: ConsoleParts, call: Call): void {
  const origins = parts.origins();
  requireHost(call, origins, "The console");
  if (!safe.includes(call.request.method)) requireOrigin(call, origins);
}

/** The name of the cookie of the console's sessions. Throws NotConfigured. */
export function consoleCookie({ origins }: ConsoleParts): CookieName {
  const [origin] = origins();
  if (origin === undefined) throw new NotConfigured("the console does not listen");
  return { name: "sluice-console", origin };
}

export function cookieOf(parts: ConsoleParts, { request }: Call): string | null {
  return cookieIn(request.headers, consoleCookie(parts));
}

/** The session of the request, whose page must send the session's secret. Throws Fault. */
export async function requireSession(parts: ConsoleParts, call: Call): Promise<ConsoleSession> {
  const cookie = cookieOf(parts, call);
  const found = cookie && (await bounded(parts, call, () => consoleSession(parts, cookie, call.client)));
  if (found && isPageSecret(found, call.request.headers.get(secretHeader))) return found;
  throw new Fault("missing_session", "Nobody is signed in on this page. Sign in, and try again.");
}

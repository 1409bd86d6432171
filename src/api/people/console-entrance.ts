/**
 * The checks of every request to the console: it names the console's own host, a change comes from the console's own
 * pages, and all but signing in has a session, of which the browser sends the cookie and the page the secret.
 */
import type { Call } from "../../http/call.ts";
import { hostsNamed } from "../../http/host.ts";
import { type ConsoleParts, type ConsoleSession, consoleSession, isPageSecret } from "../../identity/console.ts";
import { NotConfigured } from "../../identity/identity.ts";
import { Fault } from "../../inference/fault.ts";
import { bounded } from "./bounded.ts";
import { type CookieName, cookieIn } from "./cookies.ts";

export const secretHeader = "x-sluice-console";

const safe = ["GET", "HEAD"];

/** Throws Fault. */
export function requireOwnPage(parts: ConsoleParts, { request }: Call): void {
  const origins = parts.origins();
  const [origin = ""] = origins;
  const { headers, method } = request;
  if (!hostsNamed(origins.map((one) => new URL(one).hostname))(headers.get("host")))
    throw new Fault("host_not_allowed", `The console doesn't answer to this host name. Use ${origin}.`);
  if (safe.includes(method) || origins.includes(headers.get("origin") ?? "")) return;
  throw new Fault("invalid_value", `This has to come from a page of ${origin}. Open it there, and try again.`);
}

/** Throws NotConfigured. */
export function consoleCookie({ origins }: ConsoleParts): CookieName {
  const [origin] = origins();
  if (origin === undefined) throw new NotConfigured("the console does not listen");
  return { name: "sluice-console", origin };
}

export function cookieOf(parts: ConsoleParts, { request }: Call): string | null {
  return cookieIn(request.headers, consoleCookie(parts));
}

/** The session of a page that knows its secret. Throws Fault. */
export async function requireSession(parts: ConsoleParts, call: Call): Promise<ConsoleSession> {
  const cookie = cookieOf(parts, call);
  const found = cookie && (await bounded(parts, call, () => consoleSession(parts, cookie, call.client)));
  if (found && isPageSecret(found, call.request.headers.get(secretHeader))) return found;
  throw new Fault("missing_session", "Nobody is signed in on this page. Sign in, and try again.");
}

/**
 * Redirects a browser to an issuer, and signs the browser in when it returns. Both the console and the page for devices
 * use this.
 */
import { hashOf } from "../../features/identity/identity.ts";
import { attempt_ms, beginSignIn, finishSignIn } from "../../features/identity/sign-in.ts";
import { bounded } from "./bounded.ts";
import { cookieIn, endCookie, setCookie } from "./cookies.ts";
import { redirect } from "./html.ts";
import type { Visit } from "./place.ts";

/** Redirects the browser to the issuer. `returnTo`: the path on this server to which the browser returns afterwards. */
export async function toIssuer(
  { parts, place }: Visit,
  { issuer, returnTo }: { issuer: string | null; returnTo: string },
): Promise<Response> {
  const { kind, redirectUri } = place;
  const { url, cookie } = await beginSignIn(parts, { kind, issuer, redirectUri, returnTo });
  return redirect(url.href, [setCookie(place.attempt, cookie, attempt_ms / 1000)]);
}

/**
 * Signs the browser in when it returns from the issuer: the browser gets a session with a new id, and its earlier
 * session ends.
 */
export async function fromIssuer(
  { parts, place, call, query }: Visit,
  endEarlier: (cookie: string) => Promise<unknown> = (cookie) => parts.sessions.end(hashOf(cookie)),
): Promise<Response> {
  const { kind, redirectUri } = place;
  const { headers } = call.request;
  const answer = new URL(`${redirectUri}?${query}`);
  const cookie = cookieIn(headers, place.attempt);
  const { secret, returnTo, code } = await bounded(parts, call, () => finishSignIn(parts, { kind, answer, cookie }));
  const earlier = cookieIn(headers, place.session);
  if (earlier) await endEarlier(earlier);
  // The code is in the fragment, which browsers do not send, so it appears in no proxy's log.
  return redirect(code === null ? returnTo : `${returnTo}#code=${code}`, [
    setCookie(place.session, secret),
    endCookie(place.attempt),
  ]);
}

/**
 * Sign-in with a browser, which is redirected to the issuer and returns with the issuer's response. The values that the
 * response must match are encrypted in a cookie of this browser, so another browser cannot use the response. A response
 * is valid once, within ten minutes.
 */

import { authorizationUrl, type Expected, exchanged } from "./grants.ts";
import {
  admitted,
  hashOf,
  type IdentityParts,
  identityOf,
  issuerNamed,
  issuersOf,
  NotAdmitted,
  sealedTokens,
  secretText,
} from "./identity.ts";
import { IssuerRefused } from "./issuer-clients.ts";
import type { SessionKind } from "./store/browser-sessions.ts";
import type { KnownPerson } from "./store/people.ts";
import { isFirst } from "./store/use-counts.ts";

/** The state of a sign-in that has begun, which the cookie holds, encrypted. */
interface Attempt extends Expected {
  issuer: string;
  /** The path on this service to which the browser is redirected at the end. */
  returnTo: string;
  /** The time at which the sign-in began, by the node's clock. */
  begun_ms: number;
}

export const attempt_ms = 10 * 60_000;

interface Beginning {
  kind: SessionKind;
  /** The name of the issuer; null: the first issuer in the settings. */
  issuer: string | null;
  redirectUri: string;
  returnTo: string;
}

/**
 * Begins a sign-in. Returns the URL of the issuer's page, to which the browser is redirected, and the cookie that the
 * browser must send with the issuer's response. Throws NotConfigured, IssuerAway, IssuerRefused.
 */
export async function beginSignIn(parts: IdentityParts, { kind, issuer, redirectUri, returnTo }: Beginning) {
  const all = issuersOf(identityOf(parts));
  const chosen = issuer === null ? all[0] : all.find((one) => one.issuer === issuer);
  if (!chosen) throw new IssuerRefused("nobody signs in by this issuer");
  const { random, now_ms } = parts;
  const expected = { state: secretText(random), nonce: secretText(random), verifier: secretText(random) };
  const url = await authorizationUrl(await parts.issuers.of(chosen), redirectUri, expected);
  const attempt: Attempt = { ...expected, issuer: chosen.issuer, returnTo, begun_ms: now_ms() };
  const sealed = parts.sealing.seal(JSON.stringify(attempt), aboutOf(kind));
  return { url, cookie: Buffer.from(sealed).toString("base64url") };
}

interface Finishing {
  kind: SessionKind;
  /** The URL of this service, with its query, to which the issuer redirected the browser. */
  answer: URL;
  cookie: string | null;
}

interface FinishedSignIn {
  /** The secret of the new session, for the session's cookie. */
  secret: string;
  known: KnownPerson;
  returnTo: string;
  /**
   * The code that the console's page exchanges for the page's secret; null: pages of this kind of session need no
   * secret.
   */
  code: string | null;
}

/** Completes a sign-in. Throws NotConfigured, NotAdmitted, IssuerAway, IssuerRefused. */
export async function finishSignIn(parts: IdentityParts, { kind, answer, cookie }: Finishing): Promise<FinishedSignIn> {
  const identity = identityOf(parts);
  const attempt = openAttempt(parts, kind, cookie);
  const issuer = attempt && issuerNamed(identity, attempt.issuer);
  if (!attempt || !issuer) throw new IssuerRefused("this browser has not begun this sign-in, or too long ago");
  if (!(await isFirst(parts.uses, "sign-in", attempt.state, attempt_ms)))
    throw new IssuerRefused("this sign-in was finished before");
  const { claims, issuerSession, kept } = await exchanged(await parts.issuers.of(issuer), answer, attempt);
  const known = await admitted(parts, issuer, claims, { isSignIn: true });
  const secret = secretText(parts.random);
  const code = kind === "console" ? secretText(parts.random) : null;
  const hasBegun = await parts.sessions.begin({
    hash: hashOf(secret),
    kind,
    personId: known.id,
    issuer: issuer.issuer,
    issuerSession,
    tokens: sealedTokens(parts, kept),
    codeHash: code === null ? null : hashOf(code),
  });
  if (!hasBegun) throw new NotAdmitted("You may not come in any more. Ask your administrator.");
  return { secret, known, returnTo: attempt.returnTo, code };
}

function openAttempt({ sealing, now_ms }: IdentityParts, kind: SessionKind, cookie: string | null): Attempt | null {
  const text = cookie && sealing.open(new Uint8Array(Buffer.from(cookie, "base64url")), aboutOf(kind));
  if (!text) return null;
  const attempt = JSON.parse(text) as Attempt;
  return Math.abs(now_ms() - attempt.begun_ms) <= attempt_ms ? attempt : null;
}

const aboutOf = (kind: SessionKind) => `sign-in of ${kind}`;

/**
 * Sign-in with a browser, which goes to the issuer and returns with the issuer's answer. The values that must come back
 * are encrypted in a cookie of this browser, so the answer to another browser is useless. An answer is valid once, for
 * ten minutes.
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

/** A sign-in that has begun, as its cookie holds it, encrypted. */
interface Attempt extends Expected {
  issuer: string;
  /** The path of this service to which the browser goes afterwards. */
  returnTo: string;
  /** When the sign-in began, by the clock of the node. */
  begun_ms: number;
}

export const attempt_ms = 10 * 60_000;

/**
 * A sign-in that has begun. `url`: the issuer's page, to which the browser goes. `cookie`: the cookie that must come
 * back with the issuer's answer.
 */
export interface BegunSignIn {
  url: URL;
  cookie: string;
}

interface Beginning {
  kind: SessionKind;
  /** The name of the issuer; null: the first issuer in the settings. */
  issuer: string | null;
  redirectUri: string;
  returnTo: string;
}

/** Begins a sign-in. Throws NotConfigured, IssuerAway, IssuerRefused. */
export async function beginSignIn(parts: IdentityParts, { kind, issuer, redirectUri, returnTo }: Beginning) {
  const all = issuersOf(identityOf(parts));
  const chosen = issuer === null ? all[0] : all.find((one) => one.issuer === issuer);
  if (!chosen) throw new IssuerRefused("nobody signs in by this issuer");
  const { random, now_ms } = parts;
  const expected = { state: secretText(random), nonce: secretText(random), verifier: secretText(random) };
  const url = await authorizationUrl(await parts.issuers.of(chosen), redirectUri, expected);
  const attempt: Attempt = { ...expected, issuer: chosen.issuer, returnTo, begun_ms: now_ms() };
  const sealed = parts.sealing.seal(JSON.stringify(attempt), aboutOf(kind));
  return { url, cookie: Buffer.from(sealed).toString("base64url") } satisfies BegunSignIn;
}

interface Finishing {
  kind: SessionKind;
  /** Our URL to which the issuer sent the browser, with its query. */
  answer: URL;
  /** The cookie that was set when the sign-in began. */
  cookie: string | null;
}

export interface FinishedSignIn {
  /** The secret of the new session, for the session's cookie. */
  secret: string;
  known: KnownPerson;
  returnTo: string;
  /** The code for which a page of the console gets this session's secret; null: its pages need none. */
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

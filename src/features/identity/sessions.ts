/**
 * Browser sessions, each named by a cookie. When a session is used, its issuer is asked, at most once an hour, whether
 * it still confirms the person.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Identity, Issuer } from "../../core/auth/identity.ts";
import {
  confirmedAgain,
  hashOf,
  type IdentityParts,
  identityOf,
  issuerNamed,
  NotAdmitted,
  openTokens,
  requireAdmission,
} from "./identity.ts";
import { IssuerAway, IssuerRefused } from "./issuer-clients.ts";
import { subjectIn } from "./rules.ts";
import type { EndedAtIssuer, KnownSession, SessionKind, SessionLife } from "./store/browser-sessions.ts";
import type { KnownPerson } from "./store/people.ts";
import { issuerIn, type Logout, verifiedLogoutToken } from "./verified.ts";

export interface CurrentSession {
  session: KnownSession;
  known: KnownPerson;
  /** The secret that every form of the service's pages sends back (against forged requests). */
  formSecret(): string;
}

const confirmed_ms_max = 3_600_000;
/** The time for which a request keeps the right to ask the issuer; longer than any request to an issuer takes. */
const claim_ms = 30_000;
const device_ms = 10 * 60_000;

export function lifeOf({ sessionIdle_ms, sessionMax_ms }: Identity, kind: SessionKind): SessionLife {
  return kind === "device"
    ? { idle_ms: device_ms, whole_ms: device_ms }
    : { idle_ms: sessionIdle_ms, whole_ms: sessionMax_ms };
}

const secretForm = /^[A-Za-z0-9_-]{43}$/;

/** The session of this browser; null: nobody is signed in. Throws NotConfigured. */
export async function currentSession(
  parts: IdentityParts,
  kind: SessionKind,
  secret: string | null,
): Promise<CurrentSession | null> {
  const identity = identityOf(parts);
  if (secret === null || !secretForm.test(secret)) return null;
  const session = await parts.sessions.find(hashOf(secret), kind, lifeOf(identity, kind));
  if (!session) return null;
  try {
    if (!issuerNamed(identity, session.issuer)) throw new IssuerRefused("its issuer is not in the settings any more");
    const known = (await confirmedIfDue(parts, session)) ?? (await parts.people.findPerson(session.personId));
    if (!known) throw new IssuerRefused("the person is gone");
    requireAdmission(known);
    return { session, known, formSecret: () => formSecretOf(secret) };
  } catch (thrown) {
    if (!(thrown instanceof IssuerRefused || thrown instanceof NotAdmitted)) throw thrown;
    await parts.sessions.end(session.hash);
    return null;
  }
}

/**
 * Asks the issuer again if the last confirmation is too old. Null: the confirmation is recent enough, another request
 * is asking now, the issuer's tokens are missing, or the issuer is away; none of this ends the session.
 */
async function confirmedIfDue(parts: IdentityParts, session: KnownSession): Promise<KnownPerson | null> {
  if (session.readAt.getTime() - session.confirmedAt.getTime() < confirmed_ms_max) return null;
  const kept = openTokens(parts, session.tokens);
  if (!kept || !(await parts.sessions.claim(session.hash, session.confirmedAt, claim_ms))) return null;
  try {
    const { known, tokens } = await confirmedAgain(parts, session, kept);
    await parts.sessions.confirmed(session.hash, tokens);
    return known;
  } catch (thrown) {
    if (thrown instanceof IssuerAway) return null;
    throw thrown;
  }
}

/** The secret that forms send back. It is derived from the cookie, which pages of other origins cannot read. */
function formSecretOf(secret: string): string {
  return createHmac("sha256", secret).update("form").digest("base64url");
}

export function isFormSecret({ formSecret }: CurrentSession, sent: string | null): boolean {
  const [ours, theirs] = [Buffer.from(formSecret()), Buffer.from(sent ?? "")];
  return ours.length === theirs.length && timingSafeEqual(ours, theirs);
}

/**
 * Handles a back-channel logout. With `sid`, the sessions and sign-ins that belong to that session at the issuer end.
 * With only `sub`, all sessions and sign-ins of the person end, and everything that was issued to the person before
 * becomes invalid. Throws NotConfigured, IssuerRefused, IssuerAway.
 */
export async function leave(parts: IdentityParts, token: string): Promise<{ sessions: number; signIns: number }> {
  const issuer = issuerNamed(identityOf(parts), issuerIn(token));
  if (!issuer) throw new IssuerRefused("the token is of no issuer by which people sign in");
  const logout = await verifiedLogoutToken(await parts.issuers.of(issuer), token, parts.uses);
  // Only a logout that was carried out uses up its token: the issuer repeats one that failed, and twice is harmless.
  const counts = await leaving(parts, issuer, logout);
  await logout.used();
  return counts;
}

async function leaving(parts: IdentityParts, issuer: Issuer, logout: Logout) {
  if (logout.issuerSession !== null)
    return ended(parts, { issuer: issuer.issuer, issuerSession: logout.issuerSession });
  const subject = subjectIn(issuer, logout.claims);
  const found = subject === null ? null : await parts.people.personOf(issuer.issuer, subject);
  if (!found) return { sessions: 0, signIns: 0 };
  await parts.people.endIssued(found.id, "service");
  return ended(parts, { personId: found.id });
}

async function ended({ sessions, signIns }: IdentityParts, who: EndedAtIssuer) {
  const [one, other] = await Promise.all([sessions.endAtIssuer(who), signIns.endAtIssuer(who, "issuer_logout")]);
  return { sessions: one, signIns: other };
}

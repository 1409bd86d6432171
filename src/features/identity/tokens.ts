/**
 * Tokens of devices and workloads: an access token is a secret of a key, and is valid for an hour; a refresh token can
 * be used once, and each use asks the issuer whether it still confirms the person (docs/identity.md, Tokens).
 */
import { hashKey, isToken, key_random_bytes, newKey, type SecretKind, secretOf } from "../../core/auth/credential.ts";
import { idOf } from "../../core/store/ids.ts";
import { verifiedAssertion } from "./assertions.ts";
import {
  admitted,
  confirmedAgain,
  hashOf,
  type IdentityParts,
  identityOf,
  membershipNamed,
  NotAdmitted,
  openTokens,
  requireAdmission,
} from "./identity.ts";
import { IssuerRefused } from "./issuer-clients.ts";
import { judged } from "./rules.ts";
import type { DeviceAnswer } from "./store/device-requests.ts";
import type { KnownPerson } from "./store/people.ts";
import type { NewAccessToken, Refreshing, SignInRights } from "./store/sign-ins.ts";

export interface Tokens {
  accessToken: string;
  lasts_s: number;
  /** The refresh token. Null: there is none, so the sign-in ends when the access token expires. */
  refreshToken: string | null;
  scopes: readonly string[];
  /** The e-mail address of the person, if the issuer has verified it. */
  email?: string | null;
}

type Refusal =
  | "invalid_grant"
  | "authorization_pending"
  | "slow_down"
  | "access_denied"
  | "expired_token"
  | "temporarily_unavailable";

/**
 * An error response with a code of RFC 6749 or RFC 8628. `isExpected`: it does not count as a failure of the caller.
 */
export class TokenRefused extends Error {
  constructor(
    readonly error: Refusal,
    message: string,
    readonly isExpected = false,
  ) {
    super(message);
  }
}

const access_ms = 3_600_000;
/** The longest duration of a sign-in whose issuer cannot be asked again, because it gave no refresh token. */
const unconfirmed_ms_max = 24 * 3_600_000;
const claim_ms = 30_000;
const repeat_ms = 60_000;
const busy_ms = 10_000;
const about = "refresh token";

const signInAgain = "This sign-in has ended. Sign in again.";

function secretFor({ random }: IdentityParts, kind: SecretKind): string {
  return newKey(random(key_random_bytes), kind);
}

function accessFor(parts: IdentityParts, lasts_ms = access_ms): { token: string; access: NewAccessToken } {
  const token = secretFor(parts, "slt_");
  return { token, access: { secret: secretOf(token), lasts_ms } };
}

/** The rights of a person in an organization; null: the person has none. */
function rightsIn({ memberships }: KnownPerson, organizationId: string): SignInRights | null {
  const found = memberships.find((one) => one.organizationId === organizationId);
  return found ? { organizationId, scopes: found.scopes, models: found.models } : null;
}

/** Exchanges the long code of a device for tokens. Throws TokenRefused. */
export async function byDeviceCode(parts: IdentityParts, code: string): Promise<Tokens> {
  identityOf(parts);
  const answer = await parts.devices.poll(hashOf(code));
  if (answer.is !== "approved") throw notApproved(answer);
  const known = await parts.people.findPerson(answer.personId);
  const rights = known && rightsIn(known, answer.organizationId);
  if (!known || !rights)
    throw new TokenRefused(
      "access_denied",
      "The person who approved this sign-in no longer has rights in the organization.",
    );
  const { issuer, email, isEmailVerified } = known;
  const tokens = await begun(parts, answer, rights, issuer);
  return { ...tokens, email: isEmailVerified ? email : null };
}

function notApproved(answer: Exclude<DeviceAnswer, { is: "approved" }>): TokenRefused {
  switch (answer.is) {
    case "pending":
      return new TokenRefused("authorization_pending", "Nobody has approved this device yet.", true);
    case "too_soon":
      return new TokenRefused("slow_down", `Wait ${answer.interval_s} seconds between two questions.`, true);
    case "denied":
      return new TokenRefused("access_denied", "Somebody has refused this device.", true);
    default:
      return new TokenRefused("expired_token", "There is no such code, or it has expired. Begin again.");
  }
}

type Approved = Extract<DeviceAnswer, { is: "approved" }>;

async function begun(parts: IdentityParts, approved: Approved, rights: SignInRights, issuer: string): Promise<Tokens> {
  const { personId, issuerSession, tokens, agent, address } = approved;
  const refreshToken = secretFor(parts, "slr_");
  const { token, access } = accessFor(parts);
  const done = await parts.signIns.begin({
    ...rights,
    keyId: idOf(parts.newUuid(), "key_"),
    personId,
    issuer,
    issuerSession,
    tokens,
    lasts_ms: tokens === null ? unconfirmed_ms_max : null,
    agent,
    address,
    access,
    refreshHash: hashKey(refreshToken),
  });
  if (done === "gone") throw new TokenRefused("access_denied", "The organization is gone.");
  return { accessToken: token, lasts_s: access_ms / 1000, refreshToken, scopes: rights.scopes };
}

/**
 * Exchanges a refresh token for new tokens. Throws TokenRefused, or IssuerAway, after which the same token can be used
 * again.
 */
export async function byRefreshToken(parts: IdentityParts, text: string): Promise<Tokens> {
  identityOf(parts);
  if (!isToken("slr_", text)) throw new TokenRefused("invalid_grant", "This is no refresh token of this service.");
  const begun = await whenFree(parts, hashKey(text));
  if (begun.is === "repeated") return repeated(parts, begun);
  if (begun.is !== "begun") throw new TokenRefused("invalid_grant", signInAgain);
  try {
    const { rights, tokens } = await confirmed(parts, begun);
    return await refreshed(parts, text, { begun, rights, tokens });
  } catch (thrown) {
    if (thrown instanceof IssuerRefused || thrown instanceof NotAdmitted) {
      await parts.signIns.end(begun.keyId, "issuer_refused");
      throw new TokenRefused("invalid_grant", signInAgain);
    }
    if (!(thrown instanceof TokenRefused)) await parts.signIns.releaseRefresh(begun.keyId, begun.claim);
    throw thrown;
  }
}

/** Begins the use of a refresh token. Waits while another caller uses a refresh token of the same sign-in. */
async function whenFree({ signIns, newUuid, now_ms }: IdentityParts, hash: Uint8Array) {
  const until_ms = now_ms() + busy_ms;
  for (;;) {
    const begun = await signIns.beginRefresh(hash, { claim: newUuid(), claim_ms, repeat_ms });
    if (begun.is !== "busy") return begun;
    if (now_ms() > until_ms)
      throw new TokenRefused("temporarily_unavailable", "This token is being used. Try again in a moment.", true);
    await Bun.sleep(50);
  }
}

/** Repeats a response that may have been lost: the same next refresh token, with a new access token. */
async function repeated(
  parts: IdentityParts,
  { keyId, successor }: { keyId: string; successor: Uint8Array },
): Promise<Tokens> {
  const refreshToken = parts.sealing.open(successor, about);
  const { token, access } = accessFor(parts);
  const scopes = refreshToken === null ? null : await parts.signIns.addAccessToken(keyId, access);
  if (refreshToken === null || scopes === null) throw new TokenRefused("invalid_grant", signInAgain);
  return { accessToken: token, lasts_s: access_ms / 1000, refreshToken, scopes };
}

/**
 * Asks the issuer whether it still confirms the person, and derives the person's rights in the organization of this
 * sign-in.
 */
async function confirmed(parts: IdentityParts, begun: Refreshing) {
  const kept = openTokens(parts, begun.tokens);
  if (begun.tokens !== null && kept === null) throw new IssuerRefused("its tokens cannot be read any more");
  const again = kept && (await confirmedAgain(parts, begun, kept));
  const known = again?.known ?? (await parts.people.findPerson(begun.personId));
  if (!known) throw new IssuerRefused("the person is gone");
  requireAdmission(known);
  const rights = rightsIn(known, begun.organizationId);
  if (!rights) throw new NotAdmitted("the membership is gone");
  return { rights, tokens: again?.tokens };
}

async function refreshed(
  parts: IdentityParts,
  used: string,
  { begun, rights, tokens }: { begun: Refreshing; rights: SignInRights; tokens: Uint8Array | undefined },
): Promise<Tokens> {
  const refreshToken = secretFor(parts, "slr_");
  const { token, access } = accessFor(parts);
  const isDone = await parts.signIns.completeRefresh({
    claim: begun.claim,
    keyId: begun.keyId,
    usedHash: hashKey(used),
    nextHash: hashKey(refreshToken),
    successor: parts.sealing.seal(refreshToken, about),
    access,
    tokens,
    rights,
  });
  if (!isDone) throw new TokenRefused("invalid_grant", signInAgain);
  return { accessToken: token, lasts_s: access_ms / 1000, refreshToken, scopes: rights.scopes };
}

/**
 * Exchanges a workload's identity token for an access token (RFC 7523), which never outlives the identity token. If no
 * rule matches, nothing is stored. Identity tokens that were issued before the person's last logout are refused. Throws
 * TokenRefused, IssuerAway.
 */
export async function byAssertion(parts: IdentityParts, assertion: string): Promise<Tokens> {
  const identity = identityOf(parts);
  const { issuer, claims, issuedAt, ends_ms } = await verifiedAssertion(parts, assertion).catch((cause) => {
    throw cause instanceof IssuerRefused ? unknownAssertion() : cause;
  });
  const rule = judged(identity, issuer, claims).calling;
  if (!rule) throw unknownAssertion();
  const known = await admitted(parts, issuer, claims, { at: issuedAt }).catch((cause) => {
    throw cause instanceof IssuerRefused || cause instanceof NotAdmitted ? unknownAssertion() : cause;
  });
  const membership = membershipNamed(known.memberships, rule.organization);
  if (!membership || (known.notBefore && issuedAt < known.notBefore)) throw unknownAssertion();
  const { organizationId: organization, scopes } = membership;
  const id = idOf(parts.newUuid(), "key_");
  const key = await parts.people.tokenKey({ id, personId: known.id, organization });
  const { token, access } = accessFor(parts, Math.min(access_ms, ends_ms - parts.now_ms()));
  const isGiven = key && access.lasts_ms > 0 && (await parts.signIns.addAccessToken(key.id, access));
  if (!isGiven) throw unknownAssertion();
  return { accessToken: token, lasts_s: Math.floor(access.lasts_ms / 1000), refreshToken: null, scopes };
}

/** The error that refuses an assertion, with the same message for all causes. */
function unknownAssertion(): TokenRefused {
  return new TokenRefused(
    "invalid_grant",
    "This assertion is of no issuer that this service trusts, or nobody may use it.",
  );
}

/**
 * Ends the sign-in to which the token belongs. A workload's access token belongs to no sign-in, so only the token ends.
 * False: the token is unknown or has ended.
 */
export async function revoke(parts: IdentityParts, text: string): Promise<boolean> {
  identityOf(parts);
  if (!isToken("slr_", text) && !isToken("slt_", text)) return false;
  const hash = hashKey(text);
  const signIn = await parts.signIns.ofToken(hash);
  return signIn === null ? parts.signIns.endAccessToken(hash) : parts.signIns.end(signIn, "revoked");
}

/**
 * Stores that an issuer has confirmed a person: at each sign-in, refresh and hourly check, and for each new identity
 * token. The caller has verified the claims. The rules in force turn the claims into memberships.
 */
import type { Claims, Identity, Issuer } from "../../core/auth/identity.ts";
import { isPlain, plain } from "../../core/inference/plain-text.ts";
import { idOf } from "../../core/store/ids.ts";
import { claimIn, groupsIn, judged, subjectIn, verifiedEmail, withGroups } from "./rules.ts";
import type { Confirmed, People } from "./store/people.ts";

export interface Confirming {
  people: Pick<People, "personOf" | "confirm">;
  identity: Identity;
  /** Makes a UUIDv7 with dashes. */
  newUuid(): string;
}

export interface Occasion {
  /** Set if the person signs in with a browser. Only then are the person's invitations accepted. */
  isSignIn?: boolean;
  /** The time at which the issuer made the claims; absent: now. */
  at?: Date;
}

export class NoSubject extends Error {}

/**
 * Stores the person and the memberships. Throws NoSubject. A suspended person is also returned, so callers must check
 * `state`.
 */
export async function confirmPerson(
  { people, identity, newUuid }: Confirming,
  issuer: Issuer,
  claims: Claims,
  { isSignIn = false, at }: Occasion = {},
): Promise<Confirmed> {
  const subject = subjectIn(issuer, claims);
  if (subject === null)
    throw new NoSubject(
      `the claims of ${issuer.issuer} lack ${issuer.subject.join(" or ")}, or what they say there is too long or no plain text`,
    );
  const before = await people.personOf(issuer.issuer, subject);
  const age = { claim: issuer.groupsClaim, maxAge_ms: identity.groupsMaxAge_ms };
  const known = withGroups(claims, age, before, before?.readAt ?? new Date(0));
  const { kind, memberships } = judged(identity, issuer, known);
  return people.confirm({
    id: idOf(newUuid(), "per_"),
    issuer: issuer.issuer,
    subject,
    kind,
    at,
    ...detailsIn(issuer, claims),
    memberships,
    invited: isSignIn ? verifiedEmail(claims) : null,
    keysEndAfter_ms: identity.keysOfLeavers === "revoke" ? identity.confirmedMax_ms : null,
  });
}

const chars_max = 320;

/**
 * The person's name, e-mail address and groups in the claims, for display. A detail that the claims lack stays as it is
 * in the store. In a name, each character that could change the line or the direction of the text becomes a question
 * mark. An address with such a character is dropped as a whole, because with the character removed it could be another
 * person's address.
 */
function detailsIn({ groupsClaim }: Issuer, claims: Claims) {
  const text = (name: string) => {
    const value = claimIn(claims, name);
    return typeof value === "string" && value !== "" ? plain(value.toWellFormed()).slice(0, chars_max) : undefined;
  };
  const email = isPlain(String(claimIn(claims, "email"))) ? text("email") : undefined;
  const groups = groupsIn(claims, groupsClaim);
  return {
    name: text("name") ?? text("preferred_username"),
    ...(email === undefined ? {} : { email, isEmailVerified: verifiedEmail(claims) !== null }),
    ...(typeof groups === "string" ? {} : { groups }),
  };
}

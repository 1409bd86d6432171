/**
 * Derives memberships from the claims of an issuer (docs/identity.md, Rules). A claim matches only in the type that the
 * rule gives: a text never matches a list with one item, nor a list a text. An e-mail address counts only if the issuer
 * has verified it. Pure.
 */

import type { Claims, Identity, Issuer, Rule } from "../../core/auth/identity.ts";
import { isPlain } from "../../core/inference/plain-text.ts";
import type { NamedMembership, PersonKind } from "../../core/store/people.ts";

/** The rules for this issuer that match the claims, in the order of the configuration. */
export function matching(rules: readonly Rule[], { issuer }: Pick<Issuer, "issuer">, claims: Claims): Rule[] {
  return rules.filter((rule) => (rule.issuer === null || rule.issuer === issuer) && isMet(rule, claims));
}

function isMet({ claim, wanted }: Rule, claims: Claims): boolean {
  if (claim === "email") return "is" in wanted && verifiedEmail(claims) === lowered(wanted.is);
  const found = claimIn(claims, claim);
  return "is" in wanted ? found === wanted.is : Array.isArray(found) && found.includes(wanted.has);
}

/**
 * Converts only A to Z to lower case. Other letters stay: the Kelvin sign, for example, would become a `k`, which would
 * make two different addresses the same.
 */
export const lowered = (address: string): string => address.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * The e-mail address in lower case; null unless the issuer says that the address is verified (some issuers send the
 * text "true").
 */
export function verifiedEmail(claims: Claims): string | null {
  const email = ownIn(claims, "email");
  const isVerified = [true, "true"].includes(ownIn(claims, "email_verified") as boolean | string);
  return typeof email === "string" && isPlain(email) && isVerified ? lowered(email) : null;
}

/**
 * The claim with this name. If there is none, the name is taken as a path with dots into nested objects, which Keycloak
 * sends.
 */
export function claimIn(claims: Claims, name: string): unknown {
  const whole = ownIn(claims, name);
  if (whole !== undefined || !name.includes(".")) return whole;
  return name.split(".").reduce<unknown>(ownIn, claims);
}

function ownIn(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Claims)[name]
    : undefined;
}

/** The memberships that the rules give; for each organization the first rule counts. */
export function membershipsBy(rules: readonly Rule[]): NamedMembership[] {
  const places = new Set<string | null>();
  return rules.flatMap(({ organization, team, role, scopes, models }) => {
    if (places.has(organization)) return [];
    places.add(organization);
    return [{ organization, team, role, scopes, models }];
  });
}

/**
 * The first rule that gives a membership in an organization. A caller with an identity token has the rights of that
 * membership.
 */
export function callingRule(rules: readonly Rule[]): (Rule & { organization: string }) | null {
  return rules.find((rule): rule is Rule & { organization: string } => rule.organization !== null) ?? null;
}

/** The kind (person or service) that the first matching rule gives. */
export function kindBy(rules: readonly Rule[]): PersonKind {
  return rules[0]?.kind ?? "person";
}

/**
 * The text that identifies somebody at this issuer, made from the configured claims; null if a claim is missing or is
 * not plain text. If there are several claims, they are encoded, so that no two people get the same text.
 */
export function subjectIn({ subject }: Pick<Issuer, "subject">, claims: Claims): string | null {
  const values = subject.map((name) => claimIn(claims, name));
  if (!values.every((value): value is string => typeof value === "string" && value !== "")) return null;
  if (!values.every(isPlain)) return null;
  const text = values.length === 1 ? values[0]! : values.map(encodeURIComponent).join("/");
  return text.length <= subject_chars_max ? text : null;
}

const subject_chars_max = 1000;

const groups_max = 2000;
const group_chars_max = 500;

/**
 * The names of the groups in a claim; names that are not plain text are left out. `absent`: the claim is missing.
 * `overflowing`: there are more groups than fit into a token (Entra signals this in `_claim_names` or `hasgroups`), or
 * than this service accepts.
 */
export function groupsIn(claims: Claims, claim: string): readonly string[] | "absent" | "overflowing" {
  const found = claimIn(claims, claim);
  const elsewhere = claimIn(claims, "_claim_names");
  const isElsewhere = ownIn(elsewhere, claim) !== undefined || [true, "true"].includes(claims.hasgroups as boolean);
  if (!Array.isArray(found)) return isElsewhere ? "overflowing" : "absent";
  const groups = found.filter(
    (one): one is string => typeof one === "string" && one.length <= group_chars_max && isPlain(one),
  );
  return isElsewhere || groups.length > groups_max ? "overflowing" : [...new Set(groups)];
}

/** A person's groups from the issuer's last response that had groups. */
export interface EarlierGroups {
  groups: readonly string[];
  groupsAt: Date | null;
}

/** The claims. If they lack groups, the person's earlier groups are added, unless these are too old. */
export function withGroups(
  claims: Claims,
  { claim, maxAge_ms }: { claim: string; maxAge_ms: number },
  earlier: EarlierGroups | null,
  now: Date,
): Claims {
  const groups = groupsIn(claims, claim);
  if (typeof groups !== "string") return claims;
  const isFresh = earlier?.groupsAt != null && now.getTime() - earlier.groupsAt.getTime() <= maxAge_ms;
  return { ...claims, [claim]: isFresh ? earlier.groups : [] };
}

/** The memberships, kind and rights that the rules give to a person with these claims. */
export function judged(identity: Identity, issuer: Issuer, claims: Claims) {
  const rules = matching(identity.rules, issuer, claims);
  return { rules, kind: kindBy(rules), memberships: membershipsBy(rules), calling: callingRule(rules) };
}

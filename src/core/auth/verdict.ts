/** The verdict on a key: its principal or the reason for its refusal, and until when the verdict is valid. Pure. */

import { Fault } from "../inference/fault.ts";
import { type Credential, type KeyPerson, useNoted_ms } from "../store/directory.ts";
import type { RatesOverPlan } from "../store/rates.ts";
import { unauthorized } from "./credential.ts";
import type { Identity } from "./identity.ts";
import { liesIn } from "./network.ts";

/**
 * A key as its caller's requests see it. `membershipModels`: the models of the membership of the key's person, set if
 * both the membership and the key have a list of models. A request's model must be in both lists, each of which may
 * name it by a different alias.
 */
type CallerKey = Readonly<Credential["key"]> & { readonly membershipModels?: readonly string[] };

/** The caller. The requests of one second share this object, so it must not be changed. */
export interface Principal {
  readonly key: CallerKey;
  readonly organization: Readonly<Credential["organization"]>;
  readonly rates: Credential["rates"];
  readonly names?: Credential["names"];
  readonly overPlan?: RatesOverPlan | null;
  /** The person to whom the key belongs; null if it is no person's key. */
  readonly person: { readonly id: string; readonly notBefore: Date | null } | null;
  /**
   * The hash of the secret that was sent, in hexadecimal digits, with which the directory is asked again. For an
   * identity token: the hash of its key's secret, a space, and the time of issue of the token in milliseconds.
   */
  readonly secretHash: string;
}

/**
 * Whether a caller may see what was made for the person `maker` in the caller's own organization (null: it was made for
 * no person). A person sees only what was made for that person; a caller without a person sees everything
 * (docs/protocols.md, Whose responses).
 */
export function maySee({ person }: Pick<Principal, "person">, maker: string | null): boolean {
  return person === null || person.id === maker;
}

type Ids = readonly [keyId: string, organizationId: string, ...personId: string[]];
export type Verdict =
  /**
   * `admits`: set if the key may be used only from some addresses. `isToNote`: the use must be written before the
   * request is served, because a key that seems unused could end.
   */
  | { principal: Principal; admits?: (address: string) => boolean; isToNote?: true }
  | { refusal: keyof typeof suspensions; ids: Ids }
  | { refusal: keyof typeof refusals; ids: Ids | null };
export type CredentialRefusal = Extract<Verdict, { refusal: string }>["refusal"];

/** The settings for the keys of people. */
export type PeoplePolicy = Pick<Identity, "confirmedMax_ms" | "keysOfLeavers">;

const suspensions = {
  suspended: {
    code: "organization_suspended",
    message: "The organization that this API key belongs to is suspended. Ask your administrator.",
  },
  person_suspended: { code: "person_suspended", message: "You are suspended. Ask your administrator." },
} as const;

/** The fault of a valid key whose organization or person is suspended. The caller is known nevertheless. */
export class Suspended extends Fault {
  constructor(
    what: keyof typeof suspensions,
    readonly keyId: string,
    readonly organizationId: string,
  ) {
    super(suspensions[what].code, suspensions[what].message);
  }
}

/** The fault of a valid key that is used from an address which the key's list does not allow. */
export class AddressNotAllowed extends Fault {
  readonly keyId: string;
  readonly organizationId: string;
  constructor({ key, organization }: Principal) {
    super(
      "address_not_allowed",
      "This API key may not be used from your address. Use another key, or ask your administrator to allow the address.",
    );
    this.keyId = key.id;
    this.organizationId = organization.id;
  }
}

/**
 * The verdict on a key: whether it exists, is valid, and belongs to an active organization and to a person who may use
 * it, by the store's clock. `policy` null: the settings end no person's key.
 */
export function judge(credential: Credential | null, secretHash: string, policy: PeoplePolicy | null = null): Verdict {
  if (!credential) return { refusal: "unknown", ids: null };
  const { key, organization, person, rates, names, overPlan } = credential;
  const refusal = refusalOf(credential, policy);
  if (refusal) return { refusal, ids: [key.id, organization.id, ...(person ? [person.id] : [])] };
  const who = person && { id: person.id, notBefore: person.notBefore };
  const principal = Object.freeze({
    key: keyOf(credential),
    organization,
    person: who,
    rates,
    names,
    secretHash,
    ...(overPlan && { overPlan }),
  });
  return {
    principal,
    ...(key.allowFrom && { admits: liesIn(key.allowFrom) }),
    ...(isToNote(credential) && { isToNote: true }),
  };
}

function isToNote({ key, ends, readAt }: Credential): boolean {
  if (ends.unusedAt === null) return false;
  return key.lastUsedAt === null || readAt.getTime() - key.lastUsedAt.getTime() >= useNoted_ms;
}

/** The verdict on an identity token that was issued at this instant, derived from the verdict on its key. */
export function issuedAt(verdict: Verdict, issuedAt_ms: number): Verdict {
  if ("refusal" in verdict) return verdict;
  const { key, organization, person, secretHash } = verdict.principal;
  if (person?.notBefore && issuedAt_ms < person.notBefore.getTime())
    return { refusal: "signed_out", ids: [key.id, organization.id, person.id] };
  const principal = Object.freeze({ ...verdict.principal, secretHash: `${secretHash} ${issuedAt_ms}` });
  return { ...verdict, principal };
}

/**
 * The key's rights, limited to those of the person's membership, also of one that has ended. An identity token has
 * exactly the rights of the membership.
 */
function keyOf({ key, person }: Credential): CallerKey {
  if (!person?.rights) return key;
  const { scopes, models } = person.rights;
  if (person.kind !== "key") return { ...key, scopes, models };
  const { models: own } = key;
  return {
    ...key,
    scopes: key.scopes.filter((scope) => scopes.includes(scope)),
    models: own ?? models,
    ...(own && models && { membershipModels: models }),
  };
}

function refusalOf(credential: Credential, policy: PeoplePolicy | null): CredentialRefusal | null {
  const { key, secret, ends, organization, readAt } = credential;
  const over = (deadline: Date | null) => deadline !== null && readAt.getTime() >= deadline.getTime();
  if (key.revokedAt) return "revoked";
  if (secret.revokedAt) return "replaced";
  if (over(key.expiresAt)) return "expired";
  if (over(secret.expiresAt)) return "rotated";
  if (over(ends.lifetimeAt)) return "too_old";
  if (over(ends.unusedAt)) return "unused";
  const ofPerson = refusalByPerson(credential, policy);
  if (ofPerson) return ofPerson;
  return organization.status === "active" ? null : "suspended";
}

function refusalByPerson(
  { person, secret, readAt }: Credential,
  policy: PeoplePolicy | null,
): CredentialRefusal | null {
  if (!person) return null;
  const { kind, suspendedAt, notBefore, rights } = person;
  if (suspendedAt) return "person_suspended";
  // The secret of an identity token's key has no `expiresAt`, so it passes here. `issuedAt` judges the token's own time
  // of issue instead.
  if (kind !== "key" && secret.expiresAt && notBefore && secret.createdAt < notBefore) return "signed_out";
  const isMember = rights !== null && !rights.hasEnded;
  if (!isMember && !(kind === "key" && policy?.keysOfLeavers === "keep")) return "no_membership";
  const until = confirmedUntil(person, policy);
  return until && readAt >= until ? "unconfirmed" : null;
}

/**
 * When a person's key stops working unless the issuer confirms the person again; null: never. An identity token is such
 * a confirmation itself.
 */
function confirmedUntil({ kind, confirmedAt }: KeyPerson, policy: PeoplePolicy | null): Date | null {
  return policy && kind !== "jwt" ? new Date(confirmedAt.getTime() + policy.confirmedMax_ms) : null;
}

/**
 * The milliseconds from the time at which the credential was read to the next deadline that would change the verdict.
 */
export function deadlineIn(credential: Credential | null, policy: PeoplePolicy | null = null): number {
  if (!credential) return Number.POSITIVE_INFINITY;
  const { key, secret, ends, person, readAt } = credential;
  const confirmed = person && confirmedUntil(person, policy);
  const all = [key.expiresAt, secret.expiresAt, ends.lifetimeAt, ends.unusedAt, confirmed];
  const deadlines = all.flatMap((at) => (at ? [at.getTime() - readAt.getTime()] : []));
  return Math.min(...deadlines.filter((ms) => ms > 0), Number.POSITIVE_INFINITY);
}

/** Whether the verdict depends on the key, organization or person with this id. */
export function concerns(verdict: Verdict, id: string): boolean {
  if ("principal" in verdict) {
    const { key, organization, person } = verdict.principal;
    return key.id === id || organization.id === id || person?.id === id;
  }
  return verdict.ids?.includes(id) ?? false;
}

export function isUnknown(verdict: Verdict): boolean {
  return "refusal" in verdict && verdict.refusal === "unknown";
}

export function refusedAs(verdict: Exclude<Verdict, { principal: Principal }>): Fault {
  const { refusal } = verdict;
  if (!(refusal in suspensions)) return refusals[refusal as keyof typeof refusals]();
  const [keyId, organizationId] = verdict.ids as Ids;
  return new Suspended(refusal as keyof typeof suspensions, keyId, organizationId);
}

/** Whether running requests end with this refusal. They don't if the key has only expired: they began in time. */
export function endsWhatRuns(refusal: CredentialRefusal): boolean {
  return ending.has(refusal);
}

const ending: ReadonlySet<CredentialRefusal> = new Set<CredentialRefusal>([
  "revoked",
  "replaced",
  "suspended",
  "person_suspended",
  "no_membership",
  "signed_out",
]);

/** The fault of an organization without a plan: its keys are valid, and only inference is refused. */
export function noActivePlan(): Fault {
  return new Fault("no_active_plan", "The organization has no active plan. Ask your administrator to assign one.");
}

const refusals = {
  unknown: () => unauthorized("invalid_api_key", "This API key does not exist. Check that it belongs to this service."),
  revoked: () => unauthorized("revoked_api_key", "This API key has been revoked. Use another one."),
  replaced: () =>
    unauthorized("revoked_api_key", "This API key was rotated, and its old secret was revoked. Use the new secret."),
  no_membership: () =>
    unauthorized(
      "revoked_api_key",
      "You are no longer a member of the organization that this API key belongs to. Ask your administrator.",
    ),
  signed_out: () => unauthorized("revoked_api_key", "You were signed out, and this token has ended. Sign in again."),
  unconfirmed: () =>
    unauthorized(
      "expired_api_key",
      "You have not signed in for longer than this service allows. Sign in again, and this API key works again.",
    ),
  expired: () => unauthorized("expired_api_key", "This API key has expired. Ask your administrator for a new one."),
  rotated: () =>
    unauthorized("expired_api_key", "This API key was rotated and the grace period is over. Use the new secret."),
  too_old: () =>
    unauthorized(
      "expired_api_key",
      "This API key is older than its organization allows. Ask your administrator to rotate it.",
    ),
  unused: () =>
    unauthorized(
      "expired_api_key",
      "This API key was not used for longer than its organization allows. Ask your administrator to rotate it.",
    ),
};

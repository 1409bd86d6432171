/** The verdict on a key: its principal, or the reason for its refusal, and until when it is valid. Pure. */
import { Fault } from "../inference/fault.ts";
import { type Credential, useNoted_ms } from "../store/directory.ts";
import { unauthorized } from "./credential.ts";
import { liesIn } from "./network.ts";

/** Who is calling. Shared by the requests of a second: never write to it. */
export interface Principal {
  readonly key: Readonly<Credential["key"]>;
  readonly organization: Readonly<Credential["organization"]>;
  readonly rates: Credential["rates"];
  /** The hash of the secret that was sent, in hexadecimal digits, with which the directory is asked again. */
  readonly secretHash: string;
}

/** The ids of a key and its organization. */
type Ids = readonly [keyId: string, organizationId: string];
export type Verdict =
  /**
   * `admits`: of a key that may be used from some addresses only. `isToNote`: its use is to be written down before it is
   * served, since by the last one that was the key could end as unused.
   */
  | { principal: Principal; admits?: (address: string) => boolean; isToNote?: true }
  | { refusal: "suspended"; ids: Ids }
  | { refusal: keyof typeof refusals; ids: Ids | null };
type Refusal = Extract<Verdict, { refusal: string }>["refusal"];

/** A valid key of an organization that is not served: the caller is known all the same. */
export class Suspended extends Fault {
  constructor(
    readonly keyId: string,
    readonly organizationId: string,
  ) {
    super(
      "organization_suspended",
      "The organization that this API key belongs to is suspended. Ask your administrator.",
    );
  }
}

/** A valid key, used from an address that is not among its own. */
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

/** Whether the key exists, is valid, and belongs to an active organization, by the store's clock. */
export function judge(credential: Credential | null, secretHash: string): Verdict {
  if (!credential) return { refusal: "unknown", ids: null };
  const { key, organization, rates } = credential;
  const refusal = refusalOf(credential);
  if (refusal) return { refusal, ids: [key.id, organization.id] };
  const principal = Object.freeze({ key, organization, rates, secretHash });
  return {
    principal,
    ...(key.allowedAddresses && { admits: liesIn(key.allowedAddresses) }),
    ...(isToNote(credential) && { isToNote: true }),
  };
}

function isToNote({ key, organization, readAt }: Credential): boolean {
  if (organization.keyUnusedMaxDays === null) return false;
  return key.lastUsedAt === null || readAt.getTime() - key.lastUsedAt.getTime() >= useNoted_ms;
}

function refusalOf({ key, secret, ends, organization, readAt }: Credential): Refusal | null {
  const over = (deadline: Date | null) => deadline !== null && readAt.getTime() >= deadline.getTime();
  if (key.revokedAt) return "revoked";
  if (secret.revokedAt) return "replaced";
  if (over(key.expiresAt)) return "expired";
  if (over(secret.expiresAt)) return "rotated";
  if (over(ends.lifetimeAt)) return "too_old";
  if (over(ends.unusedAt)) return "unused";
  return organization.status === "active" ? null : "suspended";
}

/** Milliseconds from the reading to the next deadline that would change the verdict. */
export function deadlineIn(credential: Credential | null): number {
  if (!credential) return Number.POSITIVE_INFINITY;
  const { key, secret, ends, readAt } = credential;
  const all = [key.expiresAt, secret.expiresAt, ends.lifetimeAt, ends.unusedAt];
  const deadlines = all.flatMap((at) => (at ? [at.getTime() - readAt.getTime()] : []));
  return Math.min(...deadlines.filter((ms) => ms > 0), Number.POSITIVE_INFINITY);
}

/** `id`: of a key or an organization. */
export function concerns(verdict: Verdict, id: string): boolean {
  if ("principal" in verdict) return verdict.principal.key.id === id || verdict.principal.organization.id === id;
  return verdict.ids?.includes(id) ?? false;
}

export function isUnknown(verdict: Verdict): boolean {
  return "refusal" in verdict && verdict.refusal === "unknown";
}

export function refusedAs(verdict: Exclude<Verdict, { principal: Principal }>): Fault {
  return verdict.refusal === "suspended" ? new Suspended(...verdict.ids) : refusals[verdict.refusal]();
}

/** Its keys are valid, and only inference is refused. */
export function noActivePlan(): Fault {
  return new Fault("no_active_plan", "The organization has no active plan. Ask your administrator to assign one.");
}

const refusals = {
  unknown: () => unauthorized("invalid_api_key", "This API key does not exist. Check that it belongs to this service."),
  revoked: () => unauthorized("revoked_api_key", "This API key has been revoked. Use another one."),
  replaced: () =>
    unauthorized("revoked_api_key", "This API key was rotated, and its old secret was revoked. Use the new secret."),
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

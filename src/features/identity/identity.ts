/** The dependencies that all kinds of sign-in share: issuers, people, stores, encryption. */
import type { Claims, Identity, Issuer } from "../../core/auth/identity.ts";
import type { UnknownCredentials } from "../../core/auth/unknown-credentials.ts";
import { idOf } from "../../core/store/ids.ts";
import type { Sealing } from "../../core/store/sealing.ts";
import { confirmPerson, NoSubject, type Occasion } from "./confirm.ts";
import { type KeptTokens, refreshed } from "./grants.ts";
import { type IssuerClients, IssuerRefused } from "./issuer-clients.ts";
import type { BrowserSessions } from "./store/browser-sessions.ts";
import type { DeviceRequests } from "./store/device-requests.ts";
import type { Confirmed, KnownPerson, Membership, People } from "./store/people.ts";
import type { SignIns } from "./store/sign-ins.ts";
import type { UseCounts } from "./store/use-counts.ts";

export interface IdentityParts {
  /** The identity settings in force; null: nobody signs in through an issuer. */
  identity(): Identity | null;
  issuers: IssuerClients;
  people: People;
  sessions: BrowserSessions;
  signIns: SignIns;
  devices: DeviceRequests;
  uses: UseCounts;
  sealing: Sealing;
  /** Limits the rate of look-ups of unknown codes and tokens. */
  unknown: UnknownCredentials;
  /** Returns bytes from a cryptographic source. */
  random(bytes: number): Uint8Array;
  newUuid(): string;
  /** This node's clock, for times that are compared only with this node's clock. */
  now_ms(): number;
}

export class NotConfigured extends Error {}

/** Thrown for a known person who may not sign in. The message is shown to the person. */
export class NotAdmitted extends Error {}

/** The settings of sign-ins. Throws NotConfigured. */
export function identityOf({ identity }: Pick<IdentityParts, "identity">): Identity {
  const settings = identity();
  if (settings === null) throw new NotConfigured("identity is not configured");
  return settings;
}

/** The issuers through which people can sign in. */
export function issuersOf({ issuers }: Identity): (Issuer & { clientId: string })[] {
  return issuers.filter((one): one is Issuer & { clientId: string } => one.clientId !== null);
}

/** The issuer with this name; null: the issuer is no longer configured, so it cannot confirm anybody. */
export function issuerNamed(identity: Identity, name: string): Issuer | null {
  return issuersOf(identity).find(({ issuer }) => issuer === name) ?? null;
}

export function secretText(random: IdentityParts["random"]): string {
  return Buffer.from(random(32)).toString("base64url");
}

export function hashOf(text: string): Uint8Array {
  return Bun.SHA256.hash(text) as Uint8Array;
}

const about = "tokens of an issuer";

export function sealedTokens({ sealing }: Pick<IdentityParts, "sealing">, kept: KeptTokens | null): Uint8Array | null {
  return kept && sealing.seal(JSON.stringify(kept), about);
}

/** Decrypts the stored tokens of an issuer. Null: none are stored, or the key that encrypted them is gone. */
export function openTokens({ sealing }: Pick<IdentityParts, "sealing">, sealed: Uint8Array | null): KeptTokens | null {
  const text = sealed && sealing.open(sealed, about);
  return text ? (JSON.parse(text) as KeptTokens) : null;
}

/** The person whom the claims identify, with the memberships that the rules give. Throws IssuerRefused, NotAdmitted. */
export async function admitted(
  parts: IdentityParts,
  issuer: Issuer,
  claims: Claims,
  occasion: Occasion = {},
): Promise<Confirmed> {
  const { people, newUuid } = parts;
  const confirming = { people, identity: identityOf(parts), newUuid };
  const confirmed = await confirmPerson(confirming, issuer, claims, occasion).catch((cause) => {
    throw cause instanceof NoSubject ? new IssuerRefused(cause.message, { cause }) : cause;
  });
  requireAdmission(confirmed);
  return confirmed;
}

/** Checks that the person may sign in: throws NotAdmitted if the person is suspended or has no membership. */
export function requireAdmission({ id, state, memberships }: KnownPerson): void {
  if (state === "suspended") throw new NotAdmitted(`You are suspended. Ask your administrator, and name ${id}.`);
  if (memberships.length > 0) return;
  throw new NotAdmitted(
    `You are known here, and may do nothing yet. Ask your administrator for a membership, and name ${id}.`,
  );
}

/**
 * Asks the issuer whether it still confirms the person. Throws IssuerRefused, IssuerAway, NotAdmitted. `tokens`: the
 * issuer's tokens to store, encrypted.
 */
export async function confirmedAgain(
  parts: IdentityParts,
  { personId, issuer: name }: { personId: string; issuer: string },
  kept: KeptTokens,
): Promise<{ known: KnownPerson; tokens: Uint8Array }> {
  const issuer = issuerNamed(identityOf(parts), name);
  if (!issuer) throw new IssuerRefused(`${name} is not in the settings any more`);
  const answer = await refreshed(await parts.issuers.of(issuer), kept);
  const known = answer.claims ? await admitted(parts, issuer, answer.claims) : await vouchedFor(parts, personId);
  if (known.id !== personId) throw new IssuerRefused("the answer is about somebody else");
  return { known, tokens: sealedTokens(parts, answer.kept)! };
}

/** Stores that the issuer has confirmed the person without sending claims; the memberships stay. */
async function vouchedFor(parts: IdentityParts, personId: string): Promise<KnownPerson> {
  const found = await parts.people.findPerson(personId);
  if (!found || found.subject === null) throw new IssuerRefused("the person is not known any more");
  const { issuer, subject, kind } = found;
  const id = idOf(parts.newUuid(), "per_");
  const known = await parts.people.confirm({ id, issuer, subject, kind, memberships: null });
  requireAdmission(known);
  return known;
}

/** The membership in an organization, which is named by its slug or id; null: there is none. */
export function membershipNamed(memberships: readonly Membership[], organization: string) {
  const isIn = (one: Membership): one is Membership & { organizationId: string } =>
    one.organizationId !== null && [one.organization, one.organizationId].includes(organization);
  return memberships.find(isIn) ?? null;
}

/** The parts that the ways in share: issuers, people, the stores, and what is sealed. */
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
  /** The settings in force; null: nobody comes in by an issuer. */
  identity(): Identity | null;
  issuers: IssuerClients;
  people: People;
  sessions: BrowserSessions;
  signIns: SignIns;
  devices: DeviceRequests;
  uses: UseCounts;
  sealing: Sealing;
  /** Bounds what codes and tokens that nobody knows may cost. */
  unknown: UnknownCredentials;
  /** From a cryptographic source. */
  random(bytes: number): Uint8Array;
  newUuid(): string;
  /** By this node's clock, for what this node alone compares. */
  now_ms(): number;
}

/** Nobody can come in here: it is not configured. */
export class NotConfigured extends Error {}

/** A known person who may not sign in. The person sees the message. */
export class NotAdmitted extends Error {}

/** Throws NotConfigured. */
export function identityOf({ identity }: Pick<IdentityParts, "identity">): Identity {
  const settings = identity();
  if (settings === null) throw new NotConfigured("identity is not configured");
  return settings;
}

/** The issuers by which people sign in. */
export function issuersOf({ issuers }: Identity): (Issuer & { clientId: string })[] {
  return issuers.filter((one): one is Issuer & { clientId: string } => one.clientId !== null);
}

/** Null: it is no longer in the settings, so nobody of it is vouched for. */
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

/** Null: there are none, or the key with which they were sealed is gone. */
export function openTokens({ sealing }: Pick<IdentityParts, "sealing">, sealed: Uint8Array | null): KeptTokens | null {
  const text = sealed && sealing.open(sealed, about);
  return text ? (JSON.parse(text) as KeptTokens) : null;
}

/** Whom the claims are about, with the memberships that the rules give. Throws IssuerRefused, NotAdmitted. */
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

/** Throws NotAdmitted. */
export function requireAdmission({ id, state, memberships }: KnownPerson): void {
  if (state === "suspended") throw new NotAdmitted(`You are suspended. Ask your administrator, and name ${id}.`);
  if (memberships.length > 0) return;
  throw new NotAdmitted(
    `You are known here, and may do nothing yet. Ask your administrator for a membership, and name ${id}.`,
  );
}

/**
 * Asks the issuer whether it still confirms somebody. Throws IssuerRefused, IssuerAway, NotAdmitted. `tokens`: what is kept from
 * now on.
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

/** The issuer confirmed the person without new claims: the memberships stay. */
async function vouchedFor(parts: IdentityParts, personId: string): Promise<KnownPerson> {
  const found = await parts.people.findPerson(personId);
  if (!found || found.subject === null) throw new IssuerRefused("the person is not known any more");
  const { issuer, subject, kind } = found;
  const id = idOf(parts.newUuid(), "per_");
  const known = await parts.people.confirm({ id, issuer, subject, kind, memberships: null });
  requireAdmission(known);
  return known;
}

/** The membership in force in an organization, which is given by slug or ID as a rule names it; null: there is none. */
export function membershipNamed(memberships: readonly Membership[], organization: string) {
  const isIn = (one: Membership): one is Membership & { organizationId: string } =>
    one.organizationId !== null && [one.organization, one.organizationId].includes(organization);
  return memberships.find(isIn) ?? null;
}

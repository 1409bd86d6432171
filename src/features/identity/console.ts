/**
 * Sessions of the console, each of a person or of an operator. A request needs two secrets of its session: the secret
 * in a cookie, which the browser sends to every port of the host, and a second secret, which only the page has and
 * sends in a header. Rules: docs/console.md, Sessions.
 */
import type { UnknownCredentials } from "../../core/auth/unknown-credentials.ts";
import { Fault } from "../../core/inference/fault.ts";
import { hashOf, type IdentityParts, secretText } from "./identity.ts";
import type { ConsoleLinks } from "./links.ts";
import { operatorNow } from "./operator.ts";
import { type CurrentSession, currentSession, lifeOf } from "./sessions.ts";
import type { SessionLife } from "./store/browser-sessions.ts";
import type { OperatorSession, OperatorSessions } from "./store/operator-sessions.ts";
import type { Operator, Operators } from "./store/operators.ts";

export interface ConsoleParts {
  /** The dependencies of sign-ins through issuers; null: nobody signs in through an issuer. */
  people: IdentityParts | null;
  sessions: OperatorSessions;
  operators: Operators;
  /** Returns the operator of a token that was typed into the page. Throws Fault. */
  typedToken(token: string, address: string): Promise<Operator>;
  /**
   * The links with which a user of this machine signs in; null: there are none, because the port is reachable from
   * other machines.
   */
  links: ConsoleLinks | null;
  /** The origins of the console; the first one is shown to users. Empty before the console listens. */
  origins(): readonly string[];
  serviceUrl(): string;
  unknown: UnknownCredentials;
  random(bytes: number): Uint8Array;
}

interface Sealed {
  /** The hash of the secret in the cookie. */
  hash: Uint8Array;
  secretHash: Uint8Array | null;
}

/**
 * A session of the console. If `operator` is null, the session began with a link that a node printed on its own
 * machine.
 */
export type ConsoleSession =
  | (Sealed & { kind: "person"; person: CurrentSession })
  | (Sealed & { kind: "operator"; operator: Operator | null; localUser: string });

const hour_ms = 3_600_000;
const defaultLife: SessionLife = { idle_ms: 8 * hour_ms, whole_ms: 24 * hour_ms };
/** The time after a sign-in within which the sign-in's code can be exchanged for the page's secret. */
const code_ms = 60_000;

export function consoleLife({ people }: Pick<ConsoleParts, "people">): SessionLife {
  const settings = people?.identity() ?? null;
  return settings ? lifeOf(settings, "console") : defaultLife;
}

/** The two secrets of a new session, for its cookie and for its page. */
export interface NewSession {
  cookie: string;
  secret: string;
}

const secretForm = /^[A-Za-z0-9_-]{43}$/;

/**
 * The session with this cookie; null: there is no such session. Without the page's secret, the session permits nothing.
 */
export async function consoleSession(
  parts: ConsoleParts,
  cookie: string | null,
  address: string,
): Promise<ConsoleSession | null> {
  if (cookie === null || !secretForm.test(cookie)) return null;
  const hash = hashOf(cookie);
  const person = parts.people?.identity() ? await currentSession(parts.people, "console", cookie) : null;
  if (person) return { kind: "person", hash, secretHash: person.session.secretHash, person };
  const found = await parts.sessions.find(hash, consoleLife(parts));
  return found && operatorSession(parts, found, address);
}

async function operatorSession(
  parts: ConsoleParts,
  { hash, secretHash, of }: OperatorSession,
  address: string,
): Promise<ConsoleSession | null> {
  if ("localUser" in of)
    return parts.links && { kind: "operator", hash, secretHash, operator: null, localUser: of.localUser };
  try {
    const operator = await operatorNow(parts.operators, of.tokenHash, address);
    return { kind: "operator", hash, secretHash, operator, localUser: operator.name };
  } catch (thrown) {
    if (!(thrown instanceof Fault && thrown.status === 401)) throw thrown;
    await parts.sessions.end(hash);
    return null;
  }
}

/** Whether `sent` is the page's secret of this session. */
export function isPageSecret({ secretHash }: ConsoleSession, sent: string | null): boolean {
  // Hashes are compared and not the secrets, so the duration of the comparison reveals nothing about the secret.
  return sent !== null && secretForm.test(sent) && secretHash !== null && Buffer.from(hashOf(sent)).equals(secretHash);
}

/**
 * Exchanges the code that this browser got at its sign-in for the page's secret. Null: the code belongs to another
 * browser, is used or has expired.
 */
export async function redeemCode(
  { people, random }: ConsoleParts,
  { cookie, code }: { cookie: string | null; code: string },
): Promise<string | null> {
  if (!people || cookie === null || !secretForm.test(cookie) || !secretForm.test(code)) return null;
  const secret = secretText(random);
  const session = { hash: hashOf(cookie), codeHash: hashOf(code), secretHash: hashOf(secret), young_ms: code_ms };
  return (await people.sessions.redeem(session)) ? secret : null;
}

/** Signs in with an operator's token, which is not stored. Throws Fault. */
export async function operatorSignIn(parts: ConsoleParts, token: string, address: string): Promise<NewSession> {
  await parts.typedToken(token, address);
  return begun(parts, { tokenHash: hashOf(token) });
}

/** Signs in with a link that a node printed on its own machine; null: the link's code is used, expired or unknown. */
export async function linkSignIn(parts: ConsoleParts, code: string): Promise<NewSession | null> {
  const localUser = parts.links?.redeem(code) ?? null;
  return localUser === null ? null : begun(parts, { localUser });
}

async function begun({ sessions, random }: ConsoleParts, of: OperatorSession["of"]): Promise<NewSession> {
  const [cookie, secret] = [secretText(random), secretText(random)];
  await sessions.begin({ hash: hashOf(cookie), secretHash: hashOf(secret), of });
  return { cookie, secret };
}

/** Ends the session of this cookie, whether a person's or an operator's. */
export async function endConsoleSession({ people, sessions }: ConsoleParts, cookie: string | null): Promise<void> {
  if (cookie === null) return;
  const hash = hashOf(cookie);
  await Promise.all([people?.sessions.end(hash), sessions.end(hash)]);
}

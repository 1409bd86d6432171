/**
 * The operations of the console's sessions: reading who is signed in, signing in, and signing out. The console's pages
 * call them: docs/console.md.
 */
import type { Call } from "../../core/http/call.ts";
import { json } from "../../core/http/json.ts";
import { Fault } from "../../core/inference/fault.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { unlisted } from "../../core/operations/unlisted.ts";
import { compact } from "../../core/protocol/json.ts";
import {
  type ConsoleParts,
  type ConsoleSession,
  consoleSession,
  endConsoleSession,
  linkSignIn,
  type NewSession,
  operatorSignIn,
  redeemCode,
} from "../../features/identity/console.ts";
import { endSessionUrl } from "../../features/identity/grants.ts";
import { identityOf, issuerNamed, issuersOf } from "../../features/identity/identity.ts";
import type { KnownPerson } from "../../features/identity/store/people.ts";
import { tryName, tryRoles } from "../http/try-model.ts";
import { verbs } from "../management/verbs.ts";
import { bounded } from "./bounded.ts";
import { consoleCookie, cookieOf, requireOwnPage, requireSession } from "./console-entrance.ts";
import { endCookie, setCookie } from "./cookies.ts";
import { readFields } from "./form.ts";
import { callerOf, organizationHeader } from "./session-caller.ts";

export function sessionOperations(parts: ConsoleParts): Operation[] {
  const served = (
    id: string,
    method: "get" | "post" | "delete",
    path: string,
    handle: (call: Call) => Promise<Response>,
  ) =>
    unlisted({
      id,
      method,
      path,
      async handle(_, call) {
        requireOwnPage(parts, call);
        return handle(call);
      },
    });
  return [
    served("getSession", "get", "/session", async (call) => {
      const session = await requireSession(parts, call);
      return json(200, await listed(parts, session, call.request.headers.get(organizationHeader)));
    }),
    served("endSession", "delete", "/session", (call) => signOut(parts, call)),
    served("listWaysIn", "get", "/session/ways", async () => json(200, waysIn(parts))),
    served("redeemSignIn", "post", "/session/secret", (call) => redeem(parts, call)),
    served("signInWithToken", "post", "/session/operator", (call) => withToken(parts, call)),
    served("signInWithLink", "post", "/session/link", (call) => withLink(parts, call)),
  ];
}

/**
 * The ways to sign in. Each issuer is a link and not a form, since the console's pages may not submit a form to another
 * host.
 */
function waysIn({ people, links }: ConsoleParts) {
  const identity = people?.identity() ?? null;
  const issuers = (identity ? issuersOf(identity) : []).map(({ issuer, name }) => ({
    name,
    href: `/sign-in?${new URLSearchParams({ issuer })}`,
  }));
  return { issuers, operator: true, embedded: links !== null };
}

/**
 * The person or operator who is signed in, with their rights in `organization`; null: in the organization in which they
 * act by default.
 */
async function listed(parts: ConsoleParts, session: ConsoleSession, organization: string | null): Promise<object> {
  const { role } = callerOf(session, organization);
  const known = session.kind === "person" ? session.person.known : null;
  const who = known
    ? { kind: "person", ...personWords(known), role: serviceRoleOf(known), memberships: membershipsOf(known) }
    : { kind: "operator", name: session.kind === "operator" ? session.localUser : "", role, memberships: [] };
  const signOutUrl = session.kind === "person" ? await issuersSignOut(parts, session.person.session.issuer) : null;
  return {
    ...who,
    embedded: parts.links !== null,
    base_url: parts.serviceUrl(),
    ...compact({ sign_out_url: signOutUrl?.href }),
    verbs: [...verbs, { name: tryName, roles: tryRoles }]
      .filter(({ roles }) => roles.includes(role))
      .map(({ name }) => name),
  };
}

const personWords = ({ id, name, email }: KnownPerson) => ({
  id,
  name: name ?? email ?? id,
  ...compact({ email }),
});

function serviceRoleOf({ memberships }: KnownPerson): string | null {
  return memberships.find(({ organizationId }) => organizationId === null)?.role ?? null;
}

function membershipsOf({ memberships }: KnownPerson) {
  return memberships
    .filter(({ organizationId }) => organizationId !== null)
    .map(({ organizationId, organization, role, team, scopes, models }) => ({
      organization_id: organizationId,
      organization,
      role,
      scopes,
      models,
      ...(team ? { team: team.name } : {}),
    }));
}

/** The URL of the issuer's page for signing out. Null: the issuer has no such page, or cannot be reached. */
async function issuersSignOut({ people, origins }: ConsoleParts, name: string): Promise<URL | null> {
  const issuer = people && issuerNamed(identityOf(people), name);
  if (!people || !issuer) return null;
  return people.issuers.of(issuer).then(
    (client) => endSessionUrl(client, `${origins()[0]}/`),
    () => null,
  );
}

async function redeem(parts: ConsoleParts, call: Call): Promise<Response> {
  const code = await textIn(call, "code");
  const cookie = cookieOf(parts, call);
  const secret = await bounded(parts, call, () => redeemCode(parts, { cookie, code }));
  if (secret === null || cookie === null) throw usedCode();
  return begun(parts, call, { cookie, secret });
}

async function withToken(parts: ConsoleParts, call: Call): Promise<Response> {
  const token = (await textIn(call, "token")).trim();
  return signedIn(parts, call, await operatorSignIn(parts, token, call.client));
}

async function withLink(parts: ConsoleParts, call: Call): Promise<Response> {
  const code = await textIn(call, "code");
  const session = await bounded(parts, call, () => linkSignIn(parts, code));
  if (session === null) throw usedCode();
  return signedIn(parts, call, session);
}

/** Gives the browser a new session, and ends the browser's earlier session. */
async function signedIn(parts: ConsoleParts, call: Call, { cookie, secret }: NewSession): Promise<Response> {
  await endConsoleSession(parts, cookieOf(parts, call));
  const headers = { "set-cookie": setCookie(consoleCookie(parts), cookie) };
  return begun(parts, call, { cookie, secret }, headers);
}

/** Sends the page the session's secret and, to save a second request, who is signed in. */
async function begun(
  parts: ConsoleParts,
  call: Call,
  { cookie, secret }: NewSession,
  headers: Record<string, string> = {},
): Promise<Response> {
  const session = await consoleSession(parts, cookie, call.client);
  if (session === null) throw usedCode();
  return json(200, { secret, session: await listed(parts, session, null) }, headers);
}

async function signOut(parts: ConsoleParts, call: Call): Promise<Response> {
  await requireSession(parts, call);
  await endConsoleSession(parts, cookieOf(parts, call));
  return json(200, {}, { "set-cookie": endCookie(consoleCookie(parts)) });
}

async function textIn(call: Call, name: string): Promise<string> {
  const text = (await readFields(call)).get(name);
  if (!text) throw new Fault("missing_field", `The field '${name}' is missing.`, { param: name });
  return text;
}

function usedCode(): Fault {
  return new Fault("missing_session", "This code is used, too old, or another browser's. Sign in again.");
}

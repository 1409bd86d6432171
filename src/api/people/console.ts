/** The console's port: sign-in, sign-out, and one page that says who one is and what one may do. */
import type { IdentityParts } from "../../identity/identity.ts";
import { identityOf, issuersOf } from "../../identity/identity.ts";
import { type CurrentSession, endSession, isFormSecret } from "../../identity/sessions.ts";
import { Fault } from "../../inference/fault.ts";
import type { Membership } from "../../store/people.ts";
import type { Operation } from "../operation.ts";
import { sessionOf } from "./bounded.ts";
import { fromIssuer, toIssuer } from "./callback.ts";
import { cookieIn, endCookie } from "./cookies.ts";
import { readFields } from "./form.ts";
import { type Html, html, page } from "./html.ts";
import { backchannelLogout } from "./leave.ts";
import { forBrowsers, type Visit } from "./place.ts";

export function consoleOperations(parts: IdentityParts): Operation[] {
  const served = (id: string, method: "get" | "post", path: string, handle: (visit: Visit) => Promise<Response>) =>
    forBrowsers(parts, "console", { id, method, path, handle });
  return [
    served("showConsole", "get", "/", show),
    served("beginSignIn", "get", "/sign-in", (visit) =>
      toIssuer(visit, { issuer: visit.query.get("issuer"), returnTo: "/" }),
    ),
    served("finishSignIn", "get", "/oauth/callback", fromIssuer),
    served("signOut", "post", "/sign-out", signOut),
    backchannelLogout(parts),
  ];
}

async function show(visit: Visit): Promise<Response> {
  const { parts, place, call } = visit;
  const secret = cookieIn(call.request.headers, place.session);
  const current = await sessionOf(visit);
  if (current) return page("Sluice", whoAndWhat(current));
  const cookies = secret === null ? [] : [endCookie(place.session)];
  return page("Sign in to Sluice", signInLinks(parts, "/sign-in"), { cookies });
}

/** A link for each issuer, since a form may not lead to another host. */
export function signInLinks(parts: IdentityParts, path: string, more: Record<string, string> = {}): Html {
  const links = issuersOf(identityOf(parts)).map(({ issuer }) => {
    const query = new URLSearchParams({ issuer, ...more });
    return html`<a class="button" href="${path}?${query.toString()}">Sign in with ${new URL(issuer).host}</a>`;
  });
  return html`<p>${links}</p>`;
}

function whoAndWhat({ known: { person, memberships }, session, formSecret }: CurrentSession): Html {
  const rows = memberships.map(
    (one) => html`<tr><td>${one.organization ?? "the service"}</td><td>${one.role}</td><td>${one.team?.name ?? "–"}</td>
<td>${mayDo(one)}</td><td>${one.source === "hand" ? "given by hand" : "by a rule"}</td></tr>
`,
  );
  const email = person.email === null ? "" : `${person.email}${person.isEmailVerified ? "" : " (not verified)"}`;
  return html`<table>
<tr><th scope="row">Name</th><td>${person.name ?? "–"}</td></tr>
<tr><th scope="row">E-mail</th><td>${email || "–"}</td></tr>
<tr><th scope="row">Issuer</th><td>${person.issuer}</td></tr>
<tr><th scope="row">Person</th><td><code>${person.id}</code></td></tr>
<tr><th scope="row">Signed in</th><td>${utc(session.createdAt)}; confirmed ${utc(person.confirmedAt)}</td></tr>
</table>
<h2>What you may do</h2>
<table>
<thead><tr><th>Where</th><th>Role</th><th>Team</th><th>Scopes and models</th><th>From</th></tr></thead>
<tbody>
${rows}</tbody>
</table>
<form method="post" action="/sign-out">
<input type="hidden" name="form_secret" value="${formSecret}">
<button>Sign out</button>
</form>`;
}

function mayDo({ organizationId, role, scopes, models }: Membership): string {
  if (organizationId === null) return role === "admin" ? "administer everything" : "read everything";
  const administers = role === "organization-admin" ? "administer it; " : "";
  return `${administers}${scopes.join(", ")}; ${models === null ? "every model" : models.join(", ")}`;
}

const utc = (at: Date) => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;

async function signOut(visit: Visit): Promise<Response> {
  const { parts, place, call } = visit;
  const secret = cookieIn(call.request.headers, place.session);
  const fields = await readFields(call);
  const current = await sessionOf(visit);
  if (current && !isFormSecret(current, fields.get("form_secret") ?? null)) throw staleForm();
  const url = current && secret ? await endSession(parts, secret, `${place.origin}/`) : null;
  const there =
    url &&
    html`<p>You may still be signed in at your identity provider.
<a class="button" href="${url.href}">Sign out at ${url.host}</a></p>`;
  const body = html`<p>Your session here has ended.</p>${there}<p><a class="button" href="/">Sign in again</a></p>`;
  return page("Signed out", body, { cookies: [endCookie(place.session)] });
}

/** The page is older than the session. */
export function staleForm(): Fault {
  return new Fault("invalid_value", "This page belongs to another session. Open it again, and try again.");
}

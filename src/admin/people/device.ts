/**
 * The page on which a person approves a device. The person signs in at the issuer first. A code in the link is filled
 * into the form, but never submitted without the person. The page shows the program and its address before the person
 * can approve.
 */

import { Fault } from "../../core/inference/fault.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { approveDevice, denyDevice, findDevice, placesOf, userCodeIn } from "../../features/identity/devices.ts";
import { type IdentityParts, identityOf, issuersOf, NotAdmitted } from "../../features/identity/identity.ts";
import { type CurrentSession, isFormSecret } from "../../features/identity/sessions.ts";
import type { PendingDevice } from "../../features/identity/store/device-requests.ts";
import { sessionOf } from "./bounded.ts";
import { fromIssuer, toIssuer } from "./callback.ts";
import { endCookie } from "./cookies.ts";
import { type Fields, readFields } from "./form.ts";
import { type Html, html, page } from "./html.ts";
import { forBrowsers, type Visit } from "./place.ts";

export function deviceOperations(parts: IdentityParts): Operation[] {
  const served = (id: string, method: "get" | "post", path: string, handle: (visit: Visit) => Promise<Response>) =>
    forBrowsers(parts, "device", { id, method, path, handle });
  return [
    served("showDevice", "get", "/device", show),
    served("beginDeviceSignIn", "get", "/device/sign-in", signIn),
    served("finishDeviceSignIn", "get", "/oauth/callback", fromIssuer),
    served("findDevice", "post", "/device", (visit) => withForm(visit, found)),
    served("decideDevice", "post", "/device/decision", (visit) => withForm(visit, decided)),
  ];
}

async function show(visit: Visit): Promise<Response> {
  const { parts, query } = visit;
  const session = await sessionOf(visit);
  if (session) return page("Approve a device", codeForm(session, codeIn(query)));
  if (issuersOf(identityOf(parts)).length === 1) return signIn(visit);
  const code = codeIn(query);
  return page("Sign in to approve a device", signInLinks(parts, "/device/sign-in", code ? { user_code: code } : {}));
}

const codeIn = (query: URLSearchParams) => userCodeIn(query.get("user_code") ?? "");

function signIn(visit: Visit): Promise<Response> {
  const code = codeIn(visit.query);
  const returnTo = code === null ? "/device" : `/device?user_code=${code}`;
  return toIssuer(visit, { issuer: visit.query.get("issuer"), returnTo });
}

function codeForm({ formSecret, known: person }: CurrentSession, code: string | null, problem = ""): Html {
  return html`<p>You are ${person.name ?? person.email ?? person.id}. A program on another device shows a code.</p>
${problem === "" ? null : html`<p><strong>${problem}</strong></p>`}
<form method="post" action="/device">
<input type="hidden" name="form_secret" value="${formSecret()}">
<label for="user_code">Code</label>
<input class="code" id="user_code" name="user_code" value="${code ?? ""}" autocomplete="off" autocapitalize="characters" required>
<button class="main">Continue</button>
</form>
<p class="note">Type a code only if you have just begun this sign-in yourself. Nobody who helps you needs one.</p>`;
}

/** Calls `handle` with the form's fields and with the session. Throws if the form was made for another session. */
async function withForm(
  visit: Visit,
  handle: (visit: Visit, session: CurrentSession, fields: Fields) => Promise<Response>,
): Promise<Response> {
  const fields = await readFields(visit.call);
  const session = await sessionOf(visit);
  if (!session) return show(visit);
  if (!isFormSecret(session, fields.get("form_secret") ?? null)) throw staleForm();
  return handle(visit, session, fields);
}

/** The device request with the typed code, or a page that says what is wrong. */
async function deviceOf({ parts, call }: Visit, session: CurrentSession, fields: Fields) {
  const text = fields.get("user_code") ?? "";
  const found = await findDevice(parts, { text, address: call.client, personId: session.known.id });
  if (typeof found === "object") return found;
  const problem =
    found === "none"
      ? "Nothing waits under this code. Look again: it may have expired."
      : "Too many wrong codes. Try again in ten minutes.";
  const status = found === "none" ? 400 : 429;
  return page("Approve a device", codeForm(session, null, problem), { status });
}

async function found(visit: Visit, session: CurrentSession, fields: Fields): Promise<Response> {
  const device = await deviceOf(visit, session, fields);
  if (device instanceof Response) return device;
  if (placesOf(session).length === 0)
    throw new NotAdmitted("You are in no organization, so no device can call for you. Ask your administrator.");
  return page("Approve this device?", decisionForm(session, device.code, device.device));
}

function decisionForm(session: CurrentSession, code: string, { agent, address, createdAt }: PendingDevice): Html {
  const person = session.known;
  const places = placesOf(session).map(
    ({ organizationId, organization, role }) =>
      html`<option value="${organizationId}">${organization} (${role})</option>
`,
  );
  return html`<table>
<tr><th scope="row">Code</th><td class="code">${code}</td></tr>
<tr><th scope="row">You are</th><td>${person.name ?? "–"} ${person.email ?? ""}</td></tr>
<tr><th scope="row">It says that it is</th><td>${agent}</td></tr>
<tr><th scope="row">It asks from</th><td>${address}</td></tr>
<tr><th scope="row">Since</th><td>${createdAt.toISOString().slice(11, 19)} UTC</td></tr>
</table>
<p>It will call models in your name, with your limits, until you sign it out or leave.</p>
<form method="post" action="/device/decision">
<input type="hidden" name="form_secret" value="${session.formSecret()}">
<input type="hidden" name="user_code" value="${code}">
<label for="organization">For the organization</label>
<select id="organization" name="organization">
${places}</select>
<p><button class="main" name="decision" value="approve">Approve</button> <button name="decision" value="deny">Deny</button></p>
</form>
<p class="note">Approve only if you see this code on a device of yours. If somebody sent you a link to this page, they would be signed in as you.</p>`;
}

async function decided(visit: Visit, session: CurrentSession, fields: Fields): Promise<Response> {
  const { parts, place } = visit;
  const device = await deviceOf(visit, session, fields);
  if (device instanceof Response) return device;
  const isApproval = fields.get("decision") === "approve";
  const organizationId = fields.get("organization") ?? "";
  const isDone = isApproval
    ? await approveDevice(parts, session, { code: device.code, organizationId })
    : await denyDevice(parts, device.code);
  const notDone =
    "This decision does not count: the code was decided elsewhere, has expired, or is not for this organization.";
  if (!isDone) return page("Approve a device", codeForm(session, null, notDone), { status: 400 });
  if (!isApproval) return page("Denied", html`<p>The device gets nothing. You can close this page.</p>`);
  const body = html`<p>The device is signed in within a few seconds. You can close this page.</p>`;
  return page("Approved", body, { cookies: [endCookie(place.session)] });
}

/** A link for each issuer, since the pages may not submit a form to another host. */
function signInLinks(parts: IdentityParts, path: string, more: Record<string, string> = {}): Html {
  const links = issuersOf(identityOf(parts)).map(({ issuer, name }) => {
    const query = new URLSearchParams({ issuer, ...more });
    return html`<a class="button" href="${path}?${query.toString()}">Sign in with ${name}</a>`;
  });
  return html`<p>${links}</p>`;
}

function staleForm(): Fault {
  return new Fault("invalid_value", "This page belongs to another session. Open it again, and try again.");
}

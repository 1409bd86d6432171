/**
 * The places at which browsers sign in: the console, on a port of its own, and the page for devices, on the port of the
 * service. Each has an origin, which the settings say and never a `Host`; cookies and a session of its own; and it answers
 * under its own name alone (docs/identity.md, Browsers).
 */
import Type from "typebox";
import type { Call } from "../../http/call.ts";
import { hostsNamed } from "../../http/host.ts";
import { type IdentityParts, identityOf, NotAdmitted, NotConfigured } from "../../identity/identity.ts";
import { IssuerAway, IssuerRefused } from "../../identity/issuer-clients.ts";
import { Fault } from "../../inference/fault.ts";
import type { SessionKind } from "../../store/browser-sessions.ts";
import type { Dependencies } from "../dependencies.ts";
import { type FaultShape, type Operation, operation } from "../operation.ts";
import { queryOf } from "../path.ts";
import type { CookieName } from "./cookies.ts";
import { html, page } from "./html.ts";

export interface Place {
  kind: SessionKind;
  /** Such as `https://console.example`. */
  origin: string;
  redirectUri: string;
  /** The cookie of a session, and that of a sign-in that has begun. */
  session: CookieName;
  attempt: CookieName;
}

/** Throws NotConfigured. */
export function placeOf(parts: IdentityParts, kind: SessionKind): Place {
  const { consoleUrl, serviceUrl } = identityOf(parts);
  const origin = kind === "console" ? consoleUrl : serviceUrl;
  if (origin === null) throw new NotConfigured(`there is no address for ${kind}`);
  return {
    kind,
    origin,
    redirectUri: `${origin}/oauth/callback`,
    // Cookies ignore ports, so both places may get the cookies of the other.
    session: { name: `sluice-${kind}`, origin },
    attempt: { name: `sluice-${kind}-sign-in`, origin },
  };
}

export interface Visit {
  dependencies: Dependencies;
  call: Call;
  parts: IdentityParts;
  place: Place;
  query: URLSearchParams;
}

interface Served {
  id: string;
  method: "get" | "post";
  path: string;
  handle(visit: Visit): Promise<Response>;
}

/** An operation for browsers at this place: under its own name, and what changes something from its own pages alone. */
export function forBrowsers(parts: IdentityParts, kind: SessionKind, { id, method, path, handle }: Served): Operation {
  return unlisted({
    id,
    method,
    path,
    type: "text/html",
    async handle(dependencies, call) {
      try {
        const place = placeOf(parts, kind);
        requireHost(call, place);
        if (method === "post") requireOrigin(call, place);
        return await handle({ dependencies, call, parts, place, query: queryOf(call.request) });
      } catch (thrown) {
        return refused(dependencies, call, kind, thrown);
      }
    },
  });
}

/** An operation that is served and is in no contract. */
export function unlisted(served: {
  id: string;
  method: "get" | "post" | "delete";
  path: string;
  type: string;
  faultShape?: FaultShape;
  handle: Operation["handle"];
}): Operation {
  const { id, method, path, type, handle, faultShape = "error" } = served;
  return operation({
    operationId: id,
    method,
    path,
    tag: "Documentation",
    summary: path,
    description: path,
    scope: null,
    faults: [],
    otherFaults: false,
    examples: [],
    faultShape,
    success: { description: path, headers: [], content: { [type]: { schema: Type.String() } } },
    handle,
  });
}

/** `origin`: the first of the place. */
export function requireHost({ request }: Call, { origin }: Pick<Place, "origin">): void {
  if (hostsNamed([new URL(origin).hostname])(request.headers.get("host"))) return;
  throw new Fault("host_not_allowed", `This page doesn't answer to this host name. Use ${origin}.`);
}

function requireOrigin({ request }: Call, { origin }: Place): void {
  if (request.headers.get("origin") === origin) return;
  throw new Fault("invalid_value", `This has to come from a page of ${origin}. Open it there, and try again.`);
}

/** A path that is not configured is not there. */
export function notThere(call: Call): Fault {
  return new Fault("route_not_found", `There is nothing at '${call.route}'. /openapi.json lists all paths.`);
}

function refused({ log }: Dependencies, call: Call, kind: SessionKind, thrown: unknown): Response {
  if (thrown instanceof NotConfigured) throw notThere(call);
  const back = html`<p><a class="button" href="${kind === "console" ? "/" : "/device"}">Begin again</a></p>`;
  if (thrown instanceof NotAdmitted)
    return page("You may not come in", html`<p>${thrown.message}</p>${back}`, { status: 403 });
  if (thrown instanceof IssuerRefused) {
    log.event("info", "sign_in_refused", { request_id: call.requestId, cause: thrown.message });
    const why = html`<p>This sign-in did not work. Begin again; if that does not help, ask your administrator, and name
<code>${call.requestId}</code>.</p>`;
    return page("Not signed in", html`${why}${back}`, { status: 400 });
  }
  if (thrown instanceof IssuerAway) {
    log.event("warn", "issuer_away", { request_id: call.requestId, cause: thrown.message });
    const why = html`<p>Your identity provider does not answer at the moment. Please try again.</p>`;
    return page("Not signed in", html`${why}${back}`, { status: 503 });
  }
  throw thrown;
}

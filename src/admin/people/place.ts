/**
 * The two places (sites) at which browsers sign in: the console, on a separate port, and the page for devices, on the
 * port of the service. Each place has its origin from the settings, never from a `Host`; it has its own cookies and
 * sessions; and it answers only requests for its own host name (docs/identity.md, The console).
 */
import type { Call } from "../../core/http/call.ts";
import { Fault } from "../../core/inference/fault.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { queryOf } from "../../core/operations/path.ts";
import { notThere, unlisted } from "../../core/operations/unlisted.ts";
import { type IdentityParts, identityOf, NotAdmitted, NotConfigured } from "../../features/identity/identity.ts";
import { IssuerAway, IssuerRefused } from "../../features/identity/issuer-clients.ts";
import type { SessionKind } from "../../features/identity/store/browser-sessions.ts";
import { hostsNamed } from "../http/host.ts";
import type { CookieName } from "./cookies.ts";
import { html, page } from "./html.ts";

export interface SignInPlace {
  kind: SessionKind;
  /** The origin of the place, such as `https://console.example`. */
  origin: string;
  redirectUri: string;
  /** The names of the cookie of a session, and of the cookie of a sign-in that has begun. */
  session: CookieName;
  attempt: CookieName;
}

/** The sign-in place of this kind, from the settings. Throws NotConfigured. */
export function placeOf(parts: IdentityParts, kind: SessionKind): SignInPlace {
  const { consoleUrl, serviceUrl } = identityOf(parts);
  const origin = kind === "console" ? consoleUrl : serviceUrl;
  if (origin === null) throw new NotConfigured(`there is no address for ${kind}`);
  return {
    kind,
    origin,
    redirectUri: `${origin}/oauth/callback`,
    // The places have different cookie names: browsers ignore ports in cookies, so a place may receive the other
    // place's cookies.
    session: { name: `sluice-${kind}`, origin },
    attempt: { name: `sluice-${kind}-sign-in`, origin },
  };
}

export interface Visit {
  dependencies: Dependencies;
  call: Call;
  parts: IdentityParts;
  place: SignInPlace;
  query: URLSearchParams;
}

interface Served {
  id: string;
  method: "get" | "post";
  path: string;
  handle(visit: Visit): Promise<Response>;
}

/**
 * An operation for browsers at a sign-in place. The operation is served only under the host name of the place, and
 * accepts a POST only from the place's own pages.
 */
export function forBrowsers(parts: IdentityParts, kind: SessionKind, { id, method, path, handle }: Served): Operation {
  return unlisted({
    id,
    method,
    path,
    type: "text/html",
    async handle(dependencies, call) {
      try {
        const place = placeOf(parts, kind);
        requireHost(call, [place.origin], "This page");
        if (method === "post") requireOrigin(call, [place.origin]);
        return await handle({ dependencies, call, parts, place, query: queryOf(call.request) });
      } catch (thrown) {
        return refused(dependencies, call, kind, thrown);
      }
    },
  });
}

/** Refuses a request whose `Host` is not the host of one of the origins. `what`: the beginning of the message. */
export function requireHost({ request }: Call, origins: readonly string[], what: string): void {
  if (hostsNamed(origins.map((origin) => new URL(origin).hostname))(request.headers.get("host"))) return;
  throw new Fault("host_not_allowed", `${what} doesn't answer to this host name. Use ${origins[0] ?? ""}.`);
}

export function requireOrigin({ request }: Call, origins: readonly string[]): void {
  if (origins.includes(request.headers.get("origin") ?? "")) return;
  const page = `a page of ${origins[0] ?? ""}`;
  throw new Fault("invalid_value", `This has to come from ${page}. Open it there, and try again.`);
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

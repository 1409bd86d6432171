/**
 * The page at the address of the service, for people who open it in a browser; programs that probe there get JSON. The
 * page shows the public address from the settings, else the address that the browser called.
 */
import type { Identity } from "../../core/auth/identity.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { issuersOf } from "../../features/identity/identity.ts";
import { prefersPage } from "./files.ts";
import { type Html, html, page } from "./html.ts";

interface WelcomeParts {
  /** The issuers and rules in force; null: nobody signs in through an issuer. */
  identity(): Identity | null;
  /** The addresses of the console. Several addresses are all on this machine. Empty: the console does not listen. */
  consoleOrigins(): readonly string[];
  /** Whether the port itself speaks HTTPS, which the URL of a request does not say (core/http/listen.ts). */
  isSecure: boolean;
}

export function withWelcome(probe: Operation, parts: WelcomeParts): Operation {
  return {
    ...probe,
    handle: (dependencies, call, given) =>
      prefersPage(call.request) ? welcome(parts, call.request) : probe.handle(dependencies, call, given),
  };
}

function welcome({ identity, consoleOrigins, isSecure }: WelcomeParts, request: Request): Response {
  const settings = identity();
  const here = originOf(request, isSecure);
  const url = settings?.serviceUrl ?? here.origin;
  const console = consoleFor(consoleOrigins(), here.hostname);
  const isForPeople = settings !== null && issuersOf(settings).length > 0;
  const body = html`<p>This is a model inference service. Programs call it at this address.</p>
${console ? entrance(console) : html`<p class="note">Ask the people who run it for a key.</p>`}
<h2>Base URL for programs</h2>
<table>
<tr><th scope="row">OpenAI's clients</th><td><code>${url}/v1</code></td></tr>
<tr><th scope="row">Anthropic's clients</th><td><code>${url}</code></td></tr>
</table>
<h2>An agent in a terminal</h2>
<pre>sluice login ${url}${isForPeople ? "" : " --key"}
sluice claude</pre>
<p class="note">Or <code>sluice codex</code>, or <code>sluice opencode</code>.</p>
<h2>Documents</h2>
<ul>
<li><a href="docs">The interface</a>: each operation, with examples to try</li>
<li><a href="openapi.json">Its contract</a>, in OpenAPI</li>
${isForPeople ? html`<li><a href="device">Approve a device</a> that shows a code</li>\n` : null}<li><a href="readyz?verbose">Its state</a></li>
</ul>`;
  return page("Sluice", body, { heading: html`${mark} Sluice` });
}

const entrance = (console: string): Html =>
  html`<p><a class="button main" href="${console}/">Sign in</a><a class="button" href="${console}/connect">Connect</a></p>`;

/** The address that the browser called. If a proxy in front speaks HTTPS, a header says so. */
function originOf({ url, headers }: Request, isSecure: boolean): URL {
  const here = new URL(url);
  if (isSecure || headers.get("x-forwarded-proto") === "https") here.protocol = "https:";
  return here;
}

/**
 * The address of the console for this browser. If there are several, which are all on this machine, it is the address
 * with the host name that the browser called; null: there is none.
 */
function consoleFor(origins: readonly string[], hostname: string): string | null {
  const [first] = origins;
  if (first === undefined || origins.length === 1) return first ?? null;
  return origins.find((origin) => new URL(origin).hostname === hostname) ?? null;
}

/** The console's logo (console/frame.tsx). */
const mark = html`<svg class="mark" viewBox="0 0 16 16" aria-hidden="true"><path d="M2 1.5h2.2v13H2zM11.8 1.5H14v13h-2.2zM5.5 3h5v5h-5z"/><path class="stream" d="M5.5 10h5v1.2h-5zM5.5 12.8h5V14h-5z"/></svg>`;

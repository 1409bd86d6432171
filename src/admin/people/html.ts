/** Pages without a script: text that is always escaped, one style, and a policy that allows nothing else. Pure. */

/** Text that needs no escaping. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | null | readonly Part[];

/** A template whose values are escaped, unless they are HTML. Null is nothing. */
export function html(texts: TemplateStringsArray, ...values: Part[]): Html {
  return new Html(texts.map((text, index) => text + textOf(values[index] ?? null)).join(""));
}

function textOf(part: Part): string {
  if (part === null) return "";
  if (part instanceof Html) return part.text;
  return typeof part === "object" ? part.map(textOf).join("") : escaped(String(part));
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => entities[one]!);
}

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 44rem; margin: 3rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid #8884; vertical-align: top }
code, .code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
.code { font-size: 1.5rem; letter-spacing: .1em }
input, select, button, a.button { font: inherit; padding: .45rem .9rem; border: 1px solid #888; border-radius: .3rem }
a.button { display: inline-block; text-decoration: none; margin: 0 .5rem .5rem 0 }
button.main { background: #1d4ed8; border-color: #1d4ed8; color: #fff }
form { margin: 1rem 0 } label { display: block; margin: .75rem 0 .25rem }
.note { opacity: .75; font-size: .9rem }
`;

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${new Bun.CryptoHasher("sha256").update(style).digest("base64")}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

/** The headers of every answer to a browser. Forms would come without their origin if our own pages got no referrer. */
const browserHeaders = {
  "cache-control": "no-store",
  "content-security-policy": policy,
  "referrer-policy": "same-origin",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

interface PageOptions {
  status?: number;
  cookies?: readonly string[];
}

export function page(title: string, body: Html, { status = 200, cookies = [] }: PageOptions = {}): Response {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Sluice</title>
<style>${new Html(style)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;
  const headers = { ...browserHeaders, "content-type": "text/html; charset=utf-8" };
  return withCookies(new Response(document.text, { status, headers }), cookies);
}

/** Sends the browser on, with GET. */
export function redirect(url: string, cookies: readonly string[] = []): Response {
  return withCookies(new Response(null, { status: 303, headers: { ...browserHeaders, location: url } }), cookies);
}

function withCookies(response: Response, cookies: readonly string[]): Response {
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}

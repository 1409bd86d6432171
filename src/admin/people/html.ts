/**
 * Pages without scripts: all text is escaped, and the content security policy allows only the one style sheet. Pure.
 */

export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | null | readonly Part[];

/** A template whose values are escaped, unless they are HTML. Null adds nothing. */
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

/** The colors are the same as in the console (console/style/theme.css). */
const style = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f7f8f8, #0f1315); --surface: light-dark(#fff, #161b1e); --line: light-dark(#dde1e3, #2a3236);
  --edge: light-dark(#83898e, #6d777d); --text: light-dark(#15191c, #e6eaec); --soft: light-dark(#4a5359, #b3bcc1);
  --accent: light-dark(#0a6b62, #5cc9ba); --on-accent: light-dark(#fff, #06211e);
  background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif
}
body { max-width: 44rem; margin: 3rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; line-height: 2rem; letter-spacing: -.01em } h2 { font-size: 1rem; margin: 2rem 0 .5rem }
a { color: var(--accent) } .mark { width: 1.1em; height: 1.1em; vertical-align: -.15em; fill: currentColor }
.stream { fill: var(--accent) } ul { padding-left: 1.2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
code, pre, .code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere }
pre { padding: .75rem 1rem; border: 1px solid var(--line); border-radius: 6px; background: var(--surface); white-space: pre-wrap }
.code { font-size: 1.5rem; letter-spacing: .1em }
input, select, button, a.button {
  font: inherit; padding: .4rem .9rem; border: 1px solid var(--edge); border-radius: 6px;
  background: var(--surface); color: var(--text)
}
a.button { display: inline-block; text-decoration: none; margin: 0 .5rem .5rem 0 }
button.main, a.button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
form { margin: 1rem 0 } label { display: block; margin: .75rem 0 .25rem }
.note { color: var(--soft); font-size: .9rem }
`;

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${new Bun.CryptoHasher("sha256").update(style).digest("base64")}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

/**
 * The headers of every response to a browser. The referrer policy lets browsers send a referrer to the pages of this
 * server: without a referrer, they would send forms without an `Origin`.
 */
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
  /** The heading; absent: the title. */
  heading?: Html;
}

export function page(title: string, body: Html, { status = 200, cookies = [], heading }: PageOptions = {}): Response {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === "Sluice" ? title : `${title} · Sluice`}</title>
<style>${new Html(style)}</style>
</head>
<body>
<main>
<h1>${heading ?? title}</h1>
${body}
</main>
</body>
</html>
`;
  const headers = { ...browserHeaders, "content-type": "text/html; charset=utf-8" };
  return withCookies(new Response(document.text, { status, headers }), cookies);
}

/** Redirects the browser to a URL, which it then requests with GET. */
export function redirect(url: string, cookies: readonly string[] = []): Response {
  return withCookies(new Response(null, { status: 303, headers: { ...browserHeaders, location: url } }), cookies);
}

function withCookies(response: Response, cookies: readonly string[]): Response {
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}

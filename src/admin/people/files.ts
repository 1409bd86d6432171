/**
 * Serves the files of the console: one HTML document at the addresses of all pages, and assets whose names contain a
 * hash.
 */
import { gzipSync } from "node:zlib";
import { takesGzip } from "../../core/http/accept.ts";
import { pathOf } from "../../core/operations/path.ts";
import type { ConsoleFile, ConsoleFiles } from "../console/files.ts";

/**
 * The content security policy of a page. The only inline script that may run is `script`, which the build put into the
 * document.
 */
const policyWith = (script: string) =>
  [
    "default-src 'none'",
    script === "" ? "script-src 'self'" : `script-src 'self' 'sha256-${sha256(script)}'`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");

const sha256 = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("base64");

const headers = {
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

export const assetsPath = "/assets/{id}";

export interface ConsolePages {
  document(request: Request): Response;
  /** The response with the requested asset; null: there is no such file. */
  asset(request: Request): Response | null;
}

export function consolePages({ document, script, assets }: ConsoleFiles): ConsolePages {
  const html = { bytes: new TextEncoder().encode(document), type: "text/html; charset=utf-8" };
  const policy = policyWith(script);
  const page = served(html, { policy, caching: "no-cache" });
  const ofAsset = { policy, caching: "public, max-age=31536000, immutable" };
  const files = new Map([...assets].map(([path, file]) => [path, served(file, ofAsset)]));
  return { document: page, asset: (request) => files.get(pathOf(request))?.(request) ?? null };
}

/**
 * Reports whether the request comes from a browser that wants a page, and not from a program that calls a path which
 * does not exist.
 */
export function wantsPage({ method, headers }: Request): boolean {
  return (method === "GET" || method === "HEAD") && /\btext\/html\b/i.test(headers.get("accept") ?? "");
}

/** Reports whether the request prefers a page to JSON, at an address that serves both. */
export function prefersPage(request: Request): boolean {
  return wantsPage(request) && weightOf(request, "text/html") > weightOf(request, "application/json");
}

/** The weight of a media type in `accept`; 0 if `accept` does not name the type. */
function weightOf({ headers }: Request, type: string): number {
  for (const one of (headers.get("accept") ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = one.split(";").map((part) => part.trim());
    if (name === type) return Number(parameters.find((part) => part.startsWith("q="))?.slice(2) ?? 1);
  }
  return 0;
}

interface Serving {
  policy: string;
  caching: string;
}

/** Serves a file. The file is compressed for the first client that accepts gzip, and the compressed bytes are kept. */
function served({ bytes, type }: ConsoleFile, { policy, caching }: Serving): (request: Request) => Response {
  const own = new Uint8Array(bytes);
  const etag = `"${Bun.hash(own).toString(36)}"`;
  let zipped: Uint8Array<ArrayBuffer> | null = null;
  return ({ headers: requestHeaders }) => {
    const all = {
      ...headers,
      "content-security-policy": policy,
      "content-type": type,
      "cache-control": caching,
      vary: "accept-encoding",
      etag,
    };
    if (requestHeaders.get("if-none-match")?.includes(etag)) return new Response(null, { status: 304, headers: all });
    if (!takesGzip(requestHeaders.get("accept-encoding"))) return new Response(own, { headers: all });
    zipped ??= new Uint8Array(gzipSync(own, { level: 9 }));
    return new Response(zipped, { headers: { ...all, "content-encoding": "gzip" } });
  };
}

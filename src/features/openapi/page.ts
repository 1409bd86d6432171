/**
 * Serves /docs: Scalar, through @elysiajs/swagger, renders our document in the reader's browser without a request to any
 * other host. The script comes from this binary. The fonts and the request proxy of its maker are off, and the policy of the
 * page would refuse them. The plugin's own OpenAPI (3.0, from routes) is not exposed. See
 * docs/design/service.md, The contract.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { ElysiaSwaggerConfig } from "@elysiajs/swagger";
import { Elysia } from "elysia";
import scalarFile from "../../../node_modules/@scalar/api-reference/dist/browser/standalone.js" with { type: "file" };
import { takesGzip } from "../../core/http/accept.ts";
import { contractTitle } from "./document.ts";

export const docsPath = "/docs";
export const docsScriptPath = "/docs/scalar.js";
const script_cached_s = 24 * 3600;

/**
 * The content security policy of the page: it may run our script, send requests to this host, and apply inline styles.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  // The script writes its styles into the page.
  "style-src 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Some of these settings are missing in the plugin's types, which are older than the script. They must not contain
 * apostrophes, because they are written into an attribute.
 */
const settings = {
  customCss: " ",
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  documentDownloadType: "direct",
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  authentication: { preferredSecurityScheme: "bearer" },
  modelsSectionLabel: "Schemas",
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: "preserve",
  favicon: "data:,",
};

/** The function that answers requests for the page, which is rendered once. */
export function docsPage(
  options: PageOptions = { title: contractTitle, document: "openapi.json" },
): () => Promise<Response> {
  let html: Promise<string> | null = null;
  return async () => {
    html ??= renderPage(options);
    return new Response(await html, {
      headers: {
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
      },
    });
  };
}

/** `document`: the relative path of the document, so that the page also works behind a path prefix. */
interface PageOptions {
  title: string;
  document: string;
}

async function renderPage({ title, document }: PageOptions): Promise<string> {
  // The plugin is loaded when the page is first needed, because it holds large themes.
  const { swagger } = await import("@elysiajs/swagger");
  const documented = new Elysia().use(
    swagger({
      path: docsPath,
      scalarCDN: docsScriptPath.slice(1),
      scalarConfig: { spec: { url: document }, ...settings } as NonNullable<ElysiaSwaggerConfig["scalarConfig"]>,
      documentation: { info: { title, description: `${title}: API reference`, version: "" } },
    }),
  );
  const page = await documented.handle(new Request(`http://localhost${docsPath}`));
  // Between its tags, the script element with the settings contains a line break. The policy would take that for an
  // inline script.
  return (await page.text()).replace(/>\s+<\/script>/g, "></script>");
}

interface Script {
  zipped: Uint8Array<ArrayBuffer>;
  etag: string;
}

/** The function that answers requests for the script, which is read and compressed once, off the event loop. */
export function docsScript(): (requestHeaders: Headers) => Promise<Response> {
  let script: Promise<Script> | null = null;
  return async (requestHeaders) => {
    script ??= readScript().catch((cause) => {
      script = null;
      throw cause;
    });
    const { zipped, etag } = await script;
    const headers = {
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": `public, max-age=${script_cached_s}`,
      vary: "accept-encoding",
      etag,
    };
    if (requestHeaders.get("if-none-match")?.includes(etag)) return new Response(null, { status: 304, headers });
    if (!takesGzip(requestHeaders.get("accept-encoding"))) return new Response(Bun.file(scalarFile), { headers });
    return new Response(zipped, { headers: { ...headers, "content-encoding": "gzip" } });
  };
}

async function readScript(): Promise<Script> {
  const plain = new Uint8Array(await Bun.file(scalarFile).arrayBuffer());
  const zipped = new Uint8Array(await promisify(gzip)(plain));
  return { zipped, etag: `W/"${Bun.hash(plain).toString(36)}"` };
}

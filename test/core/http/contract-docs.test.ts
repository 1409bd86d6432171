/** /docs shows the contract and requests nothing from any other host. */
import { describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { docsPage, docsScript } from "../../../src/features/openapi/page.ts";

const script = docsScript();
const asking = (headers: Record<string, string>) => script(new Headers(headers));

const response = await docsPage()();
const html = await response.text();

describe("the page", () => {
  test("names the service, and nothing of the product", () => {
    expect(html).toContain("<title>Model inference service</title>");
    expect(html.toLowerCase()).not.toContain("sluice");
  });

  test("loads its script and the document from this host, by relative addresses, and nothing else", () => {
    const loaded = [...html.matchAll(/\b(?:src|href|data-url)=["']([^"']*)["']/g)].map(([, url]) => url);
    expect(loaded.sort()).toEqual(["docs/scalar.js", "openapi.json"]);
    expect(html).not.toMatch(/https?:|\/\/[a-z]/i);
  });

  test("has a policy that lets nothing come from another host, and no inline script", () => {
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'"])
      expect(policy).toContain(rule);
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(html).not.toMatch(/<script[^>]*>\s*[^\s<]/);
  });

  test("switches off what would call home", () => {
    const settings = JSON.parse(/data-configuration='([^']*)'/.exec(html)?.[1] ?? "") as Record<string, unknown>;
    expect(settings).toMatchObject({ withDefaultFonts: false, telemetry: false, agent: { disabled: true } });
    expect(settings).not.toHaveProperty("proxyUrl");
  });
});

describe("the script", () => {
  test("is sent as gzip to those who take it, and plain to others; both are the same", async () => {
    const zipped = await asking({ "accept-encoding": "br, gzip;q=0.8" });
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    const plain = await asking({ "accept-encoding": "gzip;q=0, identity" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    const bytes = Buffer.from(await plain.arrayBuffer());
    expect(gunzipSync(await zipped.arrayBuffer()).equals(bytes)).toBe(true);
    expect(bytes.toString("utf8", 0, 200_000)).toContain("scalar");
    expect(plain.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  });

  test("is not sent again to those who have it", async () => {
    const etag = (await asking({})).headers.get("etag") ?? "";
    const again = await asking({ "if-none-match": `"other", ${etag}` });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect((await asking({ "if-none-match": '"other"' })).status).toBe(200);
  });
});

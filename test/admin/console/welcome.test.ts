/** The root path of the service returns a page for people, and JSON for probes. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { launchBrowser, noBrowser, openTab } from "./chromium.ts";

setDefaultTimeout(60_000);

const browsers = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
let node: PeopleNode;
let plain: Sluice;
beforeAll(async () => {
  [node, plain] = await Promise.all([startPeopleNode({ issuerLines: ["name: Acme login"] }), startSluice()]);
});
afterAll(async () => {
  await node[Symbol.asyncDispose]();
  await plain.stop();
}, 60_000);

const asked = (url: string, accept: string, more: Record<string, string> = {}) =>
  fetch(`${url}/`, { headers: { accept, ...more } });

test.each(["*/*", "application/json", "application/json, text/html;q=0.9", "text/html;q=0"])(
  "a probe that accepts %s gets JSON",
  async (accept) => {
    const answer = await asked(node.serviceUrl, accept);
    expect(answer.headers.get("content-type")).toStartWith("application/json");
    expect(await answer.json()).toEqual({ status: "ok" });
  },
);

test("a browser gets a page with sign-in, Connect, addresses and documents, which may do nothing", async () => {
  const answer = await asked(node.serviceUrl, browsers);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(answer.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/);
  expect(answer.headers.get("x-service-request-id")).toMatch(/^req_/);
  const page = await answer.text();
  for (const part of [
    `href="${node.consoleUrl}/"`,
    `href="${node.consoleUrl}/connect"`,
    `<code>${node.serviceUrl}/v1</code>`,
    `sluice login ${node.serviceUrl}\n`,
  ])
    expect(page).toContain(part);
  for (const [, path] of page.matchAll(/<li><a href="([^"]+)"/g))
    expect((await fetch(`${node.serviceUrl}/${path}`, { redirect: "manual" })).status).toBeLessThan(400);
});

test("without people it shows the address by which the browser came, and the way in by a key", async () => {
  const page = await (await asked(plain.url, browsers, { "x-forwarded-proto": "https" })).text();
  const url = plain.url.replace("http:", "https:");
  expect(page).toContain(`sluice login ${url} --key\n`);
  expect(page).not.toContain('href="device"');
});

test("the button that signs in has the issuer's name of the settings", async () => {
  const ways = await (await fetch(`${node.consoleUrl}/session/ways`)).json();
  expect(ways).toMatchObject({ issuers: [{ name: "Acme login" }] });
});

test.skipIf(noBrowser !== null)("the page is readable by everybody in both themes, and loads nothing", async () => {
  const browser = await launchBrowser();
  for (const theme of ["light", "dark"] as const)
    for (const width of [320, 1440]) {
      const tab = await openTab(node.serviceUrl, { theme, width }, browser);
      await tab.page.goto(`${node.serviceUrl}/`);
      const seen = {
        theme,
        width,
        problems: await tab.axeProblems(),
        overflow: await tab.overflow_px(),
        log: tab.found,
      };
      expect(seen).toEqual({ theme, width, problems: [], overflow: 0, log: [] });
      await tab.context.close();
    }
  await browser.close();
});

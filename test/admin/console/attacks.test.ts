// Attacks in a real browser on the console's pages, and on the session of a user who is signed in: docs/attacks.md.
import { expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import { type ConsoleNode, markup, type Role, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

describeInBrowser("an attack on the console", () => {
  let node: ConsoleNode;

  const newTab = browserForTests(startConsoleNode, (...started) => ([node] = started));
  const signedIn = async (role: Role) => signInAs(await newTab(node.url), node, role);

  test("a page of another port of the host frames nothing, and reads and changes nothing with the cookie", async () => {
    const tab = await signedIn("admin");
    const port = Number(new URL(node.url).port);
    // Ports do not distinguish sites, so the browser sends the console's cookie with this page's requests, too.
    using evil = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () =>
        new Response(`<!doctype html><title>evil</title><iframe src="http://127.0.0.1:${port}/"></iframe>`, {
          headers: { "content-type": "text/html" },
        }),
    });
    const page = await tab.context.newPage();
    const refusals: string[] = [];
    page.on("console", (message) => refusals.push(message.text()));
    await page.goto(evil.url.href);
    await until(() => refusals.some((text) => /frame/i.test(text)), 10_000, "the refusal to be framed");
    expect(page.frames()[1]?.url() ?? "").not.toContain(`${port}`);
    const tried = await page.evaluate(async (url) => {
      const asked = async (path: string, init: RequestInit) =>
        fetch(url + path, { credentials: "include", ...init }).then(
          async (answer) => `read ${answer.type} ${await answer.text()}`,
          () => "unreadable",
        );
      return [
        await asked("/session", {}),
        await asked("/session/ways", {}),
        await asked("/management/v1/organizations", {}),
        await asked("/management/v1/organizations", {
          method: "POST",
          mode: "no-cors",
          headers: { "content-type": "text/plain" },
          body: '{"slug":"evil"}',
        }),
      ];
    }, node.url);
    expect(tried).toEqual(["unreadable", "unreadable", "unreadable", "read opaque "]);
    const organizations = await node.sluice.json<{ slug: string }[]>("org", "list");
    expect(organizations.map(({ slug }) => slug)).not.toContain("evil");
  });

  test("the cookie in another browser, with any secret, yields neither the page's secret nor an answer", async () => {
    const tab = await signedIn("admin");
    const { context, page } = await newTab(node.url);
    await context.addCookies(await tab.context.cookies());
    await page.goto(node.url);
    await page.waitForSelector("#token");
    const statuses = await page.evaluate(async (made) => {
      const asked = async (path: string, init: RequestInit = {}) => (await fetch(path, init)).status;
      const json = { "content-type": "application/json" };
      return [
        await asked("/session"),
        await asked("/session", { headers: { "x-sluice-console": made } }),
        await asked("/session/secret", { method: "POST", headers: json, body: JSON.stringify({ code: made }) }),
        await asked("/session/link", { method: "POST", headers: json, body: JSON.stringify({ code: made }) }),
        await asked("/session", { method: "DELETE" }),
        await asked("/management/v1/organizations"),
      ];
    }, "A".repeat(43));
    expect(statuses).toEqual([401, 401, 401, 401, 401, 401]);
    await tab.visit("/organizations");
    expect(await tab.page.locator("main tbody tr").count()).toBeGreaterThan(1);
  });

  test("no script of the page's own address reads the cookie, and no secret stands in an address or a store that stays", async () => {
    const tab = await signedIn("member");
    const read = <Value>(expression: string) => tab.page.evaluate<Value>(expression);
    expect(await read("document.cookie")).toBe("");
    expect(await read("localStorage.length")).toBe(0);
    expect(tab.page.url()).toBe(`${node.url}/`);
  });

  test("a suspended member's page is the page of sign-in, within a second of her next look", async () => {
    const tab = await signedIn("member");
    await tab.visit("/connect");
    await node.sluice.cli("person", "suspend", node.people.member.id);
    const suspended_ms = performance.now();
    const status = () =>
      tab.page.evaluate(async () => {
        const secret = sessionStorage.getItem("sluice-console") ?? "";
        return (await fetch("/management/v1/keys", { headers: { "x-sluice-console": secret } })).status;
      });
    await until(async () => (await status()) === 401, 5_000, "the end of the session");
    expect(performance.now() - suspended_ms).toBeLessThan(2_000 * busyness());
    await tab.page.locator("nav.rail a", { hasText: "Requests" }).click();
    await tab.page.getByRole("link", { name: /^Sign in with / }).waitFor();
    await node.sluice.cli("person", "resume", node.people.member.id);
  });

  test("a new tab of the same browser is let in, and signing out in one ends the other, whose stream stops", async () => {
    const tab = await signedIn("viewer");
    const next = await tab.context.newPage();
    await next.goto(`${node.url}/`);
    await next.locator(".live").waitFor();
    await tab.page.getByRole("button", { name: "Sign out" }).click();
    await tab.page.waitForSelector("#token");
    await next.waitForSelector("#token");
  });

  test("a new tab is let in by the session that counts, though a tab of yesterday answers sooner", async () => {
    const tab = await signedIn("viewer");
    await tab.page.evaluate(() => {
      const post = BroadcastChannel.prototype.postMessage;
      BroadcastChannel.prototype.postMessage = function (data) {
        setTimeout(() => post.call(this, data), data === "who?" ? 0 : 50);
      };
      const old = new BroadcastChannel("sluice-console");
      old.onmessage = ({ data }) => data === "who?" && post.call(old, { secret: "A".repeat(43) });
    });
    const next = await tab.context.newPage();
    await next.goto(`${node.url}/`);
    await next.locator(".live").waitFor();
  });

  test("markup in every name and label that anybody gives is shown as the text that it is", async () => {
    const tab = await signedIn("admin");
    const { sluice, people } = node;
    await sluice.json("usage", "adjust", "marked", "--window", "month", "--amount", "5", "--reason", markup);
    for (const [path, least] of [
      ["/organizations", 1],
      ["/organizations/marked", 2],
      ["/organizations/marked/limits", 1],
      ["/organizations/marked/teams", 1],
      ["/organizations/marked/keys", 2],
      ["/organizations/marked/audit", 3],
      ["/usage?organization=marked&by=team", 0],
      ["/audit?organization=marked", 2],
      ["/people", 1],
      [`/people/${people.member.id}`, 2],
      [`/people?search=${encodeURIComponent(markup)}`, 1],
      [`/requests?model=${encodeURIComponent(markup)}`, 0],
      [`/organizations/${encodeURIComponent(markup)}`, 1],
    ] as const) {
      await tab.visit(path);
      const shown = (await tab.page.locator("main").textContent())!;
      expect([path, shown.split(markup).length - 1 >= least]).toEqual([path, true]);
      expect([path, await tab.page.locator("main img, main script").count()]).toEqual([path, 0]);
    }
    expect(tab.found.filter((one) => !/status of 4\d\d/.test(one))).toEqual([]);
  });
});

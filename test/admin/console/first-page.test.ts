// The first page takes three sequential round trips: the document; its files and the current user; and all data that
// the page shows. That bounds the time until the page is complete, however fast the network and the machine are; `npm
// run console:check` measures the time.
import { expect, setDefaultTimeout, test } from "bun:test";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";
import { type Wave, wavesOf } from "./waves.ts";

setDefaultTimeout(180_000);

/** The number of connections that a browser opens to one server over HTTP/1.1. */
const connections = 6;

describeInBrowser("the first page of the console", () => {
  let node: ConsoleNode;

  const newTab = browserForTests(startConsoleNode, (...started) => ([node] = started));

  function expectThree(waves: readonly Wave[], document: string, who: string): void {
    const [first, files, ...answers] = waves;
    expect(first).toEqual({ urgent: [document], low: [] });
    const { urgent, low } = files!;
    expect([...urgent, ...low].sort()).toEqual(["/assets/charts.js", "/assets/index.css", "/assets/index.js", who]);
    expect(answers).toHaveLength(1);
    const isOfPage = (path: string) => path.startsWith("/management/v1/");
    expect([...answers[0]!.urgent, ...answers[0]!.low].filter((path) => !isOfPage(path))).toEqual([]);
    // Any further request would wait for a free connection, and so cost another round trip.
    expect(answers[0]!.urgent.length).toBeLessThanOrEqual(connections);
    expect(answers[0]!.urgent.length).toBeGreaterThan(0);
  }

  for (const role of ["admin", "lead", "member"] as const)
    test(`is there after three round trips for ${role}`, async () => {
      const tab = await signInAs(await newTab(node.url), node, role);
      const waves = await wavesOf(tab, () => tab.page.goto(`${node.url}/`));
      expectThree(waves, "/", "/session");
      expect(tab.found).toEqual([]);
    });

  test("is there after three round trips for who comes back from the issuer, on the page that was wanted", async () => {
    const tab = await newTab(node.url);
    tab.leaveFor(node.provider);
    node.provider.account = node.people.member.account;
    await tab.page.goto(`${node.url}/requests`);
    const link = tab.page.getByRole("link", { name: /^Sign in with / });
    await link.waitFor();
    const waves = await wavesOf(tab, () => link.click());
    expectThree(waves, "/sign-in", "/session/secret");
    expect(tab.page.url()).toBe(`${node.url}/requests`);
    expect(tab.found).toEqual([]);
  });

  test("is there, if later, where a proxy adds a policy that lets the document's own script not run", async () => {
    const tab = await newTab(node.url);
    await tab.page.route(`${node.url}/`, async (route) => {
      const answer = await route.fetch();
      const policy = answer.headers()["content-security-policy"]!.replace(/ 'sha256-[^']+'/, "");
      await route.fulfill({ response: answer, headers: { ...answer.headers(), "content-security-policy": policy } });
    });
    await tab.signIn(node.tokens.admin);
    await tab.visit("/");
    expect(tab.found.filter((one) => !/content security policy|policy: script-src/i.test(one))).toEqual([]);
    expect(tab.found.length).toBeGreaterThan(0);
  });

  test("is that of another membership, where the one that the tab acted by has ended", async () => {
    const tab = await signInAs(await newTab(node.url), node, "member");
    await tab.page.evaluate(() => sessionStorage.setItem("sluice-organization", "marked"));
    await tab.visit("/");
    expect(await tab.page.getByRole("heading", { name: "Your usage and limits" }).count()).toBe(1);
    expect(await tab.page.locator("main [role=alert]").count()).toBe(0);
  });
});

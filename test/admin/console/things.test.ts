// The pages of one thing in a real browser: the parts of an organization, a team, a person and a key, and the links between
// them.
import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../harness/until.ts";
import { type Browser, browserForTests, describeInBrowser } from "./browser-group.ts";
import { openTab, type Tab } from "./chromium.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

const phone = { width: 390, height: 844 };
const screens_max = 4;
const keys_made = 40;
const friday = new Date(Date.now() + 4 * 86_400_000).toISOString().slice(0, 10);

describeInBrowser("the page of a thing", () => {
  let node: ConsoleNode;
  let browser: Browser;
  let tab: Tab;
  let organization: string;
  let team: { id: string };
  let key: { id: string; name: string };

  browserForTests(startConsoleNode, async (...opened) => {
    [node, browser] = opened;
    const { sluice, people } = node;
    organization = sluice.organization;
    const mia = people.member.id;
    await sluice.json("membership", "give", mia, "--org", organization, "--role", "member", "--team", "research");
    [team, key] = [
      (await sluice.json<{ id: string }[]>("team", "list", "--org", organization))[0]!,
      (await sluice.json<{ id: string; name: string }[]>("key", "list", "--person", mia))[0]!,
    ];
    tab = await openTab(node.url, { theme: "light", width: 1440 }, browser);
    await tab.signIn(node.tokens.admin);
  });

  const main = () => tab.page.locator("main");
  const headings = () => main().getByRole("heading", { level: 2 }).allTextContents();
  const link = (name: string) => main().getByRole("link", { name, exact: true }).first();
  const dialog = () => tab.page.locator("dialog");

  test("has parts, each of which is a link that can be sent to somebody", async () => {
    await tab.visit(`/organizations/${organization}`);
    const parts = main().getByRole("navigation", { name: "Parts of the page" }).getByRole("link");
    const names = await parts.allTextContents();
    expect(names).toEqual([
      "Overview",
      "Limits",
      "Teams",
      "People",
      "Keys",
      "Requests",
      "Asked for more (2)",
      "Notices",
      "Audit",
      "Settings",
    ]);
    const seen = new Set<string>();
    for (const name of names) {
      await parts.getByText(name, { exact: true }).click();
      await tab.settled();
      const [address, shown] = [tab.page.url(), (await headings()).join()];
      await tab.page.reload();
      await tab.settled();
      expect([name, (await headings()).join()]).toEqual([name, shown]);
      expect([name, await main().locator(".tabs [aria-current]").textContent()]).toEqual([name, name]);
      seen.add(address).add(shown);
    }
    expect(seen.size).toBe(2 * names.length);
    await tab.visit(`/organizations/${organization}/nonsense`);
    expect(await main().textContent()).toContain("no such part");
  });

  test("leads from the organization to a team, to a member, to a key and to a request, all by their names", async () => {
    await tab.visit(`/organizations/${organization}/teams`);
    await link("research").click();
    await tab.page.waitForURL(`${node.url}/teams/${team.id}`);
    await tab.page.getByRole("heading", { level: 1, name: "research" }).waitFor();
    await link("Members").click();
    await tab.settled();
    await main().locator("tbody a").first().click();
    await tab.page.waitForURL(`${node.url}/people/${node.people.member.id}`);
    await tab.settled();
    await link("Keys").click();
    await tab.settled();
    await link(key.name).click();
    await tab.page.waitForURL(`${node.url}/keys/${key.id}`);
    await tab.settled();
    const person = main().locator("dl a").first();
    expect(await person.getAttribute("href")).toBe(`/people/${node.people.member.id}`);
    await main().locator("tbody a[href^='/requests/']").first().click();
    await tab.page.waitForURL(`${node.url}/requests/${node.people.member.request}`);
    expect(tab.found).toEqual([]);
  });

  test("has, for a person, an increase of the limits until a day", async () => {
    const path = `/people/${node.people.member.id}`;
    await tab.visit(path);
    const limits = main().locator("section.section", { hasText: `Usage and limits in ${organization}` });
    const set = async (label: string, fields: Record<string, string>) => {
      await limits.getByRole("button", { name: label, exact: true }).click();
      for (const [name, value] of Object.entries(fields)) await dialog().getByLabel(name).fill(value);
      const command = await dialog().locator(".command code").textContent();
      await dialog().locator("button[type=submit]").click();
      await dialog().waitFor({ state: "detached" });
      return command;
    };
    await set("Set limits", { "Money in a week": "5" });
    await limits.locator("tr", { hasText: "$5.00" }).waitFor();
    const command = await set("Temporary increase", { "Money in a week": "9", "Ends on": friday });
    const whose = `person ${node.people.member.id} --org ${organization}`;
    expect(command).toBe(`sluice limit raise ${whose} week=9 --until ${friday}`);
    await limits.locator("tr", { hasText: "$9.00" }).getByText(`increased until ${friday}`).waitFor();
    await set("End increase", {});
    await limits.locator("tr", { hasText: "$5.00" }).getByText("set here").waitFor();
  });

  test("shows how much of its limits for models is used, and which of them match no model", async () => {
    const set = (pattern: string, limits: string) =>
      node.sluice.json(...`limit set team ${team.id} ${limits} --models ${pattern}`.split(" "));
    await set("qwen/*", "month=10 concurrent_requests=4");
    await set("metallama/*", "week=3");
    await tab.visit(`/teams/${team.id}`);
    const ofModels = (pattern: string) => main().locator(".windows", { hasText: `for ${pattern}` });
    await ofModels("qwen/*").waitFor();
    expect(await ofModels("qwen/*").locator(".window").allTextContents()).toEqual([
      expect.stringMatching(/^month.* of \$10\.00resets /),
      expect.stringMatching(/^running now0 of 4 requests$/),
    ]);
    expect(await ofModels("qwen/*").getByLabel("Used of the month for qwen/*").count()).toBe(1);
    expect(await ofModels("metallama/*").locator(".window").allTextContents()).toEqual([
      expect.stringMatching(/^week.* of \$3\.00resets /),
    ]);
    const line = (pattern: string) => main().locator("tr", { hasText: `for ${pattern}` });
    expect(await line("metallama/*").textContent()).toContain("matches no model today did you mean meta-llama/*?");
    expect(await line("qwen/*").textContent()).toEndWith("set here");
    if (process.env.PICTURE) await tab.page.screenshot({ path: process.env.PICTURE, fullPage: true });
  });

  test("opens a form from the row of a table as from anywhere", async () => {
    const looks = async (): Promise<string[]> => {
      await dialog().locator("button[type=submit]").waitFor();
      return tab.page.evaluate(`(() => {
        const dialog = document.querySelector("dialog[open]");
        const [own, submit] = [dialog, dialog.querySelector("button[type=submit]")].map((one) => getComputedStyle(one));
        return [own.textAlign, own.whiteSpace, submit.backgroundColor, submit.borderTopColor];
      })()`);
    };
    await tab.visit(`/keys/${key.id}`);
    const rotate = main().getByRole("button", { name: "Rotate" });
    await rotate.click();
    const own = await looks();
    expect(own[0]).toBe("start");
    expect(own[2]).not.toBe("rgba(0, 0, 0, 0)");
    await tab.visit(`/organizations/${organization}/keys`);
    await rotate.first().click();
    expect(await looks()).toEqual(own);
    const command = await dialog().locator(".command code").textContent();
    expect(command).toMatch(/^sluice key rotate key_[0-9a-f]{32} --grace 24h$/);
  });

  test("shows a command that is right at every key that somebody presses, and marks what has to be filled in", async () => {
    await tab.visit(`/organizations/${organization}/teams`);
    await main().getByRole("button", { name: "Create team" }).click();
    const command = dialog().locator(".command code");
    expect(await dialog().locator("label.required").allTextContents()).toEqual(["Name"]);
    await dialog().getByLabel("Name").pressSequentially("night owls");
    for (const [label, text] of [
      ["Money in a week", "none"],
      ["Money in a month", "12.50"],
      ["Requests at once", "none"],
    ] as const) {
      await dialog().getByLabel(label).focus();
      for (const letter of text) {
        await tab.page.keyboard.type(letter);
        const shown = (await command.textContent())!;
        const limits = /--limit (\S+)/.exec(shown)?.[1] ?? "";
        expect(shown).not.toMatch(/NaN|undefined|null/);
        const isRight = (one: string) => /^\w+=(none|\d+(\.\d+)?)$/.test(one);
        expect([shown, limits === "" || limits.split(",").every(isRight)]).toEqual([shown, true]);
      }
    }
    expect(await command.textContent()).toBe(
      `sluice team create --org ${organization} --name 'night owls' --limit week=none,month=12.50,concurrent_requests=none`,
    );
  });

  test("is no longer than four screens of a phone, however many keys and requests there are", async () => {
    for (let made = 0; made < keys_made; made += 1)
      await node.sluice.json("key", "create", "--org", organization, "--name", `key ${made}`, "--team", "research");
    const narrow = await openTab(node.url, { theme: "dark", width: phone.width }, browser);
    await narrow.page.setViewportSize(phone);
    await narrow.signIn(node.tokens.admin);
    for (const path of [
      `/organizations/${organization}`,
      ...["limits", "limits?of=keys", "keys", "requests", "audit", "settings"].map(
        (part) => `/organizations/${organization}/${part}`,
      ),
      `/teams/${team.id}`,
      `/teams/${team.id}/keys`,
      `/people/${node.people.member.id}`,
      `/keys/${key.id}`,
      "/requests",
      "/audit",
    ]) {
      await narrow.visit(path);
      const height = await narrow.page.evaluate("document.documentElement.scrollHeight");
      expect([path, Number(height) <= screens_max * phone.height, height]).toEqual([path, true, height]);
      expect([path, await narrow.overflow_px()]).toEqual([path, 0]);
    }
    await narrow.visit(`/organizations/${organization}/keys`);
    await narrow.page.getByRole("link", { name: /^Next / }).click();
    await until(async () => (await narrow.page.getByRole("link", { name: "First", exact: true }).count()) === 1);
    await narrow.context.close();
  });

  test("is a member's own, with her own sums, where she comes in", async () => {
    const own = await openTab(node.url, { theme: "light", width: 1440 }, browser);
    await signInAs(own, node, "member");
    await own.page.goto(node.url);
    await own.settled();
    const shown = own.page.locator("main");
    expect(await own.page.locator("nav.rail [aria-current]").textContent()).toBe("Overview");
    const titles = await shown.getByRole("heading", { level: 2 }).allTextContents();
    expect(titles).toEqual([
      "Your usage and limits",
      "Your requests for more",
      "Spend in 30 days",
      "Your keys",
      "Signed-in devices",
      "Your last requests",
    ]);
    expect(await shown.getByRole("region", { name: "Your keys" }).locator("tbody tr").count()).toBe(1);
    const requests = await shown.locator("a[href^='/requests/req_']").evaluateAll((all) => all.map((one) => one.title));
    expect(requests).toEqual([node.people.member.request]);
    expect(await own.axeProblems()).toEqual([]);
    await shown.getByRole("button", { name: "Create key" }).click();
    const marked = await own.page.locator("dialog label.required").allTextContents();
    expect(marked).toEqual(["Name", "Expires"]);
    await own.context.close();
  });
});

// The pages of single objects in a real browser: the sections of an organization, a team, a person and a key, and the
// links between them; and the search that finds objects, by the keyboard alone, with filters that are chosen by name.
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { some } from "../../harness/depth.ts";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser, type NewTab } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

const friday = new Date(Date.now() + 4 * 86_400_000).toISOString().slice(0, 10);

let node: ConsoleNode;
let newTab: NewTab;
/** The tab of an operator with access to everything. */
let tab: Tab;

describeInBrowser("things of the console", () => {
  newTab = browserForTests(startConsoleNode, async (started) => {
    node = started;
    tab = await signInAs(await newTab(node.url), node, "admin");
  });

  describe("the page of a thing", pageTests);
  describe("the search", searchTests);
});

function pageTests(): void {
  let organization: string;
  let team: { id: string };
  let key: { id: string; name: string };

  beforeAll(async () => {
    const { sluice, people } = node;
    organization = sluice.organization;
    const mia = people.member.id;
    await sluice.json("membership", "give", mia, "--org", organization, "--role", "member", "--team", "research");
    [team, key] = [
      (await sluice.json<{ id: string }[]>("team", "list", "--org", organization))[0]!,
      (await sluice.json<{ id: string; name: string }[]>("key", "list", "--person", mia))[0]!,
    ];
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
    const reloaded = some(3, names);
    for (const name of names) {
      await parts.getByText(name, { exact: true }).click();
      await tab.settled();
      const [address, shown] = [tab.page.url(), (await headings()).join()];
      if (reloaded.includes(name)) {
        await tab.page.reload();
        await tab.settled();
        expect([name, (await headings()).join()]).toEqual([name, shown]);
      }
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
    // The limits of the team and of the keys apply to the person's requests, too.
    await limits.getByText("but what limits their keys, their team and the organization.").waitFor();
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

  test("is a member's own, with her own sums, where she comes in", async () => {
    const own = await signInAs(await newTab(node.url), node, "member");
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
  });
}

function searchTests(): void {
  const field = (on: Tab) => on.page.getByRole("combobox", { name: "Search" });
  const options = (on: Tab) => on.page.getByRole("listbox", { name: "Search: found" }).getByRole("option");

  test("finds a person, a team, a key, an organization, a request and a page, and Enter opens it", async () => {
    const { people, sluice } = node;
    const [team] = await sluice.json<{ id: string }[]>("team", "list", "--org", sluice.organization);
    const [key] = await sluice.json<{ id: string }[]>("key", "list", "--person", people.lead.id);
    for (const [text, path] of [
      ["Oda", `/people/${people.lead.id}`],
      ["resea", `/teams/${team!.id}`],
      ["oda's lap", `/keys/${key!.id}`],
      ["mark", "/organizations/marked"],
      [people.lead.request, `/requests/${people.lead.request}`],
      ["Engi", "/engines"],
    ] as const) {
      await tab.visit("/nodes");
      await tab.page.keyboard.press(text.startsWith("o") ? "Control+k" : "/");
      await tab.page.keyboard.type(text);
      await tab.page.keyboard.press("Enter");
      await tab.page.waitForURL(node.url + path);
    }
    expect(tab.found).toEqual([]);
  });

  test("shows what it found, which arrows choose and Escape closes", async () => {
    await tab.visit("/nodes");
    await field(tab).focus();
    await tab.page.keyboard.type("qwen");
    await options(tab).nth(1).waitFor();
    expect(await tab.axeProblems()).toEqual([]);
    const names = await options(tab).locator(".found-name").allTextContents();
    expect(names.every((name) => name.includes("qwen"))).toBeTrue();
    const chosen = () =>
      options(tab).and(tab.page.locator("[aria-selected=true]")).locator(".found-name").textContent();
    expect(await chosen()).toBe(names[0]!);
    await tab.page.keyboard.press("ArrowDown");
    expect(await chosen()).toBe(names[1]!);
    await tab.page.keyboard.press("ArrowUp");
    await tab.page.keyboard.press("ArrowUp");
    expect(await chosen()).toBe(names.at(-1)!);
    await tab.page.keyboard.press("Escape");
    expect(await options(tab).first().isVisible()).toBeFalse();
    expect(await field(tab).inputValue()).toBe("qwen");
  });

  test("opens what was found for the text that stands there, not for the one before", async () => {
    await tab.visit("/nodes");
    await field(tab).fill("qwen");
    await options(tab).first().waitFor();
    await field(tab).fill("Oda Lead");
    await field(tab).press("Enter");
    await until(() => tab.page.url() !== `${node.url}/nodes`);
    expect(tab.page.url()).toBe(`${node.url}/people/${node.people.lead.id}`);
  });

  test("leaves the keys of an input method alone: Enter confirms a word there", async () => {
    await tab.visit("/nodes");
    await field(tab).fill("qwen");
    await options(tab).first().waitFor();
    const enter = { key: "Enter", bubbles: true, cancelable: true };
    await field(tab).dispatchEvent("keydown", { ...enter, isComposing: true });
    // Safari ends the text composition (IME) before it sends the key event, whose key code is 229.
    await field(tab).dispatchEvent("keydown", { ...enter, keyCode: 229 });
    expect([tab.page.url(), await field(tab).inputValue()]).toEqual([`${node.url}/nodes`, "qwen"]);
    await field(tab).dispatchEvent("keydown", enter);
    await until(() => tab.page.url() !== `${node.url}/nodes`);
  });

  test("says where nothing was found, and stays on the page", async () => {
    await tab.visit("/nodes");
    await field(tab).fill("nobody of this name");
    await tab.page.keyboard.press("Enter");
    await tab.page.getByText("Nothing was found for “nobody of this name”.").waitFor();
    expect(tab.page.url()).toBe(`${node.url}/nodes`);
    expect(await tab.page.getByRole("alert").count()).toBe(0);
  });

  test("finds for a member what is hers alone", async () => {
    const own = await signInAs(await newTab(node.url, { theme: "dark", width: 390 }), node, "member");
    await own.settled();
    for (const text of ["oda lead", "research", "marked", node.people.lead.request]) {
      await field(own).fill(text);
      await own.page.getByText(`Nothing was found for “${text}”.`).waitFor();
    }
    await field(own).fill("laptop");
    await options(own).first().waitFor();
    expect(await options(own).count()).toBe(1);
    expect(await own.axeProblems()).toEqual([]);
    expect(await own.overflow_px()).toBe(0);
    await own.page.keyboard.press("Enter");
    await own.page.getByRole("heading", { level: 1, name: "mia's laptop" }).waitFor();
    expect(own.found).toEqual([]);
  });

  test("fills a filter in: the address has the ID, the field the name", async () => {
    const { id } = node.people.lead;
    await tab.visit("/requests");
    const person = tab.page.getByRole("combobox", { name: "Person" });
    await person.fill("oda");
    await tab.page.getByRole("option", { name: /Oda Lead/ }).waitFor();
    await tab.page.keyboard.press("Enter");
    await tab.page.waitForURL(`${node.url}/requests?person=${id}`);
    await tab.settled();
    expect(await tab.page.locator("main tbody td[data-head=Key]").allTextContents()).toEqual(["oda's laptop"]);
    await tab.page.reload();
    await until(async () => (await person.inputValue()) === "Oda Lead");
    await person.fill("");
    await person.blur();
    await tab.page.waitForURL(`${node.url}/requests`);
    await tab.settled();
    const people = await tab.page.locator("main tbody td[data-head=Person]").allTextContents();
    expect(people).toContain("Oda Lead");
    expect(tab.found).toEqual([]);
  });

  test("shows names, not IDs, in the audit log", async () => {
    const { people, sluice } = node;
    await sluice.json("limit", "set", "person", people.lead.id, "--org", sluice.organization, "week=5");
    await tab.visit("/audit");
    const row = tab.page.locator("main tbody tr").first();
    expect(await row.locator("td[data-head=Target]").textContent()).toBe("Oda Lead");
    expect(await row.locator("td[data-head=Target] a").getAttribute("href")).toBe(`/people/${people.lead.id}`);
  });
}

// The search of the console in a real browser, by the keyboard alone, and the filters that are filled in by names.
import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../harness/until.ts";
import { type Browser, browserForTests, describeInBrowser } from "./browser-group.ts";
import { openTab, type Tab } from "./chromium.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

describeInBrowser("the search of the console", () => {
  let node: ConsoleNode;
  let browser: Browser;
  let tab: Tab;

  browserForTests(startConsoleNode, async (...opened) => {
    [node, browser] = opened;
    tab = await openTab(node.url, { theme: "light", width: 1440 }, browser);
    await tab.signIn(node.tokens.admin);
  });

  const field = (on: Tab) => on.page.getByRole("combobox", { name: "Search" });
  const options = (on: Tab) => on.page.getByRole("listbox", { name: "Search: found" }).getByRole("option");

  test("finds a person, a team, a key, an organization, a request and a model, and Enter opens its page", async () => {
    const { people, sluice } = node;
    const [team] = await sluice.json<{ id: string }[]>("team", "list", "--org", sluice.organization);
    const [key] = await sluice.json<{ id: string }[]>("key", "list", "--person", people.lead.id);
    for (const [text, path] of [
      ["Oda", `/people/${people.lead.id}`],
      ["da Le", `/people/${people.lead.id}`],
      ["oda@example", `/people/${people.lead.id}`],
      ["resea", `/teams/${team!.id}`],
      ["oda's lap", `/keys/${key!.id}`],
      ["mark", "/organizations/marked"],
      [people.lead.request, `/requests/${people.lead.request}`],
      [people.lead.request.slice(0, -3), `/requests/${people.lead.request}`],
      [key!.id, `/keys/${key!.id}`],
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

  test("says where nothing was found, and stays on the page", async () => {
    await tab.visit("/nodes");
    await field(tab).fill("nobody of this name");
    await tab.page.keyboard.press("Enter");
    await tab.page.getByText("Nothing was found for “nobody of this name”.").waitFor();
    expect(tab.page.url()).toBe(`${node.url}/nodes`);
    expect(await tab.page.getByRole("alert").count()).toBe(0);
  });

  test("finds for a member what is hers alone", async () => {
    const own = await openTab(node.url, { theme: "dark", width: 390 }, browser);
    await signInAs(own, node, "member");
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
    await own.context.close();
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
});

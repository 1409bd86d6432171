// The session of a tab in a real browser: the membership that it uses, and what remains of it when the server cannot
// respond.
import { expect, setDefaultTimeout, test } from "bun:test";
import { type Money, nanosOf } from "../../../src/core/inference/money.ts";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import { Tab } from "./chromium.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

describeInBrowser("the session of a tab", () => {
  let node: ConsoleNode;

  const newTab = browserForTests(startConsoleNode, async (started) => {
    node = started;
    const { sluice, people } = node;
    const { key } = await sluice.json<{ key: string }>("key", "create", "--org", "marked", "--name", "used");
    const asked = { model: "qwen/qwen3-32b", max_tokens: 20, messages: [{ role: "user", content: "Hello" }] };
    await (await sluice.post("/v1/chat/completions", asked, { key })).text();
    await until(async () => (await charged("marked")) > 0n);
    await sluice.json("membership", "give", people.lead.id, "--org", "marked", "--role", "organization-admin");
  });

  async function charged(organization: string): Promise<bigint> {
    const words = ["usage", "report", "--by", "model", "--org", organization];
    const { total } = await node.sluice.json<{ total: { cost: { total: Money } } }>(...words);
    return nanosOf(total.cost.total);
  }

  const organization = ({ page }: Tab) => page.locator("header").getByLabel("Organization", { exact: true });
  const cost = async ({ page }: Tab) => {
    const [amount] = (await page.locator(".dial .figure").first().getAttribute("title"))!.split(" ");
    return nanosOf({ amount: amount! });
  };

  const endSession = ({ page }: Tab) =>
    page.evaluate(`fetch("/session", { method: "DELETE", headers: {
      "x-sluice-console": sessionStorage.getItem("sluice-console") } })`);

  const awayMessage = "The database does not answer. Please try again.";
  /** Has the server answer with 503 when this tab asks for its session. */
  const away = ({ page }: Tab) =>
    page.route(`${node.url}/session`, (route) =>
      route.fulfill({ status: 503, json: { error: { message: awayMessage } } }),
    );

  test("acts by the membership that one chooses, and all of the page is of that organization", async () => {
    const tab = await signInAs(await newTab(node.url), node, "lead");
    await tab.visit(`/usage?by=model&person=${node.people.lead.id}`);
    expect(await organization(tab).inputValue()).toBe("marked");
    await organization(tab).selectOption(node.sluice.organization);
    // The filter, which named an object of the previous organization, is dropped from the URL.
    await tab.page.waitForURL(`${node.url}/usage`);
    await tab.settled();
    expect(await cost(tab)).toBe(await charged(node.sluice.organization));
    await organization(tab).selectOption("marked");
    const others = await charged("marked");
    await until(async () => (await cost(tab)) === others);
    expect(tab.found).toEqual([]);
  });

  test("stays in its organization where the server refuses to change it, and says why", async () => {
    const tab = await signInAs(await newTab(node.url), node, "lead");
    await tab.visit("/requests");
    await away(tab);
    await organization(tab).selectOption(node.sluice.organization);
    await tab.page.getByRole("alert").getByText(awayMessage).waitFor();
    expect(await organization(tab).inputValue()).toBe("marked");
  });

  test("acts by the last of two quick choices, whichever answer comes first", async () => {
    const tab = await signInAs(await newTab(node.url), node, "lead");
    await tab.visit("/requests");
    const slow = node.sluice.organization;
    const isSlow = (of: { headers(): Record<string, string> }) => of.headers()["x-sluice-organization"] === slow;
    const { promise: later, resolve: answer } = Promise.withResolvers<void>();
    await tab.page.route(`${node.url}/session`, async (route) => {
      if (isSlow(route.request())) await later;
      await route.continue().catch(() => {});
    });
    const over = Promise.race([
      tab.page.waitForEvent("requestfinished", isSlow),
      tab.page.waitForEvent("requestfailed", isSlow),
    ]);
    await organization(tab).selectOption(slow);
    const fast = tab.page.waitForResponse(`${node.url}/session`);
    await organization(tab).selectOption("marked");
    await (await fast).finished();
    answer();
    await over;
    await tab.settled();
    expect(await organization(tab).inputValue()).toBe("marked");
    expect(await tab.page.evaluate(`sessionStorage.getItem("sluice-organization")`)).toBe("marked");
    expect(await tab.page.getByRole("alert").count()).toBe(0);
  });

  test("is taken up again after the server could not answer, in the same organization", async () => {
    const tab = await signInAs(await newTab(node.url), node, "lead");
    const { organization: slug } = node.sluice;
    await organization(tab).selectOption(slug);
    await until(() => tab.page.evaluate(`sessionStorage.getItem("sluice-organization") === "${slug}"`));
    await tab.visit("/teams");
    const isThere = async () => {
      await tab.page.getByRole("heading", { level: 1, name: "Teams" }).waitFor();
      expect(await organization(tab).inputValue()).toBe(slug);
    };
    await away(tab);
    await tab.page.reload();
    await tab.page.getByRole("alert").getByText(awayMessage).waitFor();
    await tab.page.unrouteAll();
    await tab.page.getByRole("button", { name: "Try again" }).click();
    await isThere();
    await away(tab);
    await tab.page.reload();
    await tab.page.getByRole("alert").getByText(awayMessage).waitFor();
    await tab.page.unrouteAll();
    await tab.page.reload();
    await isThere();
  });

  test("is kept from its first answer on: of a sign-in, and of another tab", async () => {
    const isTakenUp = async ({ page }: Tab) => {
      await page.getByRole("alert").getByText(awayMessage).waitFor();
      await page.unrouteAll();
      await page.getByRole("button", { name: "Try again" }).click();
      await page.waitForSelector(".rail");
    };
    const tab = await signInAs(await newTab(node.url), node, "lead");
    await organization(tab).selectOption(node.sluice.organization);
    await until(() => tab.page.evaluate(`sessionStorage.getItem("sluice-organization") !== null`));
    const second = await Tab.open(tab.context, node.url);
    await away(second);
    await second.page.goto(`${node.url}/teams`);
    await isTakenUp(second);
    await second.page.close();
    await endSession(tab);
    await tab.page.getByRole("link", { name: "Requests", exact: true }).click();
    await tab.page.getByRole("alert").waitFor();
    await away(tab);
    tab.leaveFor(node.provider);
    await tab.page.getByRole("link", { name: /^Sign in with / }).click();
    await isTakenUp(tab);
    expect(await organization(tab).inputValue()).toBe(node.sluice.organization);
  });

  test("of before is not taken up in the place of a link that the server cannot exchange now", async () => {
    const tab = await signInAs(await newTab(node.url), node, "lead");
    await tab.visit("/requests");
    const message = "Too many people sign in now.";
    await tab.page.route(`${node.url}/session/link`, (route) =>
      route.fulfill({ status: 429, json: { error: { message } } }),
    );
    await tab.page.goto(`${node.url}/#link=another`);
    await tab.page.getByRole("alert").getByText(message).waitFor();
    expect(await tab.page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    expect(await tab.page.evaluate(`sessionStorage.getItem("sluice-console")`)).toBeNull();
  });

  test("is over where the server says so: the tab keeps no secret", async () => {
    const tab = await signInAs(await newTab(node.url), node, "lead");
    await endSession(tab);
    await tab.page.reload();
    await tab.page.getByRole("alert").waitFor();
    expect(await tab.page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    expect(await tab.page.evaluate(`sessionStorage.getItem("sluice-console")`)).toBeNull();
  });
});

// The acts of the console in a real browser, one after another on the same page.
import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

describeInBrowser("acts", () => {
  let node: ConsoleNode;
  let tab: Tab;
  /** The paths that the page has read so far. */
  const read: string[] = [];

  const newTab = browserForTests(startConsoleNode, async (started) => {
    node = started;
    tab = await signInAs(await newTab(node.url), node, "admin");
    tab.page.on("response", (response) => {
      const { pathname } = new URL(response.url());
      if (response.request().method() === "GET") read.push(pathname.replace("/management/v1", ""));
    });
  });

  const main = () => tab.page.locator("main");
  const dialog = () => tab.page.locator("dialog");
  const submit = () => dialog().locator("button[type=submit]").click();
  const open = (label: string) => main().getByRole("button", { name: label, exact: true }).first().click();

  /** Does an act, and waits until the page has read `again`: what has another version by now. */
  async function act(label: string, fields: Record<string, string>, again: readonly string[] = []): Promise<void> {
    await open(label);
    for (const [name, value] of Object.entries(fields)) {
      const field = dialog().getByLabel(name);
      if (await field.evaluate(({ tagName }) => tagName === "SELECT")) await field.selectOption(value);
      else await field.fill(value);
    }
    read.length = 0;
    await submit();
    await until(async () => (await dialog().count()) === 0 || (await dialog().getByRole("alert").count()) > 0);
    expect([label, await dialog().getByRole("alert").allTextContents()]).toEqual([label, []]);
    for (const path of again) await until(() => read.includes(path), 15_000, `${path} after ${label}`);
    await tab.settled();
  }

  const limits = { "Money in a week": "5" };
  const higher = { "Money in a week": "6" };

  test("on a person follow one another: none is taken for somebody else's", async () => {
    const { id } = node.people.member;
    const all = [`/people/${id}`, `/organizations/${node.sluice.organization}/people/${id}/limits`];
    await tab.visit(`/people/${id}`);
    await act("Set limits", limits, all);
    await act("Suspend", { "To confirm": "mia@example.com" }, all);
    await act("Set limits", higher, all);
    await act("Resume", {}, all);
    await act("Give membership", { Organization: "marked", Role: "member" }, all);
    await act("Set limits", limits, all);
  });

  test("on a team follow one another", async () => {
    const { organization } = node.sluice;
    const { id } = await node.sluice.json<{ id: string }>("team", "create", "--org", organization, "--name", "one");
    const all = [`/teams/${id}`, `/teams/${id}/limits`];
    await tab.visit(`/teams/${id}`);
    await act("Set limits", limits, all);
    await act("Rename", { Name: "two" }, all);
    await act("Set limits", higher, all);
  });

  test("on a key follow one another", async () => {
    const named = ["--org", "marked", "--name", "one"];
    const { id } = await node.sluice.json<{ id: string }>("key", "create", ...named);
    const all = [`/keys/${id}`, `/keys/${id}/limits`];
    await tab.visit(`/keys/${id}`);
    await act("Set limits", limits, all);
    await act("Change", { Name: "two" }, all);
    await act("Set limits", higher, all);
  });

  test("on an organization follow one another", async () => {
    const all = ["/organizations/marked", "/organizations/marked/limits"];
    await tab.visit("/organizations/marked/limits");
    await act("Suspend", { "To confirm": "marked" }, all);
    await act("Set limits", limits, all);
    await act("Resume", {}, all);
  });
});

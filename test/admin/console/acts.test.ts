// The actions of the console in a real browser, one after another on the same page, and the secrets that some of them
// show.
import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";
import { type ConsoleNode, signInAs, startConsoleNode } from "./node.ts";

setDefaultTimeout(120_000);

const day_ms = 86_400_000;

describeInBrowser("acts", () => {
  let node: ConsoleNode;
  let tab: Tab;
  /** The paths of the API that the page has requested so far. */
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

  /** Performs an action, and waits until the page has requested the paths `again`, whose data it changed. */
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

  test("leave no limits of an older version, also where those were still on their way", async () => {
    const named = ["--org", node.sluice.organization, "--name", "swift"];
    const { id } = await node.sluice.json<{ id: string }>("team", "create", ...named);
    const { promise: later, resolve: answer } = Promise.withResolvers<void>();
    await tab.page.route(`**/management/v1/teams/${id}/limits`, async (route) => {
      const response = await route.fetch();
      await later;
      await route.fulfill({ response });
    });
    const first = tab.page.waitForRequest(`**/management/v1/teams/${id}/limits`);
    await tab.page.goto(`${node.url}/teams/${id}`);
    await first;
    await open("Rename");
    await dialog().getByLabel("Name").fill("swifter");
    await submit();
    await main().getByRole("heading", { level: 1, name: "swifter" }).waitFor();
    read.length = 0;
    answer();
    await until(() => read.filter((path) => path === `/teams/${id}/limits`).length === 2);
    await tab.page.unrouteAll();
    await act("Set limits", limits);
  });

  test("leave a secret in sight until one closes it, whatever the list has by then", async () => {
    await node.sluice.json("key", "create", "--org", "marked", "--name", "expired");
    await tab.visit("/keys?organization=marked&state=active");
    // From now on the list of keys is answered as empty, as if its only key no longer fitted the filter once rotated.
    await tab.page.route("**/management/v1/keys?*", (route) =>
      route.fulfill({ json: { data: [], next_cursor: null } }),
    );
    read.length = 0;
    await main().locator("tr", { hasText: "expired" }).getByRole("button", { name: "Rotate" }).click();
    await submit();
    const key = (await dialog().locator("pre").textContent())!;
    const models = await node.sluice.fetch("/v1/models", { key });
    expect(models.status).toBe(200);
    expect(await dialog().locator("pre").textContent()).toBe(key);
    expect(read).toEqual([]);
    await dialog().getByRole("button", { name: "Done" }).click();
    await main().getByText("No key fits these filters.").waitFor();
    await tab.page.unrouteAll();
  });

  test("are not closed by Escape while a secret is on its way", async () => {
    await tab.visit("/keys?organization=marked");
    const answer = await tab.delayed("**/management/v1/keys");
    await open("Create key");
    await dialog().getByLabel("Name").fill("slow");
    await submit();
    await until(() => dialog().locator("button[type=submit]").isDisabled());
    await tab.page.keyboard.press("Escape");
    await tab.page.keyboard.press("Escape");
    answer();
    await dialog().getByText("shown this once").waitFor();
    await tab.page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await tab.page.unrouteAll();
  });

  test("are closed by Escape while no secret is on its way, and what they did is in the list all the same", async () => {
    await tab.visit("/organizations");
    const answer = await tab.delayed("**/management/v1/organizations");
    await open("Create organization");
    await dialog().getByLabel("Slug").fill("slow");
    await submit();
    await until(() => dialog().locator("button[type=submit]").isDisabled());
    await tab.page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    answer();
    await main().locator("tr", { hasText: "slow" }).waitFor();
    await tab.page.unrouteAll();
  });

  test("wait half a minute for a secret, and another try has the same key of repetition", async () => {
    const own = await signInAs(await newTab(node.url), node, "admin");
    // The first attempt times out after a hundredth of the usual time; the second attempt has the full time.
    await own.page.addInitScript(`const after = AbortSignal.timeout.bind(AbortSignal);
      let share = 100;
      AbortSignal.timeout = (ms) => {
        const signal = after(ms / share);
        share = 1;
        return signal;
      }`);
    await own.visit("/keys?organization=marked");
    const keys: (string | undefined)[] = [];
    await own.page.route("**/management/v1/keys", (route) => {
      keys.push(route.request().headers()["idempotency-key"]);
      if (keys.length > 1) return route.continue();
    });
    await own.page.getByRole("button", { name: "Create key" }).click();
    const form = own.page.locator("dialog");
    await form.getByLabel("Name").fill("hanging");
    await form.locator("button[type=submit]").click();
    await form.getByRole("alert").getByText("The server does not answer.").waitFor();
    expect(await form.getByRole("button", { name: "Cancel" }).isEnabled()).toBe(true);
    await form.locator("button[type=submit]").click();
    await form.getByText("shown this once").waitFor();
    expect(keys[1]).toBe(keys[0]!);
  });

  test("say whether their command was copied", async () => {
    const own = await signInAs(await newTab(node.url), node, "admin");
    await own.visit("/keys?organization=marked");
    await own.page.getByRole("button", { name: "Create key" }).click();
    await own.page.evaluate(`navigator.clipboard.writeText = () => Promise.reject(new Error("refused"));
      document.execCommand = () => globalThis.mayCopy === true`);
    const copy = own.page.locator("dialog").getByRole("button", { name: "Copy command" });
    await copy.click();
    await own.page.locator("dialog").getByRole("button", { name: "Not copied" }).waitFor();
    await own.page.evaluate("globalThis.mayCopy = true");
    await copy.click();
    await own.page.locator("dialog").getByRole("button", { name: "Copied", exact: true }).waitFor();
  });

  test("say when a day begins that one chooses", async () => {
    await tab.visit("/keys?organization=marked");
    await open("Create key");
    const described = await dialog().getByLabel("Expires").getAttribute("aria-describedby");
    expect(await dialog().locator(`[id="${described}"]`).textContent()).toBe(
      "When this day begins, UTC. Empty: as the organization's policy says",
    );
  });

  test("rotate no operator whose token has expired by the clock of this machine, and still revoke it", async () => {
    const tomorrow = new Date(Date.now() + day_ms).toISOString();
    await node.sluice.json("operator", "create", "ci", "--role", "viewer", "--expires", tomorrow);
    const row = (on: Tab) => on.page.locator("main tr", { hasText: "ci" });
    const state = (on: Tab) => row(on).locator("td[data-head=State]").textContent();
    await tab.visit("/operators");
    expect([await state(tab), await row(tab).getByRole("button").count()]).toEqual(["active", 2]);
    const later = await signInAs(await newTab(node.url), node, "admin");
    await later.page.clock.setFixedTime(Date.now() + 2 * day_ms);
    await later.visit("/operators");
    expect([await state(later), await row(later).getByRole("button").allTextContents()]).toEqual([
      "expired",
      ["Revoke"],
    ]);
  });
});

// Destinations of notices in a real browser: an operator sets up a channel for the whole service, and an organization's
// administrator a channel for the organization. Both send a test notice, and no page shows the channel's URL.
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Channel, slackChannel, teamsChannel } from "../../harness/channels.ts";
import { type Mailbox, mailbox } from "../../harness/mail-server.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";

setDefaultTimeout(120_000);

describeInBrowser("notices in the console", () => {
  let node: PeopleNode;
  let channels: Record<"slack" | "teams", Channel> & { mail: Mailbox };
  const newTab = browserForTests(
    async () => {
      channels = { slack: slackChannel(), teams: teamsChannel(), mail: await mailbox() };
      const { host, port, from } = channels.mail.settings;
      const smtp = `smtp: { host: ${host}, port: ${port}, tls: "off", from: ${from} }`;
      return startPeopleNode({ more: `webhooks: { allow_private: true }\n${smtp}\n` });
    },
    (started) => {
      node = started;
    },
  );
  afterAll(() => {
    for (const channel of Object.values(channels)) channel.stop();
  });

  async function signedIn(...role: string[]): Promise<Tab> {
    const words = ["operator", "create", Bun.randomUUIDv7(), "--role", ...role];
    const { token } = await node.sluice.json<{ token: string }>(...words);
    const tab = await newTab(node.consoleUrl);
    await tab.signIn(token);
    return tab;
  }

  /** Adds the channel on this page, and sends a test notice to it. Returns the page's message about the result. */
  async function tried(tab: Tab, path: string, form: "slack" | "teams"): Promise<string> {
    await tab.visit(path);
    const { page } = tab;
    const dialog = page.locator("dialog");
    const open = (name: string) => page.locator("main").getByRole("button", { name, exact: true }).first().click();
    const press = (name: string) => dialog.getByRole("button", { name, exact: true }).click();
    await open("Add a destination");
    await dialog.getByLabel("Name").fill("alerts");
    await dialog.getByLabel("Form").selectOption(form);
    await dialog.getByLabel("URL").fill(channels[form].url);
    await press("Add a destination");
    await dialog.getByText(/^Notices go to /).waitFor();
    await press("Done");
    await page.locator("td").getByText("alerts", { exact: true }).waitFor();
    await open("Send a test");
    await press("Send a test");
    await dialog
      .getByText(/arrive/)
      .last()
      .waitFor();
    const said = await dialog.locator(".told").textContent();
    await press("Done");
    await tab.settled();
    const found = [...(await tab.axeProblems()), ...tab.found, `${await tab.overflow_px()} px`];
    expect(found).toEqual(["0 px"]);
    expect(await page.content()).not.toContain(channels[form].secret);
    return said ?? "";
  }

  test("an operator sets a channel of the fleet, and sends a test", async () => {
    const tab = await signedIn("admin");
    expect(await tried(tab, "/notices", "slack")).toBe(`It arrived at ${new URL(channels.slack.url).host}.`);
    expect(channels.slack.got).toMatchObject([{ title: "A test of notices of the fleet", link: null }]);
    expect(await tab.page.locator("tbody").textContent()).toContain("the fleet");
  });

  test("an organization's administrator sets one of the organization, and sees no other", async () => {
    const { organization } = node.sluice;
    const tab = await signedIn("organization-admin", "--org", organization);
    await tried(tab, `/organizations/${organization}/notices`, "teams");
    expect(channels.teams.got).toMatchObject([
      {
        title: `A test of notices of ${organization}`,
        link: `${node.consoleUrl}/organizations/${organization}/notices`,
      },
    ]);
    expect(await tab.page.locator("tbody tr").count()).toBe(1);
    await tab.page.getByRole("button", { name: "Remove", exact: true }).click();
    await tab.page.locator("dialog").getByLabel("To confirm, type alerts").fill("alerts");
    await tab.page.locator("dialog").getByRole("button", { name: "Remove", exact: true }).click();
    await tab.page.getByText("No notices are sent.").waitFor();
  });

  test("mail goes to the addresses that are typed, and the page says who has unsubscribed", async () => {
    const { organization } = node.sluice;
    const tab = await signedIn("admin");
    await tab.visit(`/organizations/${organization}/notices`);
    const dialog = tab.page.locator("dialog");
    await tab.page.locator("main").getByRole("button", { name: "Add mail", exact: true }).click();
    await dialog.getByLabel("Name").fill("mail");
    await dialog.getByLabel("Addresses").fill("ann@acme.example, lea@acme.example");
    await dialog.getByRole("button", { name: "Add mail", exact: true }).click();
    await dialog.getByText("Notices go to ann@acme.example, lea@acme.example.", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Done", exact: true }).click();
    await node.sluice.json("notice", "test", organization, "--name", "mail");
    const link = channels.mail.mails.find(({ to }) => to[0] === "lea@acme.example")!.headers["list-unsubscribe"]!;
    await tab.page.goto(link.slice(1, -1));
    await tab.page.getByRole("button", { name: "Get no more of it", exact: true }).click();
    await tab.page.getByText(`lea@acme.example gets no more notices of ${organization}.`).waitFor();
    await tab.visit(`/organizations/${organization}/notices`);
    await tab.page.getByText("(unsubscribed: lea@acme.example)").waitFor();
  });
});

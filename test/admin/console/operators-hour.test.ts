// An hour of an operator's work in a real browser: each action is done on its page, takes effect for clients, and is
// then in the audit log.
import { expect, setDefaultTimeout, test } from "bun:test";
import { Browser } from "../../harness/browser.ts";
import { busyness } from "../../harness/busyness.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import { browserZone, type Tab } from "./chromium.ts";

// The test takes some seconds on a quiet machine, most of them in the browser; a busy machine gets more time.
setDefaultTimeout(120_000);

const model = "qwen/qwen3-coder";
const more = `    - { claim: groups, has: globex, organization: globex, role: member }
reports:
  provider: Example
`;

/** The current date in the browser's time zone. */
const browserDay = () => new Intl.DateTimeFormat("en-CA", { timeZone: browserZone }).format(new Date());

describeInBrowser("an operator's hour", () => {
  let node: PeopleNode;
  let tab: Tab;

  const newTab = browserForTests(
    () => startPeopleNode({ more }),
    async (started) => {
      node = started;
      const words = ["operator", "create", "ann", "--role", "admin"];
      const { token } = await node.sluice.json<{ token: string }>(...words);
      tab = await newTab(node.consoleUrl);
      await tab.signIn(token);
    },
  );

  const region = (name: string) =>
    tab.page.locator("section.section", { has: tab.page.getByRole("heading", { name }) });
  const rowOf = (text: string, within = tab.page.locator("main")) => within.locator("tbody tr", { hasText: text });

  /**
   * Opens the form of an action, fills it in, and submits it. Returns the secret that is then shown, or an empty text.
   */
  async function act(button: ReturnType<Tab["page"]["locator"]>, fields: Record<string, string>): Promise<string> {
    await button.click();
    const dialog = tab.page.locator("dialog");
    for (const [label, value] of Object.entries(fields)) {
      const field = dialog.getByLabel(label, { exact: true });
      if (await field.evaluate((element) => element.tagName === "SELECT")) await field.selectOption(value);
      else await field.fill(value);
    }
    await dialog.locator("button[type=submit]").click();
    const secret = dialog.locator("pre");
    await until(async () => (await dialog.count()) === 0 || (await secret.count()) > 0, 15_000, "the act");
    if ((await dialog.count()) === 0) return "";
    const shown = (await secret.textContent())!;
    await dialog.getByRole("button", { name: "Done" }).click();
    return shown;
  }

  const ask = (key: string, content: string, more: object = {}) =>
    node.sluice.post(
      "/v1/chat/completions",
      { model, max_tokens: 50, messages: [{ role: "user", content }], ...more },
      { key },
    );
  const button = (name: string, within: { getByRole: Tab["page"]["getByRole"] } = tab.page) =>
    within.getByRole("button", { name, exact: true });

  test("goes through the browser alone, and the audit log has each of its acts", async () => {
    // An organization is created.
    await tab.visit("/organizations");
    await act(button("Create organization"), { Slug: "globex", Name: "Globex", Plan: "pro" });
    await tab.page.waitForURL(`${node.consoleUrl}/organizations/globex`);

    // A person joins the organization by a rule.
    node.provider.account = "gil";
    node.provider.claims.set("gil", { name: "Gil Globex", groups: ["globex"] });
    const visitor = new Browser();
    await visitor.redeem(await visitor.visit(`${node.consoleUrl}/sign-in`));
    await tab.visit("/organizations/globex/people");
    await rowOf("Gil Globex", region("People")).waitFor();

    // A team gets a budget, and keys are created.
    await tab.visit("/organizations/globex/teams");
    await act(button("Create team"), { Name: "research", "Money in a week": "2" });
    await rowOf("research", region("Teams")).waitFor();
    await tab.visit("/organizations/globex/keys");
    const quiet = await act(button("Create key"), { Name: "quiet", Team: "research" });
    await rowOf("quiet", region("Keys")).waitFor();
    const noisy = await act(button("Create key"), { Name: "noisy", Team: "research" });
    await rowOf("noisy", region("Keys")).waitFor();

    // A key with too many requests is found and limited.
    const asked = [ask(quiet, "hello"), ...Array.from({ length: 8 }, () => ask(noisy, "hello again ".repeat(50)))];
    for (const answer of await Promise.all(asked)) {
      expect(answer.status).toBe(200);
      await answer.text();
    }
    await until(async () => (await node.sluice.json<object[]>("request", "list", "--org", "globex")).length === 9);
    await tab.visit("/usage?organization=globex&by=key");
    const first = tab.page.locator("main tbody tr").first();
    expect(await first.locator("td").first().textContent()).toBe("noisy");
    await first.getByRole("link", { name: "noisy", exact: true }).click();
    await tab.settled();
    expect(await tab.page.locator("main tbody tr").count()).toBe(8);
    await tab.visit("/organizations/globex/limits?of=keys");
    await act(button("Set limits", rowOf("noisy", region("Limits of keys"))), { "Requests in a minute": "1" });
    await rowOf("requests per minute 1", region("Limits of keys")).waitFor();
    await until(async () => {
      const answer = await ask(noisy, "hello");
      await answer.text();
      return answer.status === 429;
    });
    expect((await ask(quiet, "hello")).status).toBe(200);

    // An engine is drained, and brought back.
    await tab.visit("/engines");
    await tab.page.locator("main tbody tr").first().waitFor();
    const engine = tab.page.locator("main tbody tr").first();
    const name = (await engine.locator("td").first().textContent())!;
    await act(button("Drain", engine), {});
    await engine.getByText("drained", { exact: true }).waitFor();
    await until(async () => (await (await ask(quiet, "hello")).text()).includes("error"), 10_000, "the drain");
    await act(button("Resume", engine), {});
    await until(async () => (await ask(quiet, "hello")).status === 200, 10_000, "the engine to be back");

    // The report of the last month is downloaded as CSV and as FOCUS; and that of this month, which is not empty.
    await tab.visit("/usage?organization=globex");
    await tab.page.getByRole("button", { name: "Last month" }).click();
    await tab.settled();
    expect(new URL(tab.page.url()).searchParams.get("to")).toBe(browserDay().slice(0, 7));
    const last = [await saved("CSV"), await saved("FOCUS")];
    expect(last[0]).toHaveLength(1);
    // FOCUS has days of UTC. Around midnight at the end of a month, the browser's last month is still this one there.
    const isOver = new Date().toISOString().slice(0, 7) === browserDay().slice(0, 7);
    if (isOver) expect(last[1]).toHaveLength(1);
    expect(last[1]![0]).toContain("BilledCost");
    await tab.page.getByRole("button", { name: "This month" }).click();
    await tab.settled();
    expect((await saved("CSV")).join("\n")).toContain("globex");

    // A key is revoked while a request of it streams.
    const stream = await ask(quiet, "Tell me more. [simulator: tps=20 tokens=1000]", {
      max_tokens: 2000,
      stream: true,
    });
    const reader = stream.body!.getReader();
    expect((await reader.read()).done).toBeFalse();
    await tab.visit("/organizations/globex/keys");
    await act(button("Revoke", rowOf("quiet", region("Keys"))), { "To confirm, type quiet": "quiet" });
    const revoked_ms = performance.now();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read())
      rest += new TextDecoder().decode(part.value);
    expect(performance.now() - revoked_ms).toBeLessThan(5_000 * busyness());
    expect(rest).toContain("revoked_api_key");
    expect((await ask(quiet, "hello")).status).toBe(401);

    // All these actions are in the audit log, and on its page.
    const log = await node.sluice.json<{ actor: string; action: string; subject: string }[]>("audit", "list");
    const acts = log.filter(({ actor }) => actor === "operator:ann").map(({ action }) => action);
    expect(acts.reverse()).toEqual([
      "organization.create",
      "team.create",
      "key.create",
      "key.create",
      "key.limits",
      "upstream.drain",
      "upstream.resume",
      "key.revoke",
    ]);
    expect(log.find(({ action }) => action === "upstream.drain")!.subject).toContain(name);
    await tab.visit("/audit?organization=globex");
    const shown = await tab.page.locator("main tbody tr td[data-head=Action]").allTextContents();
    for (const action of ["organization.create", "team.create", "key.create", "key.revoke"])
      expect(shown).toContain(action);
    expect(tab.found).toEqual([]);
  });

  async function saved(label: string): Promise<string[]> {
    const refusal = tab.page.locator("main [role=alert]");
    const begun = tab.page.waitForEvent("download");
    await button(label).click();
    const download = await Promise.race([begun, refusal.waitFor().then(async () => fail(await refusal.textContent()))]);
    const text = await Bun.file((await download.path())!).text();
    return text.trim().split(/\r?\n/);
  }
});

function fail(why: string | null): never {
  throw new Error(why ?? "");
}

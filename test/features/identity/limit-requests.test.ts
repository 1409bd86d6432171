// From an exhausted limit in Claude Code to a higher limit with which the same request succeeds, done by two people
// with new browsers; and the same without a console. No step can be triggered by a GET, so link scanners change
// nothing.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { launchBrowser, noBrowser, openTab, type Tab } from "../../admin/console/chromium.ts";
import { type Laptop, laptop } from "../../harness/laptop.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import { typedHere } from "./typed-here.ts";

setDefaultTimeout(120_000);

interface Asked {
  id: string;
  state: string;
  request_id: string | null;
}
interface Refused {
  error: { message: string; details: { console_url: string; limited_by: string } };
  request_id: string;
}

let node: PeopleNode;
let home: Laptop;
let token: string;
let person: string;
beforeAll(async () => {
  node = await startPeopleNode();
  node.provider.claims.set("ann", { name: "Ann", email: "ann@x.test", email_verified: true, groups: ["research"] });
  node.provider.claims.set("lea", { name: "Lea", email: "lea@x.test", email_verified: true, groups: ["leads"] });
  node.provider.account = "ann";
  home = laptop();
  await home.signIn(node);
  token = JSON.parse(readFileSync(home.signInFile(node.serviceUrl), "utf8")).access_token;
  person = (await node.sluice.json<{ id: string }>("person", "show", "ann@x.test")).id;
});
afterAll(async () => {
  home?.[Symbol.dispose]();
  await node?.[Symbol.asyncDispose]();
});

const body = { model: "qwen/qwen3-coder", max_tokens: 20, messages: [{ role: "user", content: "hi" }] };
const ask = () => node.sluice.post("/v1/messages", body, { key: token });

/** Makes Ann use up a small monthly limit, and returns the error that Claude Code gets. */
async function refusedNow(): Promise<Refused> {
  const { organization } = node.sluice;
  await node.sluice.json("limit", "set", "person", person, "--org", organization, "month=0.00006");
  let answer = await ask();
  const isOver = async () => {
    if (answer.status === 429 && answer.headers.get("retry-after") !== "1") return true;
    await answer.text();
    answer = await ask();
    return false;
  };
  await until(isOver, 30_000, "the refusal");
  const refused = (await answer.json()) as Refused;
  // The receipt of the refused request is written shortly after the response.
  const hasReceipt = () =>
    node.sluice.json("request", "show", refused.request_id).then(
      () => true,
      () => false,
    );
  await until(hasReceipt, 10_000, "its receipt");
  return refused;
}

const requests = () => node.sluice.json<Asked[]>("limit", "requests");

test("a refusal links to its request in the console, for programs and in the sentence of Claude Code", async () => {
  const { error, request_id } = await refusedNow();
  const url = `${node.consoleUrl}/requests/${request_id}`;
  expect(error.details).toMatchObject({ console_url: url, limited_by: "person" });
  expect(error.message).toEndWith(`; you can ask for more at ${url}`);
});

test("somebody signed in asks by a command, and an administrator approves by another", async () => {
  const { request_id } = await refusedNow();
  const request = ["limit", "request", "--request", request_id];
  const asked = await typedHere(home, ...request, "--amount", "5", "--message", "a release", "--json");
  expect(asked).toMatchObject({ code: 0, stderr: "" });
  const { id } = JSON.parse(asked.stdout) as Asked;
  expect(await requests()).toMatchObject([{ id, state: "open", request_id, message: "a release" }]);
  const again = await typedHere(home, ...request, "--message", "again");
  const refusal = "sluice: You have asked for this limit, and nobody has decided yet.\n";
  expect([again.code, again.stderr]).toEqual([1, refusal]);
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  await node.sluice.json("limit", "approve", id, "--until", tomorrow);
  await until(async () => (await ask()).status === 200, 10_000, "the raise in force");
  await node.sluice.json("limit", "raise", "person", person, "--org", node.sluice.organization, "--end");
});

test("a key without a person asks for nothing, and a token asks and does nothing else of management", async () => {
  const asking = (path: string, key: string) =>
    fetch(node.serviceUrl + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ limit: "month", message: "more" }),
    });
  expect((await asking("/api/limit-requests", node.sluice.key)).status).toBe(409);
  expect((await asking("/api/limit-requests", "slt_forged")).status).toBe(401);
  const [{ id }] = (await requests()) as [Asked];
  for (const path of [`/api/limit-requests/${id}/approve`, `/management/v1/limit-requests/${id}/approve`])
    expect([path, (await asking(path, token)).status]).toEqual([path, 404]);
});

describe.skipIf(noBrowser !== null)("in two browsers", () => {
  let browser: Awaited<ReturnType<typeof launchBrowser>>;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  let clicks = 0;
  const click = async (page: Page, role: "button" | "link", name: string | RegExp) => {
    await page
      .getByRole(role, { name, exact: typeof name === "string" })
      .last()
      .click();
    clicks += 1;
  };
  /** Opens a link into the console in a tab whose user is not signed in there. */
  async function arrive(tab: Tab, account: string, url: string): Promise<void> {
    node.provider.account = account;
    tab.leaveFor(node.provider);
    await tab.page.goto(url);
    await click(tab.page, "link", /^Sign in with /);
    await tab.page.waitForSelector(".rail");
    await tab.settled();
    expect(tab.page.url()).toBe(url);
  }

  test("Ann asks by the link of the refusal, Lea approves by the link of the notice, and Ann goes on", async () => {
    const { error } = await refusedNow();
    const look = { theme: "light", width: 1440 } as const;
    const [ann, lea] = [await openTab(node.consoleUrl, look, browser), await openTab(node.consoleUrl, look, browser)];
    clicks = 0;
    const began_ms = performance.now();
    await arrive(ann, "ann", error.details.console_url);
    await click(ann.page, "button", "Ask for more");
    const form = ann.page.locator("dialog");
    await form.getByLabel("How much it should be").fill("5");
    await form.getByLabel("Why").fill("The release on Friday");
    expect(await ann.axeProblems()).toEqual([]);
    await click(ann.page, "button", "Ask for more");
    await ann.page.getByText("You asked for more").waitFor();
    const asked_ms = performance.now();
    const [open] = (await requests()).filter(({ state }) => state === "open");
    await arrive(lea, "lea", `${node.consoleUrl}/limit-requests/${open!.id}`);
    expect(await lea.axeProblems()).toEqual([]);
    await click(lea.page, "button", "Approve");
    await lea.page.locator("dialog").waitFor();
    await click(lea.page, "button", "Approve");
    await lea.page.getByText("granted", { exact: true }).waitFor();
    await until(async () => (await ask()).status === 200, 10_000, "the raise in force");
    const ended_ms = performance.now();
    console.log(
      `limit met to going on: ${clicks} clicks, ${((ended_ms - began_ms) / 1000).toFixed(1)} s of the machine (${((asked_ms - began_ms) / 1000).toFixed(1)} s to ask)`,
    );
    expect(clicks).toBe(6);
    await lea.visit(`/organizations/${node.sluice.organization}/asked`);
    expect(await lea.page.getByRole("link", { name: "Asked for more (0)" }).count()).toBe(1);
    expect(await lea.axeProblems()).toEqual([]);
    expect([...ann.found, ...lea.found]).toEqual([]);
  });
});

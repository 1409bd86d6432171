// The console's port over real sockets, with oidc-provider as the issuer: sign-in, sign-out, and what must not open it.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Browser } from "../harness/browser.ts";
import { type PeopleNode, startPeopleNode } from "../harness/people-node.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(60_000);

describe("the console", () => {
  let node: PeopleNode;
  let browser: Browser;
  const secrets: string[] = [];
  beforeAll(async () => {
    node = await startPeopleNode({ secrets });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  beforeEach(() => {
    browser = new Browser();
    node.provider.account = "ann";
    node.provider.claims.set("ann", {
      name: "Ann <b>",
      email: "ann@x.test",
      email_verified: true,
      groups: ["research"],
    });
  });

  const signIn = async (who = browser) => who.click(await who.visit(node.consoleUrl), "Sign in with");

  test("says who one is and what one may do, after a sign-in at the issuer", async () => {
    const first = await browser.visit(node.consoleUrl);
    expect(first.text).toContain("Sign in to Sluice");
    const page = await signIn();
    expect(page.url.href).toBe(`${node.consoleUrl}/`);
    expect(page.text).toContain("Ann &lt;b&gt;");
    expect(page.text).toContain("ann@x.test");
    expect(page.text).toContain(`<td>${node.sluice.organization}</td><td>member</td>`);
    expect(page.text).not.toContain("<b>");
    const policy = page.headers.get("content-security-policy")!;
    for (const part of ["default-src 'none'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"])
      expect(policy).toContain(part);
    expect(page.headers.get("access-control-allow-origin")).toBeNull();
    expect(page.headers.get("cache-control")).toBe("no-store");
  });

  test("has a cookie that is opaque, for this host alone, and no script's", async () => {
    await signIn();
    const cookie = browser.cookie("sluice-console")!;
    expect(cookie).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(browser.cookie("sluice-console-sign-in")).toBeUndefined();
    const again = await fetch(`${node.consoleUrl}/sign-in`, { redirect: "manual" });
    expect(again.headers.get("set-cookie")).toMatch(/; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
  });

  test("gives a new id at each sign-in, and ends the one before", async () => {
    await signIn();
    const before = browser.cookie("sluice-console")!;
    await browser.visit(`${node.consoleUrl}/sign-in`);
    expect(browser.cookie("sluice-console")).not.toBe(before);
    const thief = await fetch(node.consoleUrl, { headers: { cookie: `sluice-console=${before}` } });
    expect(await thief.text()).toContain("Sign in to Sluice");
  });

  test("takes no session id from a browser: one that was set beforehand opens nothing", async () => {
    const fixed = "A".repeat(43);
    browser.cookies.push({ name: "sluice-console", value: fixed, host: "127.0.0.1", path: "/" });
    await signIn();
    expect(browser.cookies.filter(({ name }) => name === "sluice-console").map(({ value }) => value)).not.toContain(
      fixed,
    );
  });

  test("refuses an answer without this browser's sign-in, another state, and a second use", async () => {
    const answers: string[] = [];
    const page = await signIn();
    answers.push(page.way.at(-1)!);
    const replay = new URL(answers[0]!);
    expect(replay.pathname).toBe("/oauth/callback");
    for (const who of [browser, new Browser()]) {
      const again = await who.visit(replay);
      expect(again.status).toBe(400);
      expect(again.text).toContain("Not signed in");
    }
    await fetch(`${node.consoleUrl}/sign-in`, { redirect: "manual" }).then((begun) => {
      const cookie = begun.headers.get("set-cookie")!.split(";")[0]!;
      replay.searchParams.set("state", "another");
      return fetch(replay, { headers: { cookie }, redirect: "manual" }).then(({ status }) => expect(status).toBe(400));
    });
  });

  test("sends the browser with PKCE, state and nonce, to its own address alone", async () => {
    const begun = await fetch(
      `${node.consoleUrl}/sign-in?returnTo=https://evil.example&redirect_uri=https://evil.example`,
      {
        redirect: "manual",
      },
    );
    const url = new URL(begun.headers.get("location")!);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      ...{ response_type: "code", code_challenge_method: "S256", redirect_uri: `${node.consoleUrl}/oauth/callback` },
    });
    for (const name of ["state", "nonce", "code_challenge"])
      expect(url.searchParams.get(name)).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(url.href).not.toContain("evil");
    const other = await fetch(`${node.consoleUrl}/sign-in?issuer=https://evil.example`, { redirect: "manual" });
    expect(other.status).toBe(400);
  });

  test("lets nobody in whom no rule knows, and says whom to name", async () => {
    node.provider.account = "eve";
    const page = await signIn();
    expect(page.status).toBe(403);
    expect(page.text).toMatch(/Ask your administrator for a membership, and name per_[0-9a-f]{32}/);
    expect(browser.cookie("sluice-console")).toBeUndefined();
  });

  test("signs out by its own form alone: no other origin, no other session's form", async () => {
    const page = await signIn();
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1"]) {
      const refused = await browser.submit(page, "/sign-out", {}, { origin });
      expect(refused.status).toBe(400);
    }
    const other = new Browser();
    node.provider.account = "bob";
    node.provider.claims.set("bob", { groups: ["platform"] });
    const theirs = await signIn(other);
    const secret = /name="form_secret" value="([^"]+)"/.exec(theirs.text)![1]!;
    expect((await browser.send(page, "/sign-out", { form_secret: secret })).status).toBe(400);
    const cookie = browser.cookie("sluice-console")!;
    const out = await browser.submit(page, "/sign-out");
    expect(out.text).toContain("Signed out");
    expect(browser.cookie("sluice-console")).toBeUndefined();
    const thief = await fetch(node.consoleUrl, { headers: { cookie: `sluice-console=${cookie}` } });
    expect(await thief.text()).toContain("Sign in to Sluice");
    const link = /href="([^"]+)">Sign out at/.exec(out.text)![1]!.replaceAll("&amp;", "&");
    expect(Object.fromEntries(new URL(link).searchParams)).toEqual({
      ...{ client_id: "sluice", post_logout_redirect_uri: `${node.consoleUrl}/` },
    });
    expect((await fetch(link)).status).toBe(200);
  });

  test("answers to its own name and to addresses alone", async () => {
    const asked = (host: string) => fetch(node.consoleUrl, { headers: { host } }).then(({ status }) => status);
    expect(await asked("attacker.example")).toBe(403);
    expect(await asked("localhost")).toBe(200);
  });

  test("serves nothing of the other ports, and those serve none of it", async () => {
    for (const path of ["/metrics", "/v1/models", "/management/v1/organizations"])
      expect((await fetch(node.consoleUrl + path)).status).toBe(404);
    expect((await fetch(`${node.serviceUrl}/sign-in`, { redirect: "manual" })).status).toBe(404);
    expect((await fetch(`${node.consoleUrl}/livez`)).status).toBe(200);
  });

  test("a cookie opens nothing of the service", async () => {
    await signIn();
    const cookie = `sluice-console=${browser.cookie("sluice-console")}`;
    expect((await fetch(`${node.serviceUrl}/v1/models`, { headers: { cookie } })).status).toBe(401);
  });

  test("ends a session when the issuer says that its own has ended", async () => {
    await signIn();
    expect((await browser.visit(node.consoleUrl)).text).toContain("What you may do");
    // Ends the session at the issuer, which then tells the console.
    const there = await browser.visit(`${node.provider.issuer}/session/end?client_id=sluice`);
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(there.text)![1]!;
    await browser.send(there, "/session/end/confirm", { xsrf, logout: "yes" });
    await until(
      async () => (await browser.visit(node.consoleUrl)).text.includes("Sign in to Sluice"),
      5_000,
      "the session to end",
    );
    await until(() => node.sluice.stderr().includes('"event":"issuer_logout"'), 5_000, "the log to say so");
  });

  test("writes no code, state or token into its log", async () => {
    const page = await signIn();
    const answer = new URL(page.way.at(-1)!);
    // They are searched when the node has stopped.
    secrets.push(answer.searchParams.get("code")!, answer.searchParams.get("state")!);
    secrets.push(browser.cookie("sluice-console")!);
  });
});

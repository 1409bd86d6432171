// The sign-in of a device over real sockets, with oidc-provider: codes, the page for the code, tokens that work as
// keys, refresh and revocation.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { findDevice } from "../../../src/features/identity/devices.ts";
import { Browser, type Page } from "../../harness/browser.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(120_000);

interface Authorization {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  interval: number;
}
interface TokenAnswer {
  access_token: string;
  refresh_token: string;
  error?: string;
}

describe("a device", () => {
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
    node.provider.claims.set("ann", { name: "Ann", email: "ann@x.test", email_verified: true, groups: ["research"] });
  });

  const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    fetch(node.serviceUrl + path, { method: "POST", body: new URLSearchParams(fields), headers });
  const authorize = async (fields: Record<string, string> = { surface: "claude_code" }, agent = "claude-cli/2") =>
    (await (await post("/oauth/device_authorization", fields, { "user-agent": agent })).json()) as Authorization;
  const poll = async (device_code: string) => {
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const response = await post("/oauth/token", { grant_type, device_code });
    const answer = (await response.json()) as TokenAnswer;
    if (answer.access_token) secrets.push(answer.access_token, answer.refresh_token);
    return { status: response.status, ...answer };
  };
  const refresh = async (refresh_token: string) => {
    const response = await post("/oauth/token", { grant_type: "refresh_token", refresh_token });
    return { status: response.status, ...((await response.json()) as TokenAnswer) };
  };
  const models = (token: string) =>
    fetch(`${node.serviceUrl}/v1/models`, { headers: { authorization: `Bearer ${token}` } });

  /** Opens a device's link, and signs in, up to the page that asks for a decision. */
  async function toDecision({ verification_uri_complete }: Authorization, who = browser): Promise<Page> {
    return who.submit(await who.visit(verification_uri_complete), "/device");
  }
  async function signedIn(): Promise<TokenAnswer> {
    const begun = await authorize();
    const page = await browser.submit(await toDecision(begun), "/device/decision", {
      ...{ decision: "approve", organization: await organizationId() },
    });
    expect(page.text).toContain("Approved");
    return poll(begun.device_code);
  }
  const organizationId = async () => (await node.sluice.json<{ id: string }[]>("org", "list")).map(({ id }) => id)[0]!;

  test("finds what it needs in the metadata", async () => {
    const response = await fetch(`${node.serviceUrl}/.well-known/oauth-authorization-server`);
    expect(await response.json()).toMatchObject({
      issuer: node.serviceUrl,
      token_endpoint: `${node.serviceUrl}/oauth/token`,
      device_authorization_endpoint: `${node.serviceUrl}/oauth/device_authorization`,
      revocation_endpoint: `${node.serviceUrl}/oauth/revoke`,
    });
  });

  test("gets tokens once somebody has approved it, and calls as with a key on all three protocols", async () => {
    const begun = await authorize();
    expect(begun.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(begun.verification_uri).toBe(`${node.serviceUrl}/device`);
    expect(await poll(begun.device_code)).toMatchObject({ status: 400, error: "authorization_pending" });
    expect(await poll(begun.device_code)).toMatchObject({ status: 400, error: "slow_down" });
    const first = await browser.visit(begun.verification_uri_complete);
    // The browser had to sign in at the issuer first. Then the page shows the code, but has not submitted it.
    expect(first.way.some((url) => url.startsWith(node.provider.issuer))).toBe(true);
    expect(first.text).toContain(`value="${begun.user_code}"`);
    expect(first.text).not.toContain("claude-cli/2");
    const decision = await browser.submit(first, "/device");
    for (const words of ["claude_code claude-cli/2", "127.0.0.1", "ann@x.test", `${node.sluice.organization} (member)`])
      expect(decision.text).toContain(words);
    const approved = await browser.submit(decision, "/device/decision", {
      ...{ decision: "approve", organization: await organizationId() },
    });
    expect(approved.text).toContain("Approved");
    expect(browser.cookie("sluice-device")).toBeUndefined();
    const tokens = await poll(begun.device_code);
    const told: object = { status: 200, token_type: "Bearer", expires_in: 3600, email: "ann@x.test" };
    expect(tokens).toMatchObject(told);
    expect(tokens.access_token).toMatch(/^slt_[0-9A-Za-z]{38}$/);
    expect(tokens.refresh_token).toMatch(/^slr_[0-9A-Za-z]{38}$/);
    expect(await poll(begun.device_code)).toMatchObject({ status: 400, error: "expired_token" });
    const { data } = (await (await models(tokens.access_token)).json()) as { data: { id: string }[] };
    const model = data[0]!.id;
    const message = { model, max_tokens: 5, messages: [{ role: "user", content: "hi" }] };
    const bodies = { "chat/completions": message, messages: message, responses: { model, input: "hi" } };
    for (const [path, body] of Object.entries(bodies)) {
      const response = await fetch(`${node.serviceUrl}/v1/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${tokens.access_token}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect([path, response.status]).toEqual([path, 200]);
    }
  });

  test("a program that names itself twice in the same words is shown once", async () => {
    const decision = await toDecision(await authorize({ client_id: "sluice-cli" }, "sluice-cli"));
    expect(decision.text).toContain("<td>sluice-cli</td>");
  });

  test("works with x-api-key too, and neither token opens anything else", async () => {
    const { access_token, refresh_token } = await signedIn();
    const asKey = await fetch(`${node.serviceUrl}/v1/models`, { headers: { "x-api-key": access_token } });
    expect(asKey.status).toBe(200);
    expect((await models(refresh_token)).status).toBe(401);
    expect((await refresh(access_token)).error).toBe("invalid_grant");
  });

  test("is refreshed by a token that works once, whose answer can be had again for a minute", async () => {
    const first = await signedIn();
    const second = await refresh(first.refresh_token);
    expect(second.status).toBe(200);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    // A client that did not get the response may repeat the refresh: the same refresh token returns the same successor.
    expect((await refresh(first.refresh_token)).refresh_token).toBe(second.refresh_token);
    const third = await refresh(second.refresh_token);
    expect((await models(third.access_token)).status).toBe(200);
    expect((await refresh("slr_nothing")).error).toBe("invalid_grant");
  });

  test("races of one token bring one successor", async () => {
    const { refresh_token } = await signedIn();
    const all = await Promise.all([1, 2, 3, 4].map(() => refresh(refresh_token)));
    expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(all.map((one) => one.refresh_token)).size).toBe(1);
  });

  test("ends by revocation, with either token, on this node at once", async () => {
    for (const name of ["access_token", "refresh_token"] as const) {
      const tokens = await signedIn();
      expect((await models(tokens.access_token)).status).toBe(200);
      expect((await post("/oauth/revoke", { token: tokens[name] })).status).toBe(200);
      await until(async () => (await models(tokens.access_token)).status === 401, 1_000, "the token to end");
      expect((await refresh(tokens.refresh_token)).error).toBe("invalid_grant");
    }
    expect((await post("/oauth/revoke", { token: "whatever" })).status).toBe(200);
  });

  test.each(["its person leaves the issuer", "the rules give nothing there any more"])(
    "ends when %s: the next refresh is refused, and what there is stops",
    async (why) => {
      const tokens = await signedIn();
      if (why.startsWith("its person")) node.provider.gone.add("ann");
      else node.provider.claims.set("ann", { groups: [] });
      expect((await refresh(tokens.refresh_token)).error).toBe("invalid_grant");
      await until(async () => (await models(tokens.access_token)).status === 401, 1_000, "the token to end");
      node.provider.gone.delete("ann");
    },
  );

  test("is denied, and hears it once", async () => {
    const begun = await authorize();
    const page = await browser.submit(await toDecision(begun), "/device/decision", { decision: "deny" });
    expect(page.text).toContain("Denied");
    expect((await poll(begun.device_code)).error).toBe("access_denied");
    expect((await poll(begun.device_code)).error).toBe("expired_token");
  });

  test("is approved from the page alone: not by a link, another origin, another session or another organization", async () => {
    const begun = await authorize();
    await browser.visit(`${node.serviceUrl}/device/decision?user_code=${begun.user_code}&decision=approve`);
    const decision = await toDecision(begun);
    const fields = { user_code: begun.user_code, decision: "approve", organization: await organizationId() };
    const foreign = await browser.submit(decision, "/device/decision", fields, { origin: "https://evil.example" });
    expect(foreign.status).toBe(400);
    expect((await browser.send(decision, "/device/decision", fields)).status).toBe(400);
    const other = `org_${"0".repeat(32)}`;
    expect((await browser.submit(decision, "/device/decision", { ...fields, organization: other })).status).toBe(400);
    expect((await poll(begun.device_code)).error).toBe("authorization_pending");
  });

  test("is shown to its person as it says it is: what others wrote is text on the page, and no markup", async () => {
    const markup = `<img src=x onerror=alert(1)>"'&lt;`;
    node.provider.claims.set("ann", { name: markup, email: `${markup}@x.test`, groups: ["research"] });
    const begun = await authorize({ surface: markup });
    const decision = await toDecision(begun);
    const wrong = await browser.submit(decision, "/device/decision", { decision: "approve", organization: markup });
    for (const { text } of [await browser.visit(begun.verification_uri_complete), decision, wrong]) {
      expect(text).not.toContain("<img");
      expect(text).toContain("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;lt;");
    }
  });

  test("wrong codes are few: ten for a person and an address, then a wait", async () => {
    let page = await browser.visit(`${node.serviceUrl}/device`);
    for (let count = 0; count < 10; count++) page = await browser.submit(page, "/device", { user_code: "BBBB-BBBB" });
    expect(page.status).toBe(400);
    page = await browser.submit(page, "/device", { user_code: "BBBB-BBBC" });
    expect(page.status).toBe(429);
    const begun = await authorize();
    expect((await browser.submit(page, "/device", { user_code: begun.user_code })).status).toBe(429);
  });

  test("those that wait at an address are ten", async () => {
    let response = await post("/oauth/device_authorization", {});
    for (let count = 0; count < 12 && response.status === 200; count++)
      response = await post("/oauth/device_authorization", {});
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({ error: "slow_down" });
  });

  test("the page answers under its own name alone, and other paths to any", async () => {
    const asked = (path: string) =>
      fetch(node.serviceUrl + path, { headers: { host: "attacker.example" }, redirect: "manual" });
    expect((await asked("/device")).status).toBe(403);
    expect((await asked("/oauth/callback")).status).toBe(403);
    expect((await asked("/.well-known/oauth-authorization-server")).status).toBe(200);
  });

  test("bad requests get the words of OAuth", async () => {
    // All but the first are names that every JavaScript object inherits. None of them is a supported grant type.
    const unknown = ["password", "constructor", "__proto__", "toString", "hasOwnProperty"];
    const cases: [Record<string, string>, string][] = [
      ...unknown.map((grant_type): (typeof cases)[0] => [{ grant_type }, "unsupported_grant_type"]),
      [{}, "invalid_request"],
      [{ grant_type: "refresh_token" }, "invalid_request"],
      [{ grant_type: "refresh_token", refresh_token: "x" }, "invalid_grant"],
    ];
    for (const [fields, error] of cases) {
      const response = await post("/oauth/token", fields);
      expect(response.status).toBe(400);
      expect(((await response.json()) as TokenAnswer).error).toBe(error);
      expect(response.headers.get("cache-control")).toBe("no-store");
    }
    const twice = await fetch(`${node.serviceUrl}/oauth/token`, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "grant_type=refresh_token&grant_type=password",
    });
    expect(twice.status).toBe(400);
  });

  // This test is the last one, because it uses up the failed attempts that an address may make in a minute.
  test("tokens that nobody knows are few a minute: then their address waits, with cookies and answers too", async () => {
    let answer = await refresh("slr_nothing");
    for (let count = 0; count < 320 && answer.status === 400; count++) answer = await refresh("slr_nothing");
    expect(answer).toMatchObject({ status: 429, error: "slow_down" });
    const cookie = `sluice-console=${"x".repeat(43)}`;
    // Meanwhile, a few more failed attempts of the minute may have become available.
    for (const path of ["/session", "/oauth/callback?code=c"]) {
      const isRefused = async () => (await fetch(node.consoleUrl + path, { headers: { cookie } })).status === 429;
      await until(isRefused, 5_000, `${path} to answer 429`);
    }
    expect((await fetch(node.consoleUrl)).status).toBe(200);
  });
});

test("without identity, none of it is there", async () => {
  const sluice = await startSluice();
  for (const path of ["/device", "/oauth/callback", "/.well-known/oauth-authorization-server"])
    expect((await fetch(sluice.url + path)).status).toBe(404);
  expect((await fetch(`${sluice.url}/oauth/token`, { method: "POST" })).status).toBe(404);
  await sluice.stop();
});

test("a store that fails while a right code is taken back from the tries fails the request, and nothing else", async () => {
  const device = { expiresAt: new Date() };
  const uses = { count: async () => 1, uncount: () => Promise.reject(new Error("the store is away")) };
  const parts = { devices: { find: async () => device }, uses } as unknown as Parameters<typeof findDevice>[0];
  const asked = { text: "BCDF-GHJK", address: "192.0.2.1", personId: "person_1" };
  await expect(findDevice(parts, asked)).rejects.toThrow("the store is away");
});

// This test has a node of its own, because the later decision counts as a wrong code.
test("a device is approved and denied at once: one decision counts, and the other page says that it does not", async () => {
  const secrets: string[] = [];
  await using node = await startPeopleNode({ secrets });
  node.provider.account = "ann";
  node.provider.claims.set("ann", { name: "Ann", groups: ["research"] });
  const post = async (path: string, fields: Record<string, string>) => {
    const response = await fetch(node.serviceUrl + path, { method: "POST", body: new URLSearchParams(fields) });
    return { status: response.status, answer: (await response.json()) as Record<string, string> };
  };
  const [organization] = (await node.sluice.json<{ id: string }[]>("org", "list")).map(({ id }) => id);
  for (let round = 0; round < 2; round++) {
    const { answer: begun } = await post("/oauth/device_authorization", { surface: "test" });
    const decide = async (decision: string) => {
      const browser = new Browser();
      const page = await browser.submit(await browser.visit(begun.verification_uri_complete!), "/device");
      return () => browser.submit(page, "/device/decision", { decision, organization: organization! });
    };
    const [approve, deny] = [await decide("approve"), await decide("deny")];
    const [approval, denial] = await Promise.all([approve(), deny()]);
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const { status, answer } = await post("/oauth/token", { grant_type, device_code: begun.device_code! });
    secrets.push(...[answer.access_token, answer.refresh_token].filter((secret) => secret !== undefined));
    const isApproved = status === 200;
    expect(answer.error).toBe(isApproved ? undefined : "access_denied");
    expect([approval.status, approval.text.includes("<h1>Approved")]).toEqual([isApproved ? 200 : 400, isApproved]);
    expect([denial.status, denial.text.includes("<h1>Denied")]).toEqual([isApproved ? 400 : 200, !isApproved]);
  }
});

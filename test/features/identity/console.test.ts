// The console's port over real sockets, with oidc-provider as the issuer: sign-in, sign-out, break-in attempts that
// must fail, accepting an invitation, and link scanners that have every user's session: no GET changes anything.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { verbs } from "../../../src/admin/management/verbs.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { Browser, type Page } from "../../harness/browser.ts";
import { signInByIssuer } from "../../harness/console-session.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

let database: Awaited<ReturnType<typeof migratedDatabase>>;
let db: Database;
let node: PeopleNode;
const secrets: string[] = [];
beforeAll(async () => {
  database = await migratedDatabase();
  db = await serverDatabase(database.url);
  node = await startPeopleNode({ secrets, env: { DATABASE_URL: database.url } });
});
afterAll(async () => {
  await node?.[Symbol.asyncDispose]();
  await db?.close();
  await database?.drop();
});

describe("the console", () => {
  let browser: Browser;
  beforeEach(() => {
    browser = new Browser();
    node.provider.account = "ann";
    const claims = { email: "ann@x.test", email_verified: true, groups: ["research"] };
    node.provider.claims.set("ann", { name: "Ann <b>", ...claims });
  });

  /** Signs in at the issuer, and returns the page on which the browser ends. */
  const signIn = (who = browser): Promise<Page> => who.visit(`${node.consoleUrl}/sign-in`);
  const session = (page: Page, secret?: string, who = browser) => who.call(page, "/session", secret ? { secret } : {});
  const signedIn = async (who = browser) => {
    const page = await signIn(who);
    return { page, secret: await who.redeem(page) };
  };

  function withCookie(value: string): Browser {
    const other = new Browser();
    other.cookies.push({ name: "sluice-console", value, host: "127.0.0.1", path: "/" });
    return other;
  }

  test("says who one is and what one may do, after a sign-in at the issuer", async () => {
    const first = await browser.visit(node.consoleUrl);
    const ways = await browser.call(first, "/session/ways");
    const { issuers } = ways.body as { issuers: { name: string; href: string }[] };
    expect(issuers.map(({ name }) => name)).toEqual([new URL(node.provider.issuer).host]);
    const page = await browser.visit(new URL(issuers[0]!.href, node.consoleUrl));
    expect(page.url.href).toStartWith(`${node.consoleUrl}/#code=`);
    const secret = await browser.redeem(page);
    const { status, body, headers } = await session(page, secret);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...{ kind: "person", name: "Ann <b>", email: "ann@x.test", role: null, embedded: false },
      ...{ base_url: node.serviceUrl, memberships: [{ organization: node.sluice.organization, role: "member" }] },
    });
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test("serves its pages under a policy that lets them load and run only what is their own", async () => {
    const page = await browser.visit(node.consoleUrl);
    const policy = page.headers.get("content-security-policy")!;
    const parts = ["default-src 'none'", "script-src 'self'", "form-action 'self'", "base-uri 'none'"];
    for (const part of [...parts, "frame-ancestors 'none'", "require-trusted-types-for 'script'"])
      expect(policy).toContain(part);
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const again = await fetch(node.consoleUrl, { headers: { "if-none-match": page.headers.get("etag")! } });
    expect(again.status).toBe(304);
    const address = await browser.visit(`${node.consoleUrl}/organizations/acme?window=week`);
    expect([address.status, address.text]).toEqual([200, page.text]);
    expect((await fetch(`${node.consoleUrl}/organizations/acme`)).status).toBe(404);
    expect((await fetch(`${node.consoleUrl}/assets/none.00000000.js`)).status).toBe(404);
    // The error has no hint: this port does not publish its paths, and no path of another API resembles one of them.
    for (const asked of ["/v1/videos", "/v1beta/models"]) {
      const { error } = (await (await fetch(node.consoleUrl + asked)).json()) as { error: { message: string } };
      expect(error.message).toBe(`There is nothing at '${asked}'.`);
    }
  });

  test("has a cookie that is opaque, for this host alone, and no script's", async () => {
    await signIn();
    const cookie = browser.cookie("sluice-console")!;
    expect(cookie).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(browser.cookie("sluice-console-sign-in")).toBeUndefined();
    const again = await fetch(`${node.consoleUrl}/sign-in`, { redirect: "manual" });
    expect(again.headers.get("set-cookie")).toMatch(/; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
  });

  test("opens nothing with the cookie alone, another session's secret, or the secret without the cookie", async () => {
    const { page, secret } = await signedIn();
    const other = new Browser();
    const theirs = await signedIn(other);
    for (const [who, given] of [
      [browser, undefined],
      [browser, theirs.secret],
      [browser, "A".repeat(43)],
      [browser, ""],
      [new Browser(), secret],
    ] as const) {
      for (const path of ["/session", "/management/v1/organizations"]) {
        const { status, code } = await who.call(page, path, given === undefined ? {} : { secret: given });
        expect([path, status, code]).toEqual([path, 401, "missing_session"]);
      }
      const { status } = await who.call(page, "/session", { method: "DELETE", ...(given ? { secret: given } : {}) });
      expect(status).toBe(401);
    }
    expect((await session(page, secret)).status).toBe(200);
  });

  test("gives the page its secret once, for the code of this very sign-in, in this very browser", async () => {
    const page = await signIn();
    const code = page.url.hash.slice("#code=".length);
    const thief = new Browser();
    const theirs = await signedIn(thief);
    const ask = (who: Browser, given: string) =>
      who.call(page, "/session/secret", { method: "POST", body: { code: given } }).then(({ status }) => status);
    expect(await ask(thief, code)).toBe(401);
    expect(await ask(new Browser(), code)).toBe(401);
    expect(await ask(browser, "A".repeat(43))).toBe(401);
    expect(await ask(browser, theirs.secret)).toBe(401);
    expect(await ask(browser, code)).toBe(200);
    expect(await ask(browser, code)).toBe(401);
    expect((await browser.call(page, "/session/secret", { method: "POST", body: {} })).status).toBe(400);
  });

  test("gives a new id at each sign-in, and ends the one before", async () => {
    const { page, secret } = await signedIn();
    const before = browser.cookie("sluice-console")!;
    await signIn();
    expect(browser.cookie("sluice-console")).not.toBe(before);
    expect((await session(page, secret, withCookie(before))).status).toBe(401);
  });

  test("takes no session id from a browser: one that was set beforehand opens nothing", async () => {
    const fixed = "A".repeat(43);
    browser = withCookie(fixed);
    await signIn();
    const own = browser.cookies.filter(({ name }) => name === "sluice-console");
    expect(own.map(({ value }) => value)).not.toContain(fixed);
  });

  test("refuses an answer without this browser's sign-in, another state, and a second use", async () => {
    const replay = new URL((await signIn()).way.at(-1)!);
    expect(replay.pathname).toBe("/oauth/callback");
    for (const who of [browser, new Browser()]) {
      const again = await who.visit(replay);
      expect(again.status).toBe(400);
      expect(again.text).toContain("Not signed in");
    }
    const begun = await fetch(`${node.consoleUrl}/sign-in`, { redirect: "manual" });
    const cookie = begun.headers.get("set-cookie")!.split(";")[0]!;
    replay.searchParams.set("state", "another");
    expect((await fetch(replay, { headers: { cookie }, redirect: "manual" })).status).toBe(400);
  });

  test("sends the browser with PKCE, state and nonce, to its own address alone", async () => {
    const asked = `${node.consoleUrl}/sign-in?returnTo=https://evil.example&redirect_uri=https://evil.example`;
    const begun = await fetch(asked, { redirect: "manual" });
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

  test("signs out from its own page alone: from no other origin, and not without the secret", async () => {
    const { page, secret } = await signedIn();
    const elsewhere = node.consoleUrl.replace("127.0.0.1", "localhost");
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1", elsewhere, null]) {
      const refused = await browser.call(page, "/session", { method: "DELETE", secret, origin });
      expect(refused.status).toBe(400);
    }
    const { body } = await session(page, secret);
    const cookie = browser.cookie("sluice-console")!;
    expect((await browser.call(page, "/session", { method: "DELETE", secret })).status).toBe(200);
    expect(browser.cookie("sluice-console")).toBeUndefined();
    expect((await session(page, secret, withCookie(cookie))).status).toBe(401);
    const link = body!.sign_out_url as string;
    expect(Object.fromEntries(new URL(link).searchParams)).toEqual({
      ...{ client_id: "sluice", post_logout_redirect_uri: `${node.consoleUrl}/` },
    });
    expect((await fetch(link)).status).toBe(200);
  });

  test("answers to its own name and to addresses alone, whatever is asked", async () => {
    const { page, secret } = await signedIn();
    for (const path of ["/", "/now", "/session/ways", "/session", "/management/v1/organizations", "/sign-in"]) {
      const headers = { host: "attacker.example", accept: "text/html" };
      const { status } = await browser.call(page, path, { secret, headers });
      expect([path, status]).toEqual([path, 403]);
    }
    expect((await fetch(node.consoleUrl, { headers: { host: "localhost" } })).status).toBe(200);
  });

  test("serves nothing of the other ports, and those serve none of it", async () => {
    for (const path of ["/metrics", "/v1/models", "/v1/chat/completions", "/device", "/management.json"])
      expect((await fetch(node.consoleUrl + path)).status).toBe(404);
    for (const path of ["/sign-in", "/session", "/session/ways", "/management/v1/organizations"])
      expect((await fetch(node.serviceUrl + path, { redirect: "manual" })).status).toBe(404);
    expect((await fetch(`${node.consoleUrl}/livez`)).status).toBe(200);
  });

  test("a cookie and a secret open nothing of the service, and a token nothing of the console", async () => {
    const { page, secret } = await signedIn();
    const headers = { cookie: `sluice-console=${browser.cookie("sluice-console")}`, "x-sluice-console": secret };
    expect((await fetch(`${node.serviceUrl}/v1/models`, { headers })).status).toBe(401);
    const { token } = await node.sluice.json<{ token: string }>("operator", "create", "by-header", "--role", "admin");
    const authorization = `Bearer ${token}`;
    const path = "/management/v1/organizations";
    expect((await fetch(node.consoleUrl + path, { headers: { authorization } })).status).toBe(400);
    expect((await browser.call(page, path, { secret, headers: { authorization } })).status).toBe(400);
  });

  test("ends a session when the issuer says that its own has ended", async () => {
    const { page, secret } = await signedIn();
    expect((await session(page, secret)).status).toBe(200);
    // Ends the session at the issuer, which then notifies the console.
    const there = await browser.visit(`${node.provider.issuer}/session/end?client_id=sluice`);
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(there.text)![1]!;
    await browser.send(there, "/session/end/confirm", { xsrf, logout: "yes" });
    await until(async () => (await session(page, secret)).status === 401, 5_000, "the session to end");
    await until(() => node.sluice.stderr().includes('"event":"issuer_logout"'), 5_000, "the log to say so");
  });

  test("ends an operator's session when the token is rotated, whatever grace the token has", async () => {
    const [id, token] = await node.sluice
      .json<{ id: string; token: string }>("operator", "create", "rotated", "--role", "admin")
      .then((made) => [made.id, made.token]);
    const page = await browser.visit(node.consoleUrl);
    const { body } = await browser.call(page, "/session/operator", { method: "POST", body: { token } });
    const secret = body?.secret as string;
    expect((await session(page, secret)).status).toBe(200);
    await node.sluice.json("operator", "rotate", id!, "--grace", "1h");
    expect((await session(page, secret)).status).toBe(401);
  });

  test("writes no code, state or secret into its log", async () => {
    const { page, secret } = await signedIn();
    const answer = new URL(page.way.at(-1)!);
    // The harness searches the log for these texts when the node has stopped.
    secrets.push(answer.searchParams.get("code")!, answer.searchParams.get("state")!);
    secrets.push(browser.cookie("sluice-console")!, secret, page.url.hash.slice("#code=".length));
  });
});

const signedInAs = (account: string, claims: object) => signInByIssuer(node, account, claims);

test("somebody without a group comes in by an invitation, with its limits, and nobody else does", async () => {
  const { organization } = node.sluice;
  const zoe = { email: "Zoe@x.test", email_verified: true, groups: [] };
  expect((await signedInAs("zoe", zoe)).secret).toBeNull();
  await node.sluice.json("invitation", "create", "zoe@x.test", "--org", organization, "--limit", "month=50");
  expect((await signedInAs("mallory", { ...zoe, email_verified: false })).secret).toBeNull();
  const { call } = await signedInAs("zoe", zoe);
  const { body } = await call("/session");
  expect(body).toMatchObject({ name: "zoe", memberships: [{ organization, role: "member" }] });
  const limits = await call(`/management/v1/organizations/${organization}/people/${body!.id}/limits`);
  expect(limits.body).toMatchObject({ own: { month: { amount: "50.000000000", currency: "USD" } } });
  expect((await signedInAs("mallory", zoe)).secret).toBeNull();
  expect(await node.sluice.json("invitation", "list")).toMatchObject([{ state: "taken", person_id: body!.id }]);
});

/** The tables that the console's actions change, compared row by row. */
const kept = [
  ...["limit_request", "invitation", "limit_value", "membership", "person", "api_key", "team", "organization"],
  ...["operator", "notice_destination", "drained_engine", "audit_entry", "audit_head", "plan"],
];
async function everything(): Promise<Record<string, unknown[]>> {
  const rows = await Promise.all(
    kept.map(async (table) => [table, await db.query(`select t::text from ${table} t order by 1`)] as const),
  );
  return Object.fromEntries(rows);
}

test("a scanner that follows every link and path by GET and HEAD, with a session, changes nothing", async () => {
  const { organization } = node.sluice;
  const lea = await signedInAs("lea", { email: "lea@x.test", email_verified: true, groups: ["leads"] });
  const ada = await signedInAs("ada", { email: "ada@x.test", email_verified: true, groups: ["platform"] });
  const ann = await signedInAs("ann", { email: "ann@x.test", email_verified: true, groups: ["research"] });
  const annId = (await ann.call("/session")).body!.id as string;
  const own = ["limit", "set", "person", annId, "--org", organization, "month=1"];
  await node.sluice.json(...own);
  const body = { limit: "month", amount: "5", message: "more" };
  const asked = await ann.call("/management/v1/limit-requests", { method: "POST", body });
  const inviting = ["invitation", "create", "new@x.test", "--org", organization];
  const invitation = await node.sluice.json<{ id: string }>(...inviting);
  const request = asked.body!.id as string;
  const ids = { "limit-requests": request, invitations: invitation.id, people: annId } as Record<string, string>;
  const named = (path: string) =>
    path.replace("{id}", ids[path.split("/")[1]!] ?? organization).replace(/\{\w+\}/, annId);
  // A scanner may also guess the paths of actions: each is requested without a query, and with an action's input as the
  // query.
  const query = `?until=2030-01-01&reason=x&role=admin&organization=${organization}&amount=5`;
  const managed = verbs.filter(({ live }) => !live).flatMap(({ path }) => [named(path), named(path) + query]);
  const paths = [
    ...managed.map((path) => `/management/v1${path}`),
    ...[`/limit-requests/${request}`, `/limit-requests/${request}/approve`, `/organizations/${organization}/asked`],
    ...[`/organizations/${organization}/people`, "/api/limit-requests", "/", "/you", "/usage"],
  ];
  const before = await everything();
  expect(before.limit_request).toHaveLength(1);
  let readings = 0;
  for (const who of [lea, ada, ann])
    for (const path of new Set(paths))
      for (const method of ["GET", "HEAD"]) {
        const { status } = await who.call(path, { method, origin: node.consoleUrl });
        if (status === 200) readings += 1;
        else if (method === "GET") expect([path, status >= 400 && status < 500]).toEqual([path, true]);
      }
  for (const path of ["/api/limit-requests", `/limit-requests/${request}`])
    expect((await fetch(node.serviceUrl + path)).status).toBeGreaterThan(400);
  expect(readings).toBeGreaterThan(50);
  expect(await everything()).toEqual(before);
  // A POST from a page of another origin, or without the session's secret, cannot approve the request either.
  const approve = `/management/v1/limit-requests/${request}/approve`;
  const decision = { method: "POST", body: { until: new Date(Date.now() + 86_400_000).toISOString() } };
  for (const forged of [{ origin: "https://evil.example" }, { origin: null }, { headers: { "x-sluice-console": "x" } }])
    expect((await lea.call(approve, { ...decision, ...forged })).status).toBeGreaterThanOrEqual(400);
  expect(await everything()).toEqual(before);
  expect((await lea.call(approve, decision)).status).toBe(200);
  expect(await everything()).not.toEqual(before);
});

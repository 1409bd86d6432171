// Operators use the console's API over real sockets; so does a user who opens the sign-in link that a node prints on
// its own machine.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Browser } from "../../harness/browser.ts";
import { busyness } from "../../harness/busyness.ts";
import { signInByToken } from "../../harness/console-session.ts";
import { freePort } from "../../harness/daemon.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const linkOf = async (sluice: Sluice) => (await sluice.json<{ url: string }>("console")).url;

/** Opens a sign-in link, and does what the link's page does. */
async function opened(link: string, who = new Browser()) {
  const page = { url: new URL(link) };
  const code = page.url.hash.slice("#link=".length);
  const { status, body } = await who.call(page, "/session/link", { method: "POST", body: { code } });
  return { who, page, status, secret: body?.secret as string };
}

/** Finds a free port whose next higher port is in use. */
async function portBelowTaken() {
  const listen = (port: number) => Bun.serve({ hostname: "127.0.0.1", port, fetch: () => new Response() });
  for (;;) {
    const taken = listen(0);
    try {
      const below = listen(taken.port! - 1);
      await below.stop(true);
      return { port: below.port!, taken };
    } catch {
      await taken.stop(true);
    }
  }
}

describe("the console of a node on the own machine", () => {
  let sluice: Sluice;
  /** The listener that occupies the default port of the console. */
  let taken: Awaited<ReturnType<typeof portBelowTaken>>["taken"];
  beforeAll(async () => {
    const found = await portBelowTaken();
    taken = found.taken;
    sluice = await startSluice({ store: "pglite", env: { PORT: String(found.port) } });
  });
  afterAll(async () => {
    await sluice?.stop();
    await taken?.stop(true);
  });

  test("has another port where the usual one is taken", async () => {
    const { status, page } = await opened(await linkOf(sluice));
    expect(status).toBe(200);
    expect(Number(page.url.port)).not.toBe(taken.port!);
  });

  test("prints no link where the output is kept, and one when somebody asks", async () => {
    expect(sluice.stdout()).not.toContain("#link=");
    const { stdout, code } = await sluice.cli("console");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#link=[A-Za-z0-9_-]{43}\n$/);
  });

  test("opens by a link once, as an administrator whom the audit log names", async () => {
    const link = await linkOf(sluice);
    const { who, page, secret } = await opened(link);
    const { body } = await who.call(page, "/session", { secret });
    expect(body).toMatchObject({ kind: "operator", role: "admin", embedded: true, base_url: sluice.url });
    expect((await opened(link)).status).toBe(401);
    const made = await who.call(page, "/management/v1/organizations", {
      method: "POST",
      secret,
      body: { slug: "made" },
    });
    expect(made.status).toBe(200);
    const { body: log } = await who.call(page, "/management/v1/audit?limit=1", { secret });
    const [entry] = (log as { data: { actor: string; action: string; address: string }[] }).data;
    expect(entry).toMatchObject({ action: "organization.create", address: "127.0.0.1" });
    expect(entry!.actor).toMatch(/^cli:/);
  });

  test("lets no page of another origin open a link, call, or read an answer", async () => {
    const { page } = await opened(await linkOf(sluice));
    const code = new URL(await linkOf(sluice)).hash.slice("#link=".length);
    for (const origin of ["https://evil.example", "null", `http://127.0.0.1:${await freePort()}`, null]) {
      const refused = await new Browser().call(page, "/session/link", { method: "POST", body: { code }, origin });
      expect(refused.status).toBe(400);
      expect(refused.headers.get("access-control-allow-origin")).toBeNull();
    }
    const preflight = await fetch(`${page.url.origin}/session/link`, {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    expect([...preflight.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test("a session makes no link: only the system's user does", async () => {
    const { who, page, secret } = await opened(await linkOf(sluice));
    const { status, code } = await who.call(page, "/management/v1/console/links", { method: "POST", secret, body: {} });
    expect([status, code]).toEqual([409, "wrong_state"]);
  });

  test("listens on this machine alone", async () => {
    const { origin } = new URL(await linkOf(sluice));
    expect((await fetch(origin)).status).toBe(200);
    expect((await fetch(origin, { headers: { host: "attacker.example" } })).status).toBe(403);
  });
});

describe("an operator in the console", () => {
  let sluice: Sluice;
  let origin: string;
  const tokens: Record<string, string> = {};
  beforeAll(async () => {
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    sluice = await startSluice({ env: { SLUICE_CONSOLE_PORT: String(port) } });
    await sluice.json("org", "create", "acme");
    await sluice.json("org", "create", "globex");
    for (const [name, ...role] of [
      ["admin", "--role", "admin"],
      ["viewer", "--role", "viewer"],
      ["manager", "--role", "organization-admin", "--org", "acme"],
    ] as const)
      tokens[name] = (await sluice.json<{ token: string }>("operator", "create", name, ...role)).token;
  });
  afterAll(async () => void (await sluice?.stop()));

  const signedIn = (token: string) => signInByToken(origin, token);
  type SignedIn = Awaited<ReturnType<typeof signedIn>>;
  /** The headers of a request in the session, for a response that is read as a stream. */
  const headersOf = ({ browser, secret }: Pick<SignedIn, "browser" | "secret">) => ({
    cookie: `sluice-console=${browser.cookie("sluice-console")}`,
    "x-sluice-console": secret,
  });
  /** Follows the fleet in the session. `ended` resolves with the text of the stream when the stream has ended. */
  async function followedFleet(who: SignedIn) {
    const stream = await fetch(`${origin}/management/v1/fleet?format=events`, { headers: headersOf(who) });
    expect(stream.headers.get("content-type")).toContain("text/event-stream");
    return { ended: stream.text() };
  }

  test("signs in by a token, which is neither in the cookie nor in an answer", async () => {
    const { browser, secret, call, manage } = await signedIn(tokens.admin!);
    const { body } = await call("/session");
    expect(body).toMatchObject({ kind: "operator", name: "admin", role: "admin", memberships: [] });
    expect(JSON.stringify([body, browser.cookies, secret])).not.toContain(tokens.admin!.slice(4));
    expect((await manage("/organizations")).status).toBe(200);
    expect((await signedIn(` ${tokens.admin}\n`)).status).toBe(200);
  });

  test("is refused with a token that does not hold, as on the operator's port", async () => {
    expect(await signedIn("slo_wrong")).toMatchObject({ status: 401, code: "invalid_operator_token" });
    expect(await signedIn(sluice.key)).toMatchObject({ status: 401, code: "invalid_operator_token" });
    for (const body of [{}, { token: "" }, { token: 1 }, { token: null }]) {
      const page = { url: new URL(origin) };
      const { status } = await new Browser().call(page, "/session/operator", { method: "POST", body });
      expect(status).toBe(400);
    }
  });

  test("may what the role may, and sees what it sees", async () => {
    const viewer = await signedIn(tokens.viewer!);
    const create = { method: "POST", body: { slug: "another" } };
    expect(await viewer.manage("/organizations", create)).toMatchObject({ status: 403, code: "missing_role" });
    const manager = await signedIn(tokens.manager!);
    const { body } = await manager.manage("/organizations");
    expect((body as { data: { slug: string }[] }).data.map(({ slug }) => slug)).toEqual(["acme"]);
    expect((await manager.manage("/organizations/globex")).status).toBe(404);
    const globex = await manager.manage("/organizations", { headers: { "x-sluice-organization": "globex" } });
    expect((globex.body as { data: { slug: string }[] }).data.map(({ slug }) => slug)).toEqual(["acme"]);
    const { body: session } = await manager.call("/session");
    expect(session!.verbs).toContain("createKey");
    expect(session!.verbs).not.toContain("createOrganization");
  });

  test("tries a model as a key that the operator may administer, streamed", async () => {
    const manager = await signedIn(tokens.manager!);
    await sluice.cli("org", "plan", "acme", "pro");
    const made = await manager.manage("/keys", { method: "POST", body: { organization: "acme", name: "mine" } });
    const { data } = (await (await sluice.fetch("/v1/models")).json()) as { data: { id: string }[] };
    const body = { model: data[0]!.id, messages: [{ role: "user", content: "hello" }], stream: true };
    const answer = await fetch(`${origin}/management/v1/try?key=${made.body!.id}`, {
      method: "POST",
      headers: { ...headersOf(manager), "content-type": "application/json", origin },
      body: JSON.stringify(body),
    });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    expect(await answer.text()).toEndWith("data: [DONE]\n\n");
    expect((await manager.manage("/try", { method: "POST", body })).status).toBe(400);
    const viewer = await signedIn(tokens.viewer!);
    const refused = await viewer.manage(`/try?key=${made.body!.id}`, { method: "POST", body });
    expect(refused).toMatchObject({ status: 403, code: "missing_role" });
  });

  test("ends with the token, and takes its streams along within a second", async () => {
    const { token } = await sluice.json<{ token: string }>("operator", "create", "leaver", "--role", "viewer");
    const leaver = await signedIn(token);
    const { ended } = await followedFleet(leaver);
    await sluice.json("operator", "revoke", "leaver");
    const revoked_ms = performance.now();
    expect(await ended).toContain("missing_session");
    expect(performance.now() - revoked_ms).toBeLessThan(2_000 * busyness());
    expect((await leaver.manage("/organizations")).status).toBe(401);
  });

  test("ends a stream when one signs out", async () => {
    const viewer = await signedIn(tokens.viewer!);
    const { ended } = await followedFleet(viewer);
    expect((await viewer.call("/session", { method: "DELETE" })).status).toBe(200);
    expect(await ended).toContain("missing_session");
  });

  test("has no link where the database is not the embedded one, and none without a console of its own", async () => {
    if (sluice.store === "pglite") return expect((await sluice.cli("console")).code).toBe(0);
    const { code, stderr } = await sluice.cli("console");
    expect([code, stderr]).toEqual([1, expect.stringContaining("sign in there")]);
  });

  test("a port of 0 is any free one", async () => {
    await using other = Object.assign(await startSluice({ store: "pglite", env: { SLUICE_CONSOLE_PORT: "0" } }), {
      [Symbol.asyncDispose]: () => other.stop().then(() => {}),
    });
    await until(() => other.stdout().includes("sluice is serving"), 10_000, "the start");
    expect(Number(new URL(await linkOf(other)).port)).toBeGreaterThan(0);
  });
});

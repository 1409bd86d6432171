// An invitation that somebody accepts in the console, over real sockets; and scanners of links, with everybody's session: a
// GET changes nothing.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { verbs } from "../../../src/admin/management/verbs.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { Browser, type Call } from "../../harness/browser.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";

setDefaultTimeout(120_000);

let database: Awaited<ReturnType<typeof migratedDatabase>>;
let db: Database;
let node: PeopleNode;
beforeAll(async () => {
  database = await migratedDatabase();
  db = await serverDatabase(database.url);
  node = await startPeopleNode({ env: { DATABASE_URL: database.url } });
});
afterAll(async () => {
  await node?.[Symbol.asyncDispose]();
  await db?.close();
  await database?.drop();
});

/** Signs in at the issuer as this account, with these claims. */
async function signIn(account: string, claims: object) {
  node.provider.account = account;
  node.provider.claims.set(account, { name: account, ...claims });
  const browser = new Browser();
  const page = await browser.visit(`${node.consoleUrl}/sign-in`);
  const secret = page.url.hash === "" ? null : await browser.redeem(page);
  const call = (path: string, asked: Call = {}) => browser.call(page, path, { ...(secret && { secret }), ...asked });
  return { page, secret, browser, call };
}

test("somebody without a group comes in by an invitation, with its limits, and nobody else does", async () => {
  const { organization } = node.sluice;
  const zoe = { email: "Zoe@x.test", email_verified: true, groups: [] };
  expect((await signIn("zoe", zoe)).secret).toBeNull();
  await node.sluice.json("invitation", "create", "zoe@x.test", "--org", organization, "--limit", "month=50");
  expect((await signIn("mallory", { ...zoe, email_verified: false })).secret).toBeNull();
  const { call } = await signIn("zoe", zoe);
  const { body } = await call("/session");
  expect(body).toMatchObject({ name: "zoe", memberships: [{ organization, role: "member" }] });
  const limits = await call(`/management/v1/organizations/${organization}/people/${body!.id}/limits`);
  expect(limits.body).toMatchObject({ own: { month: { amount: "50.000000000", currency: "USD" } } });
  expect((await signIn("mallory", zoe)).secret).toBeNull();
  expect(await node.sluice.json("invitation", "list")).toMatchObject([{ state: "taken", person_id: body!.id }]);
});

/** The tables that acts change, compared row by row. */
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
  const lea = await signIn("lea", { email: "lea@x.test", email_verified: true, groups: ["leads"] });
  const ada = await signIn("ada", { email: "ada@x.test", email_verified: true, groups: ["platform"] });
  const ann = await signIn("ann", { email: "ann@x.test", email_verified: true, groups: ["research"] });
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
  // The paths of actions are requested as well, as a scanner may guess them, each without a query and with an action's
  // input as the query.
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
  // A page of another origin, or one without the secret, cannot decide by a POST either.
  const approve = `/management/v1/limit-requests/${request}/approve`;
  const decision = { method: "POST", body: { until: new Date(Date.now() + 86_400_000).toISOString() } };
  for (const forged of [{ origin: "https://evil.example" }, { origin: null }, { headers: { "x-sluice-console": "x" } }])
    expect((await lea.call(approve, { ...decision, ...forged })).status).toBeGreaterThanOrEqual(400);
  expect(await everything()).toEqual(before);
  expect((await lea.call(approve, decision)).status).toBe(200);
  expect(await everything()).not.toEqual(before);
});

/**
 * The management interface: which role may do what (generated from the list of operations); repeats and races do no
 * harm; a wrong request is answered with the reason and changes nothing.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { faultsOf, gate, placesOf } from "../../../src/admin/http/gate.ts";
import type { Verb } from "../../../src/admin/management/verb.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { newKey } from "../../../src/core/auth/credential.ts";
import { isLoopback } from "../../../src/core/http/bounds.ts";
import { Call } from "../../../src/core/http/call.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { Money } from "../../../src/core/inference/money.ts";
import { roles } from "../../../src/features/identity/store/operators.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { leaveAsked } from "../../harness/asked.ts";
import { typed } from "../../harness/money.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";
import { newPerson, type OperatorPort, operatorPort } from "./operator-port.ts";

setDefaultTimeout(120_000);

let owned: Owned;
let port: OperatorPort;
/** The ids of objects of `globex`, which an administrator of `acme` cannot see. */
let foreign: Record<string, string>;
/** Tokens that are no operator's, or none at all (null), each with the code of the refusal. */
let strangers: (readonly [token: string | null, code: string])[];
beforeAll(async () => {
  owned = await openDatabase();
  port = await operatorPort(owned);
  const key = await port.manage.createKey({ organization: "globex", name: "foreign" });
  const own = await port.manage.createKey({ organization: "acme", name: "own" });
  const [requestId = ""] = await Promise.all([refusedWith(key), refusedWith(own)]);
  expect((await port.ask(`/requests/${requestId}`)).status).toBe(200);
  const team = await port.manage.createTeam({ organization: "globex", name: "foreign" });
  await port.manage.createTeam({ organization: "acme", name: "own" });
  for (const organization of ["acme", "globex"])
    await port.manage.setNotices({ name: "webhook", organization, url: "https://hooks.example.com/sluice" });
  const ofOwn = await newPerson(owned, "ann", "acme");
  const people = await newPerson(owned, "bob", "globex");
  const random = crypto.getRandomValues(new Uint8Array(64));
  const made = ["slo_wrong", newKey(random, "slo_"), own.key!];
  strangers = [[null, "missing_operator_token"], ...made.map((token) => [token, "invalid_operator_token"] as const)];
  await asksFor("acme", ofOwn);
  foreign = {
    ...{ organization: "globex", keys: key.id, requests: requestId, teams: team.id, people },
    ...(await asksFor("globex", people)),
  };
});
afterAll(async () => {
  await port?.stop();
  await owned?.drop();
});

async function asksFor(organization: string, personId: string): Promise<Record<string, string>> {
  const { id: organizationId } = await port.manage.findOrganization({ organization });
  return leaveAsked(owned.db, { organizationId, personId, email: `new@${organization}.example` });
}

/** Stores a refused request of this key, and returns its id. */
async function refusedWith({ id, organizationId }: { id: string; organizationId: string }): Promise<string> {
  const requestId = `req_${Bun.randomUUIDv7().replaceAll("-", "")}`;
  const request = { requestId, organizationId, keyId: id, operation: "messages", age_ms: 0 } as const;
  await refusedRequests(owned.db).keep([
    { ...request, model: null, stream: null, errorCode: "usage_limit_reached", message: "" },
  ]);
  return requestId;
}

/** The ids of the organizations to which an item of a list belongs. */
function ownersOf(one: Record<string, unknown>): unknown[] {
  if ("memberships" in one) return (one.memberships as Record<string, unknown>[]).map((of) => of.organization_id);
  return ["slug" in one ? one.id : one.organization_id];
}

/** The body or the query that the example of a verb sends. */
function sentBy({ id, secondId, example }: Verb): Record<string, unknown> {
  const { [id ?? ""]: _, [secondId ?? ""]: __, ...sent } = example.takes as Record<string, unknown>;
  return sent;
}

/** A request as in the verb's example. By default the path names an object that does not exist. */
function exampleOf(verb: Verb, id = "nothing", secondId = `per_${"0".repeat(32)}`) {
  const { path, method } = verb;
  const body = method === "get" ? {} : { body: sentBy(verb) };
  return [path.replace("{id}", id).replace(/\{\w+\}/, secondId), { method: method.toUpperCase(), ...body }] as const;
}

describe.each(verbs.map((one) => [one.name, one] as const))("%s", (_, operation) => {
  const isRead = operation.method === "get";
  const [path, asked] = exampleOf(operation);
  const [, kind = ""] = operation.path.split("/");
  /** The given names that are sent in the body or the query. */
  const sent = (names: string[]) => names.filter((name) => name !== operation.id && name !== operation.secondId);

  test("is for operators alone: not without a token, with a made-up token, or with an API key", async () => {
    for (const [token, code] of strangers) {
      const answer = await port.ask(path, { ...asked, token });
      expect([answer.status, answer.code]).toEqual([401, code]);
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      if (token) expect(JSON.stringify(answer.body)).not.toContain(token);
    }
  });

  test("is for the roles that it names, and no others, before anything else is looked at", async () => {
    for (const role of roles) {
      // The request is invalid: a role that is not allowed gets a 403, and one that is allowed is told what is wrong.
      const wrong = { method: asked.method, token: port.tokens[role], ...(isRead ? {} : { body: "{" }) };
      const answer = await port.ask(isRead ? `${path}?stray=1` : path, wrong);
      const may = operation.roles.includes(role);
      expect([role, answer.status]).toEqual([role, may ? 400 : 403]);
      if (!may) expect(answer.code).toBe("missing_role");
    }
  });

  test("shows an organization-admin nothing of another organization", async () => {
    if (!operation.roles.includes("organization-admin")) return;
    const token = port.tokens["organization-admin"];
    const before = await port.manage.auditHead();
    const nothing = { status: 404, code: "resource_not_found" };
    // The name of a destination of notices is looked up within the organization that `organization` names, so notices
    // are left out here.
    if (operation.id !== null && kind !== "plans" && kind !== "notices") {
      const named = kind === "organizations" ? foreign.organization : foreign[kind];
      const [path, asked] = exampleOf(operation, named, foreign.people);
      expect(await port.ask(path, { ...asked, token })).toMatchObject(nothing);
    }
    const names = sent(Object.keys(operation.takes.properties));
    if (names.includes("organization")) {
      const query = `?organization=globex${names.includes("text") ? "&text=globex" : ""}`;
      const body = { ...sentBy(operation), organization: "globex" };
      const answer = isRead ? await port.ask(path + query, { token }) : await port.ask(path, { ...asked, token, body });
      expect(answer).toMatchObject(nothing);
    }
    // People can belong to several organizations: test/core/http/policies.test.ts covers them.
    if (operation.name.startsWith("page") && operation.name !== "pagePeople") {
      const { body } = await port.ask(operation.path, { token });
      expect(body.data!.length).toBeGreaterThan(0);
      const { id } = await port.manage.findOrganization({ organization: "acme" });
      for (const one of body.data!) expect(ownersOf(one)).toEqual([id]);
    }
    expect(await port.manage.auditHead()).toEqual(before);
  });

  test("refuses unknown parameters and fields, and a parameter that comes twice", async () => {
    const stray = isRead
      ? await port.ask(`${path}?stray=1`)
      : await port.ask(path, { ...asked, body: { ...sentBy(operation), stray: 1 } });
    expect(stray).toMatchObject({ status: 400, code: "unknown_field", body: { error: { param: "stray" } } });
    expect(faultsOf(operation)).toContain("unknown_field");
    const [first] = Object.keys(placesOf(operation).query.properties);
    if (isRead && first)
      expect(await port.ask(`${path}?${first}=a&${first}=b`)).toMatchObject({
        ...{ status: 400, code: "invalid_value", body: { error: { param: first } } },
      });
    if (isRead) return;
    expect((await port.ask(path, { ...asked, body: "{" })).code).toBe("invalid_json");
    if (sent((operation.takes.required ?? []) as string[]).length > 0)
      expect((await port.ask(path, { ...asked, body: {} })).code).toBe("missing_field");
  });

  test("answers 404 if a named object does not exist", async () => {
    // `setNotices` creates a destination of notices under any name.
    if (operation.id === null || operation.name === "setNotices") return;
    const prefixes: Record<string, string> = { requests: "req", "limit-requests": "lreq", invitations: "inv" };
    const [path, asked] = exampleOf(operation, `${prefixes[kind] ?? "key"}_${"0".repeat(32)}`);
    const body = operation.name === "setPlan" ? { plan: "pro" } : sentBy(operation);
    const answer = await port.ask(path, isRead ? asked : { ...asked, body });
    expect([answer.status, answer.code]).toEqual([404, "resource_not_found"]);
  });
});

describe("to an organization-admin", () => {
  test("a team of another organization is not there, wherever it is named, and nothing tells of it", async () => {
    const token = port.tokens["organization-admin"];
    const before = await port.manage.auditHead();
    const key = (await port.manage.pageKeys({ organization: "acme", limit: 1 })).data[0]!;
    const team = foreign.teams!;
    for (const answer of [
      await port.post("/keys", { organization: "acme", name: "spy", team }, { token }),
      await port.patch(`/keys/${key.id}`, { team }, { token }),
      await port.patch(`/teams/${team}`, { organization: "acme", name: "taken over" }, { token }),
      await port.ask(`/teams/${team}?organization=acme`, { token }),
      await port.post(`/teams/foreign/remove`, { organization: "acme" }, { token }),
    ]) {
      expect(answer).toMatchObject({ status: 404, code: "resource_not_found" });
      expect(JSON.stringify(answer.body)).not.toMatch(/globex|org_/);
    }
    expect(await port.manage.auditHead()).toEqual(before);
    // An operator who may see both organizations is told what is wrong.
    const told = await port.patch(`/keys/${key.id}`, { team });
    expect(told).toMatchObject({ status: 400, code: "invalid_value" });
    expect(told.body.error!.message).toContain("another organization");
  });

  test("a report is of the own organization, also where none is named", async () => {
    for (const organization of ["acme", "globex"])
      await port.manage.adjustUsage({ organization, window: "month", amount: typed(70), reason: "test" });
    const slugsFor = async (token: string) => {
      const { body } = await port.ask("/usage/report?by=organization", { token });
      return [body.organization, (body.rows as { organization: string }[]).map((row) => row.organization).sort()];
    };
    expect(await slugsFor(port.tokens["organization-admin"])).toEqual(["acme", ["acme"]]);
    expect(await slugsFor(port.tokens.viewer)).toEqual([null, ["acme", "globex"]]);
  });
});

describe("a report for a spreadsheet", () => {
  const report = (query: string) =>
    fetch(`${port.url}/management/v1/usage/report?${query}`, {
      headers: { authorization: `Bearer ${port.tokens.viewer}` },
    });

  test("is the same report as CSV", async () => {
    await port.manage.adjustUsage({ organization: "acme", window: "month", amount: typed(5), reason: "test" });
    const answer = await report("by=organization&organization=acme&format=csv");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(answer.headers.get("content-disposition")).toContain(".csv");
    const asJson = (await (await report("by=organization&organization=acme")).json()) as {
      rows: { cost: { total: Money } }[];
    };
    const [names, row, rest] = (await answer.text()).split("\r\n").map((line) => line.split(","));
    const { amount, currency } = asJson.rows[0]!.cost.total;
    expect([row![names!.indexOf("cost")], row![names!.indexOf("currency")]]).toEqual([amount, currency]);
    expect(rest).toEqual([""]);
  });

  test("is FOCUS by a period; a form that nobody knows is refused", async () => {
    const focus = await report("format=focus&by=month");
    expect([focus.status, (await focus.text()).split(",")[0]]).toEqual([200, "BilledCost"]);
    for (const query of ["format=focus&by=key", "format=xml", "format="]) {
      const refused = await report(query);
      expect([query, refused.status]).toEqual([query, 400]);
    }
  });
});

describe("a key", () => {
  test("is changed in part; what is wrong changes nothing, and nothing is written for it", async () => {
    const key = await port.manage.createKey({ organization: "acme", name: "before" });
    const path = `/keys/${key.id}`;
    const patch = (body: object) => port.patch(path, body);
    const changed = await patch({
      ...{ name: "after", owner: "ann", labels: { a: "1", b: "2" }, allow_from: ["10.0.0.0/8", "2001:db8::/64"] },
      ...{ models: ["acme/writer-1"], scopes: ["usage:read"], expires_at: "2040-01-01" },
    });
    const now = {
      ...{ name: "after", owner: "ann", labels: { a: "1", b: "2" }, created_by: "cli:test" },
      ...{ allow_from: ["10.0.0.0/8", "2001:db8::/64"], models: ["acme/writer-1"] },
      ...{ scopes: ["usage:read"], expires_at: "2040-01-01T00:00:00.000Z" },
    };
    expect(changed).toMatchObject({ status: 200, body: now });
    const before = await port.manage.auditHead();
    expect((await patch({})).code).toBe("invalid_value");
    for (const wrong of [
      { allow_from: [] },
      { name: "wrong", allow_from: ["::1"] },
      { expires_at: "2020-01-01" },
      { models: ["acme/unknown"] },
      { labels: { a: "two\nlines" } },
      { labels: Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`l${index}`, "x"])) },
    ]) {
      expect([wrong, (await patch(wrong)).code]).toEqual([wrong, "invalid_value"]);
      // No key is created with the wrong value either.
      const made = await port.post("/keys", { organization: "acme", name: "made", ...wrong });
      expect([wrong, made.code]).toEqual([wrong, "invalid_value"]);
    }
    expect((await port.ask(path)).body).toMatchObject(now);
    expect(await port.manage.auditHead()).toEqual(before);
    const open = await patch({ models: null, expires_at: null, allow_from: null, owner: null, labels: { a: null } });
    expect(open.body).toMatchObject({
      ...{ ...now, models: null, expires_at: null, allow_from: null, owner: null, labels: { b: "2" } },
    });
    await port.manage.revokeKey({ id: key.id });
    // A revoked key is neither changed nor rotated.
    expect(await patch({ name: "late" })).toMatchObject({ status: 409, code: "wrong_state" });
    expect(await port.post(`${path}/rotate`, {})).toMatchObject({ status: 409, code: "wrong_state" });
  });

  test("that is not used is found", async () => {
    await port.manage.createOrganization({ slug: "stale" });
    const key = await port.manage.createKey({ organization: "stale", name: "old" });
    await port.manage.createKey({ organization: "stale", name: "new" });
    await owned.db.query("update api_key set created_at = created_at - interval '31 days' where name = 'old'");
    const found = await port.ask("/keys?organization=stale&unused_for=30d&state=active");
    expect(found.body.data!.map(({ id }) => id)).toEqual([key.id]);
  });
});

test("a team is read and changed by a name of any letters", async () => {
  const { body } = await port.post("/teams", { organization: "acme", name: "a b/ü" });
  const path = `/teams/${encodeURIComponent("a b/ü")}`;
  expect((await port.ask(`${path}?organization=acme`)).body).toMatchObject({ id: body.id, name: "a b/ü" });
  expect((await port.patch(path, { organization: "acme", name: "own" })).code).toBe("already_exists");
});

describe("a repeat", () => {
  test("with the same key creates nothing, whatever is created, also at once; with another request it is refused", async () => {
    for (const [path, body, secret] of [
      ["/organizations", { slug: "repeated" }, null],
      ["/keys", { organization: "acme", name: "repeated" }, "key"],
      ["/teams", { organization: "acme", name: "repeated" }, null],
      ["/operators", { name: "repeated", role: "viewer" }, "token"],
      ["/plans", { name: "repeated" }, null],
    ] as const) {
      const once = { headers: { "idempotency-key": path } };
      const before = await port.manage.auditHead();
      const answers = await Promise.all(Array.from({ length: 8 }, () => port.post(path, body, once)));
      answers.push(await port.post(path, body, once));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(new Set(answers.map((answer) => answer.body.id ?? answer.body.name)).size).toBe(1);
      expect((await port.manage.auditHead()).number).toBe(before.number + 1);
      if (secret) expect(answers.filter((answer) => answer.body[secret] !== null)).toHaveLength(1);
      const other = await port.post(path, { ...body, name: "another" }, once);
      expect([other.status, other.code]).toEqual([409, "idempotency_key_reused"]);
    }
    const another = await port.post("/plans", { name: "repeated" });
    expect([another.status, another.code]).toEqual([409, "already_exists"]);
    // Idempotency keys of another operator are separate.
    const token = (await port.manage.createOperator({ name: "second", role: "admin" })).token!;
    const asked = { token, headers: { "idempotency-key": "/organizations" } };
    expect((await port.post("/organizations", { slug: "of-the-second" }, asked)).status).toBe(200);
  });

  test("of a creation that was refused is the first again", async () => {
    const asked = { headers: { "idempotency-key": "refused" } };
    const refused = await port.post("/organizations", { slug: "acme" }, asked);
    expect([refused.status, refused.code]).toEqual([409, "already_exists"]);
    expect((await port.post("/organizations", { slug: "free" }, asked)).status).toBe(200);
  });
});

describe("a list", () => {
  test("comes in parts that hold each item once, in a stable order, while others are made", async () => {
    const organization = (await port.manage.createOrganization({ slug: "many" })).slug;
    const made: string[] = [];
    for (let index = 0; index < 5; index++)
      made.push((await port.manage.createKey({ organization, name: `key ${index}` })).id);
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { body } = await port.ask(`/keys?organization=many&limit=2${cursor && `&cursor=${cursor}`}`);
      seen.push(...body.data!.map(({ id }) => id as string));
      if (seen.length === 2) made.push((await port.manage.createKey({ organization, name: "late" })).id);
      cursor = body.next_cursor as string | null;
    }
    expect(seen).toEqual(made);
    await port.manage.revokeKey({ id: made[3]! });
    const states = async (state: string) =>
      (await port.ask(`/keys?organization=many&state=${state}`)).body.data!.length;
    expect([await states("active"), await states("revoked"), await states("expired")]).toEqual([5, 1, 0]);
  });

  test.each(["limit=0", "limit=1001", "limit=ten", "cursor=nowhere", "state=lost", "unused_for=soon"])(
    "refuses what is none: %s",
    async (query) => expect(await port.ask(`/keys?${query}`)).toMatchObject({ status: 400, code: "invalid_value" }),
  );
});

describe("an operator's token", () => {
  test("counts no more the moment that it is revoked, rotated without grace, or expired", async () => {
    const { token: secret, ...operator } = await port.manage.createOperator({ name: "leaving", role: "viewer" });
    const status = async (token: string | null) => (await port.ask("/plans", { token })).status;
    expect(await status(secret)).toBe(200);
    const rotated = await port.manage.rotateOperator({ id: operator.name, grace: "0s" });
    expect([await status(secret), await status(rotated.token)]).toEqual([401, 200]);
    await port.manage.revokeOperator({ id: operator.id });
    expect(await status(rotated.token)).toBe(401);
    const short = await port.manage.createOperator({
      ...{ name: "short", role: "viewer" },
      expiresAt: new Date(Date.now() + 60_000).toISOString(),
    });
    expect(await status(short.token)).toBe(200);
    await owned.db.query("update operator set expires_at = store_now() where name = 'short'");
    expect(await status(short.token)).toBe(401);
  });

  test("is stored as a hash, and its use as an instant and an address", async () => {
    const rows = await owned.db.query<{ row: string }>(
      `select row_to_json(o)::text || row_to_json(s)::text as row from operator o join operator_secret s on s.operator_id = o.id`,
    );
    for (const token of Object.values(port.tokens)) {
      expect(rows.some(({ row }) => row.includes(token))).toBe(false);
    }
    await port.ask("/plans");
    const admin = await port.manage.findOperator({ id: "a-admin" });
    expect(admin).toMatchObject({ lastUsedFrom: "127.0.0.1", lastUsedAt: expect.any(Date) });
  });

  test("needs an organization exactly where its role has one", async () => {
    for (const body of [
      { name: "x", role: "organization-admin" },
      { name: "x", role: "admin", organization: "acme" },
      { name: "x", role: "root" },
      { name: "a b", role: "admin" },
    ]) {
      expect((await port.post("/operators", body)).status).toBe(400);
    }
    expect((await port.ask("/operators/x")).status).toBe(404);
  });
});

describe("a correction of usage", () => {
  const month = async () => {
    const { month } = await port.manage.readUsage({ organization: "corrected" });
    return [month.used.amount, month.held.amount];
  };
  const send = (body: object, key: string) =>
    port.post("/organizations/corrected/usage/adjustments", body, { headers: { "idempotency-key": key } });

  test("counts once for each idempotency key, and a repeat gets the answer of the first", async () => {
    await port.manage.createOrganization({ slug: "corrected" });
    const body = { window: "all", amount: "0.25", reason: "batch" };
    const [first, ...repeats] = await Promise.all(Array.from({ length: 4 }, () => send(body, "one")));
    expect([first!.status, (first!.body.entries as { window: string }[]).map(({ window }) => window)]).toEqual([
      200,
      ["session", "week", "month"],
    ]);
    for (const { status, body } of repeats) expect([status, body]).toEqual([200, first!.body]);
    expect(await month()).toEqual(["0.250000000", "0.000000000"]);
    expect((await send({ ...body, amount: "-0.5" }, "one")).code).toBe("idempotency_key_reused");
    const back = await send({ ...body, amount: "-0.5" }, "two");
    expect(await send({ ...body, amount: "-0.5" }, "two")).toMatchObject({ status: 200, body: back.body });
    expect(await month()).toEqual(["0.000000000", "0.000000000"]);
  });

  test("that was refused may be sent again with its key", async () => {
    await port.manage.createOrganization({ slug: "unopened" });
    const sent = () =>
      port.post("/organizations/unopened/usage/adjustments", session, { headers: { "idempotency-key": "three" } });
    const session = { window: "session", amount: "1", reason: "batch" };
    for (let turn = 0; turn < 2; turn++) expect((await sent()).code).toBe("wrong_state");
  });
});

test("extra usage that is off has no cap", async () => {
  const put = (cap: string | null) => port.ask("/organizations/globex/extra-usage", { method: "PUT", body: { cap } });
  expect((await put("5")).body.extra_usage).toEqual({ enabled: true, cap: { amount: "5.000000000", currency: "USD" } });
  expect((await put(null)).body.extra_usage).toEqual({ enabled: false, cap: null });
});

test("every act stands in the log with who did it, from where, and what it was before; no secret does", async () => {
  await port.manage.createOrganization({ slug: "logged" });
  await port.ask("/organizations/logged/extra-usage", { method: "PUT", body: { cap: "5" } });
  const made = await port.post("/keys", { organization: "logged", name: "logged" });
  const { body } = await port.ask("/audit?organization=logged");
  expect(body.data!.map(({ actor, address, action }) => [actor, address, action])).toEqual([
    ["operator:a-admin", "127.0.0.1", "key.create"],
    ["operator:a-admin", "127.0.0.1", "organization.extra_usage"],
    ["cli:test", null, "organization.create"],
  ]);
  expect(body.data![1]!.details).toMatchObject({ cap: "5.000000000", before: { enabled: false } });
  expect(JSON.stringify(body)).not.toContain(made.body.key as string);
});

test("without TLS it is refused from anywhere but the node itself, unless a proxy is said to have it", async () => {
  const plans = verbs.find(({ name }) => name === "listPlans")!;
  const codeFrom = async (isLocal: boolean, tls: "off" | "on" | "proxy") => {
    const never = () => Promise.reject(new Fault("missing_operator_token", "Nobody asks."));
    const serve = gate({ authenticate: never, contextFor: () => ({}) as never, tls, version: "1" }, plans, {
      count: 0,
    });
    const connection = { address: () => "", isLocal: () => isLocal, keepOpen() {} };
    const call = new Call("req_1", new Request("http://node/management/v1/plans"), "/", connection);
    return serve({} as never, call).catch((fault: Fault) => fault.code);
  };
  expect(await codeFrom(false, "off")).toBe("tls_required");
  for (const [isLocal, tls] of [
    [true, "off"],
    [false, "on"],
    [false, "proxy"],
  ] as const)
    expect(await codeFrom(isLocal, tls)).toBe("missing_operator_token");
  expect(["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"].map(isLoopback)).toEqual([true, true, true, true]);
  expect(["10.0.0.1", "::ffff:10.0.0.1", "", "128.0.0.1"].map(isLoopback)).toEqual([false, false, false, false]);
});

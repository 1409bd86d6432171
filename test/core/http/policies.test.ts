/**
 * Organizations' policies for their keys and for stored content, and their people, over HTTP: who may see and set them,
 * their effect on requests, and that nobody overwrites a change that they have not seen.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { errorOf, model, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { newPerson, operatorPort } from "./operator-port.ts";

setDefaultTimeout(120_000);

const owned = await openDatabase();
const port = await operatorPort(owned);
afterAll(async () => {
  await port?.stop();
  await owned?.drop();
});

const outcome = ({ status, code }: { status: number; code: string | undefined }) => [status, code];
const made = async (slug: string) => (await port.manage.createOrganization({ slug })).slug;

describe("policies", () => {
  test("an organization-admin sees them, and cannot go round what an admin has set", async () => {
    const token = port.tokens["organization-admin"];
    const old = await port.manage.createKey({ organization: "acme", name: "old" });
    const set = await port.patch("/organizations/acme/policies", { key_lifetime_max_days: 30, keeps_content: false });
    expect(set.body).toMatchObject({ key_lifetime_max_days: 30, key_unused_max_days: null, keeps_content: false });
    expect(set.headers.get("etag")).toBe(`"${set.body.version}"`);
    expect((await port.ask("/organizations/acme", { token })).body).toMatchObject({ key_lifetime_max_days: 30 });
    const later = new Date(Date.now() + 31 * 86_400_000).toISOString();
    const create = { organization: "acme", name: "new", expires_at: later };
    const refused = await port.post("/keys", create, { token });
    expect(outcome(refused)).toEqual([400, "invalid_value"]);
    expect(refused.body.error!.message).toContain("30 days at most");
    expect(outcome(await port.patch(`/keys/${old.id}`, { expires_at: later }, { token }))).toEqual([
      400,
      "invalid_value",
    ]);
    // The organization-admin may create a key within the policy, and rotate keys.
    const { body } = await port.post("/keys", { ...create, expires_at: undefined }, { token });
    expect(body).toMatchObject({ state: "active", expires_at: null });
    const ends_ms = new Date(body.ends_at as string).getTime() - new Date(body.created_at as string).getTime();
    expect(ends_ms).toBe(30 * 86_400_000);
    await port.patch("/organizations/acme/policies", { key_lifetime_max_days: null, keeps_content: true });
  });

  test("a policy that is not valid is refused with the valid form, and nothing is written", async () => {
    const slug = await made("strict");
    const { number } = await port.manage.auditHead();
    for (const body of [
      {},
      { key_lifetime_max_days: 0 },
      { key_lifetime_max_days: 3651 },
      { key_unused_max_days: -1 },
      { keeps_content: "no" },
      { keeps_contents: false },
    ]) {
      const { status } = await port.patch(`/organizations/${slug}/policies`, body);
      expect([body, status]).toEqual([body, 400]);
    }
    expect((await port.manage.auditHead()).number).toBe(number);
  });
});

test("a key is made with owner, labels, addresses and expiry at once", async () => {
  const body = {
    ...{ organization: "globex", name: "whole", owner: "ann", labels: { stage: "test", none: null } },
    ...{ allow_from: ["10.0.0.0/8", "10.0.0.0/8"], expires_at: "2030-01-31", idempotency: undefined },
  };
  const { body: key } = await port.post("/keys", body);
  expect(key).toMatchObject({
    ...{ owner: "ann", labels: { stage: "test" }, allow_from: ["10.0.0.0/8"], version: 1 },
    ...{ expires_at: "2030-01-31T00:00:00.000Z", ends_at: "2030-01-31T00:00:00.000Z" },
  });
  const [entry] = (await port.manage.pageAudit({ organization: "globex", limit: 1 })).data;
  expect(entry).toMatchObject({
    action: "key.create",
    details: { owner: "ann", labels: { stage: "test" }, allow_from: ["10.0.0.0/8"] },
  });
});

describe("two changes at once", () => {
  test("of a team, a key, a key's limits or new keys' limits: the second says what it would have overwritten", async () => {
    const organization = await made("contested");
    const team = await port.manage.createTeam({ organization, name: "research" });
    const key = await port.manage.createKey({ organization, name: "app" });
    const none = { session: null, month: null, requests_per_minute: null, tokens_per_minute: null };
    const seven = { ...none, week: { amount: "7.000000000", currency: "USD" }, concurrent_requests: null };
    for (const [path, one, two, reads] of [
      [`/teams/${team.id}`, { name: "science" }, { name: "research" }, { name: "science" }],
      [`/teams/${team.id}/limits`, { own: { week: "7" } }, { own: { week: "9" } }, { own: seven }],
      [`/keys/${key.id}`, { owner: "ann" }, { owner: "bob" }, { owner: "ann" }],
      [`/keys/${key.id}`, { team: "research" }, { name: "app 2" }, { team: { name: "research" } }],
      [`/keys/${key.id}/limits`, { own: { week: "7" } }, { own: { week: "9" } }, { own: seven }],
      [`/organizations/${organization}/limits`, { keys: { week: "7" } }, { keys: { week: "9" } }, { keys: seven }],
    ] as const) {
      const read = (await port.ask(path)).headers.get("etag")!;
      const version = Number(read.replaceAll('"', ""));
      const first = await port.patch(path, one, { version });
      expect([path, first.status, first.headers.get("etag")]).toEqual([path, 200, `"${version + 1}"`]);
      const second = await port.patch(path, two, { version });
      expect([path, second.status, second.code]).toEqual([path, 412, "version_conflict"]);
      expect(second.body.error).toMatchObject({ current: { ...reads, version: version + 1 } });
      expect(second.body.error!.message).toContain("by operator:a-admin");
      expect((await port.patch(path, two, { version: version + 1 })).status).toBe(200);
    }
  });

  test("many with the same version: one is done, and the others leave no trace", async () => {
    const organization = await made("crowded");
    const team = await port.manage.createTeam({ organization, name: "research" });
    const key = await port.manage.createKey({ organization, name: "app" });
    const { version } = await port.manage.findOrganization({ organization });
    for (const [method, path, body, at, action] of [
      ["PATCH", `/teams/${team.id}/limits`, { own: { week: "5" } }, 1, "team.limits"],
      ["PATCH", `/keys/${key.id}/limits`, { own: { week: "5" } }, 1, "key.limits"],
      ["PUT", `/organizations/${organization}/plan`, { plan: "pro" }, version, "organization.plan"],
    ] as const) {
      const { number } = await port.manage.auditHead();
      const answers = await Promise.all(Array.from({ length: 5 }, () => port.ask(path, { method, body, version: at })));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412]);
      expect(answers.find(({ status }) => status === 200)!.headers.get("etag")).toBe(`"${at + 1}"`);
      const { error } = answers.find(({ status }) => status === 412)!.body;
      expect(error).toMatchObject({ code: "version_conflict", current: { version: at + 1 } });
      expect(error!.message).toContain(`${action} by operator:a-admin`);
      expect((await port.manage.auditHead()).number).toBe(number + 1);
    }
    expect(await port.manage.findOrganization({ organization })).toMatchObject({ plan: "pro" });
  });

  test("a change that changes nothing raises no version and writes nothing", async () => {
    const { version } = await port.manage.createOrganization({ slug: "same" });
    const before = await port.manage.auditHead();
    const asked = { method: "PUT", body: { plan: "starter" } };
    expect((await port.ask("/organizations/same/plan", { ...asked, version })).body.version).toBe(version);
    expect(await port.manage.auditHead()).toEqual(before);
    const wrong = await port.ask("/organizations/same/plan", { ...asked, headers: { "if-match": "new" } });
    expect(outcome(wrong)).toEqual([400, "invalid_value"]);
  });

  test("an act or a creation, which compares no version, refuses one instead of ignoring it", async () => {
    const { id, version } = await port.manage.createKey({ organization: await made("acted"), name: "app" });
    for (const [path, body] of [
      [`/keys/${id}/revoke`, {}],
      [`/keys/${id}/rotate`, {}],
      ["/organizations", { slug: "unmade" }],
    ] as const) {
      const refused = await port.post(path, body, { version });
      expect([path, refused.status, refused.body.error!.param]).toEqual([path, 400, "if-match"]);
    }
    expect(await port.manage.findKey({ id })).toMatchObject({ state: "active", version });
  });
});

describe("an organization", () => {
  test("that is renamed is found by its old slug, except by administrators of others", async () => {
    const slug = await made("before");
    const key = await port.manage.createKey({ organization: slug, name: "app" });
    expect((await port.patch(`/organizations/${slug}`, { slug: "after", name: "After" })).body).toMatchObject({
      ...{ slug: "after", name: "After", former_slugs: ["before"], version: 2 },
    });
    expect((await port.ask(`/keys/${key.id}`)).body).toMatchObject({ organization: "after" });
    const gone = await port.ask(`/organizations/${slug}`);
    expect([gone.status, gone.body.error!.message]).toEqual([404, expect.stringContaining("renamed to 'after'")]);
    const foreign = await port.ask(`/keys?organization=${slug}`, { token: port.tokens["organization-admin"] });
    expect([foreign.status, JSON.stringify(foreign.body)]).toEqual([404, expect.not.stringContaining("after")]);
    for (const body of [{}, { slug: "No Slug" }, { slug: "globex" }, { name: "" }]) {
      const { status } = await port.patch("/organizations/after", body);
      expect([body, status]).toEqual([body, "slug" in body && body.slug === "globex" ? 409 : 400]);
    }
    expect((await port.post("/organizations", { slug })).code).toBe("already_exists");
  });

  test("that is closed can be listed and reported on, and every change of it is refused", async () => {
    const slug = await made("closing");
    const key = await port.manage.createKey({ organization: slug, name: "app" });
    const team = await port.manage.createTeam({ organization: slug, name: "research" });
    const closed = await port.post(`/organizations/${slug}/close`, {});
    expect(closed.body).toMatchObject({ status: "closed", plan: null, version: 2 });
    const again = await port.post(`/organizations/${slug}/close`, {});
    expect(again.body).toEqual(closed.body);
    // The answer to a close request with a version was lost, and the caller repeats the request.
    const withVersion = await port.ask(`/organizations/${slug}/close`, { method: "POST", body: {}, version: 1 });
    expect([withVersion.status, withVersion.body]).toEqual([200, closed.body]);
    const { body } = await port.ask("/organizations?status=closed");
    expect(body.data!.map((one) => one.slug)).toContain(slug);
    expect((await port.ask(`/usage/report?organization=${slug}`)).status).toBe(200);
    expect((await port.ask(`/keys/${key.id}`)).body).toMatchObject({ state: "revoked" });
    for (const [method, path, taken] of [
      ["POST", "/keys", { organization: slug, name: "x" }],
      ["POST", "/teams", { organization: slug, name: "x" }],
      ["POST", `/organizations/${slug}/resume`, {}],
      ["POST", `/organizations/${slug}/suspend`, {}],
      ["PUT", `/organizations/${slug}/plan`, { plan: "pro" }],
      ["PUT", `/organizations/${slug}/extra-usage`, { cap: "9" }],
      ["PUT", `/organizations/${slug}/anchor`, { anchor: "2026-12-01" }],
      ["PATCH", `/organizations/${slug}`, { slug: "opened" }],
      ["PATCH", `/organizations/${slug}/policies`, { keeps_content: false }],
      ["PATCH", `/organizations/${slug}/limits`, { keys: { week: "5" } }],
      ["PATCH", `/keys/${key.id}`, { owner: "ann" }],
      ["PATCH", `/keys/${key.id}/limits`, { own: { week: "5" } }],
      ["PATCH", `/teams/${team.id}/limits`, { own: { week: "5" } }],
      ["POST", `/teams/${team.id}/remove`, {}],
      ["POST", `/keys/${key.id}/rotate`, {}],
      ["PUT", "/notices/alerts", { organization: slug, url: "https://example.test/" }],
    ] as const)
      expect([method, path, ...outcome(await port.ask(path, { method, body: taken }))]).toEqual([
        ...[method, path, 409, "wrong_state"],
      ]);
  });
});

test("an organization's administrator sees her own people alone, without groups and other memberships", async () => {
  const [ann, bob] = [await newPerson(owned, "ann", "acme"), await newPerson(owned, "bob", "globex")];
  await port.manage.giveMembership({ person: ann, organization: "globex", role: "member" });
  const token = port.tokens["organization-admin"];
  const { body } = await port.ask("/people", { token });
  expect(body.data).toMatchObject([{ id: ann, groups: [], memberships: [{ organization: "acme" }] }]);
  expect((await port.ask(`/people/${bob}`, { token })).code).toBe("resource_not_found");
  expect((await port.ask(`/people/${ann}`, { token })).status).toBe(200);
  const all = await port.ask("/people?search=BOB@");
  expect(all.body.data).toMatchObject([{ id: bob, groups: ["secret-group"] }]);
});

test("a membership that contradicts itself is refused in words", async () => {
  const ann = await newPerson(owned, "ann", "acme");
  const give = async (body: object) =>
    (await port.ask(`/people/${ann}/membership`, { method: "PUT", body })).body.error?.message;
  expect(await give({ role: "admin", organization: "acme" })).toContain("for the service");
  expect(await give({ role: "member" })).toContain("Name it");
  expect(await give({ role: "viewer", team: "research" })).toContain("no teams");
  expect(await give({ role: "member", organization: "acme", team: "gone" })).toContain("has no team 'gone'");
  expect(await give({ role: "member", organization: "acme", models: ["gone"] })).toContain("no model 'gone'");
  const taken = await port.post(`/people/${ann}/membership/take`, {});
  expect(taken.body.error?.message).toContain("no membership by hand");
});

test("somebody who is unknown is answered with what to do", async () => {
  const unknown = await port.ask(`/people/per_${"0".repeat(32)}`);
  expect(unknown.code).toBe("resource_not_found");
  expect(unknown.body.error?.message).toContain("sluice person list");
});

test("an organization that keeps no content answers store: false whatever is asked, finds nothing, says why; what was stored is deleted", async () => {
  const service = await startService({ engine: { directives: "", namesModel: false } });
  const { organization: silent, key } = await newMember(service, "unlimited");
  const { key: others } = await newMember(service, "unlimited");
  const say = (body: object, by = key) => service.post("/v1/responses", { model, ...body }, { key: by });
  const answered = async (body: object, by = key) => (await (await say(body, by)).json()) as ResponseObject;
  const before = await answered({ input: "one" });
  const kept = await answered({ input: "one" }, others);
  expect(before.store).toBe(true);
  await service.json("org", "policy", silent, "--content", "none");
  // For up to a second, the node may still use the key's previous data.
  let during = before;
  await until(async () => {
    during = await answered({ input: "two", store: true });
    return during.store === false;
  });
  for (const id of [before.id, during.id]) {
    expect((await service.fetch(`/v1/responses/${id}`, { key })).status).toBe(404);
    expect((await service.fetch(`/v1/responses/${id}/input_items`, { key })).status).toBe(404);
    const refused = await say({ input: "x", previous_response_id: id });
    expect(refused.status).toBe(400);
    expect(await errorOf(refused)).toMatchObject({
      ...{ code: "previous_response_not_found", param: "previous_response_id" },
      message: expect.stringContaining("keeps no content"),
    });
  }
  const item = await say({ input: [{ type: "item_reference", id: before.output[0]!.id }] });
  expect(await errorOf(item)).toMatchObject({ code: "previous_response_not_found", param: "input[0].id" });
  expect((await say({ input: "x", previous_response_id: kept.id }, others)).status).toBe(200);
  await service.json("org", "policy", silent, "--content", "keep");
  let after = during;
  await until(async () => {
    after = await answered({ input: "three" });
    return after.store === true;
  });
  expect((await service.fetch(`/v1/responses/${after.id}`, { key })).status).toBe(200);
  expect((await service.fetch(`/v1/responses/${before.id}`, { key })).status).toBe(404);
  await service.stop();
});

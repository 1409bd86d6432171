/**
 * Organizations' policies for their keys and for kept content, over HTTP: who may set them, what they do to requests,
 * and that nobody overwrites a change that they have not seen.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { errorOf, model, type Service, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { operatorPort } from "./operator-port.ts";

setDefaultTimeout(120_000);

const owned = await openDatabase();
const port = await operatorPort(owned);
afterAll(async () => {
  await port?.stop();
  await owned?.drop();
});

const change = (path: string, body: object, more: { token?: string; version?: unknown; method?: string } = {}) =>
  port.ask(path, {
    ...{ method: more.method ?? "PATCH", body },
    ...(more.token === undefined ? {} : { token: more.token }),
    ...(more.version === undefined ? {} : { headers: { "if-match": `"${more.version}"` } }),
  });
const outcome = ({ status, code }: { status: number; code: string | undefined }) => [status, code];
const made = async (slug: string) => (await port.manage.createOrganization({ slug })).slug;

describe("policies", () => {
  test("an organization-admin sees them, and cannot go round what an admin has set", async () => {
    const token = port.tokens["organization-admin"];
    const old = await port.manage.createKey({ organization: "acme", name: "old" });
    const set = await change("/organizations/acme/policies", { key_lifetime_max_days: 30, keeps_content: false });
    expect(set.body).toMatchObject({ key_lifetime_max_days: 30, key_unused_max_days: null, keeps_content: false });
    expect(set.headers.get("etag")).toBe(`"${set.body.version}"`);
    expect((await port.ask("/organizations/acme", { token })).body).toMatchObject({ key_lifetime_max_days: 30 });
    const later = new Date(Date.now() + 31 * 86_400_000).toISOString();
    const create = { organization: "acme", name: "new", expires_at: later };
    const refused = await change("/keys", create, { token, method: "POST" });
    expect(outcome(refused)).toEqual([400, "invalid_value"]);
    expect(refused.body.error!.message).toContain("30 days at most");
    expect(outcome(await change(`/keys/${old.id}`, { expires_at: later }, { token }))).toEqual([400, "invalid_value"]);
    // The organization-admin may create a key within the policy, and rotate keys.
    const { body } = await change("/keys", { ...create, expires_at: undefined }, { token, method: "POST" });
    expect(body).toMatchObject({ state: "active", expires_at: null });
    const ends_ms = new Date(body.ends_at as string).getTime() - new Date(body.created_at as string).getTime();
    expect(ends_ms).toBe(30 * 86_400_000);
    await change("/organizations/acme/policies", { key_lifetime_max_days: null, keeps_content: true });
  });

  test("a policy that is not valid is refused with the valid form, and nothing is written", async () => {
    const slug = await made("strict");
    const { number } = await port.manage.auditHead();
    for (const body of [
      {},
      { key_lifetime_max_days: 0 },
      { key_lifetime_max_days: 3651 },
      { key_unused_max_days: -1 },
      { key_unused_max_days: 1.5 },
      { key_unused_max_days: "30d" },
      { keeps_content: "no" },
      { keeps_content: null },
      { keeps_contents: false },
    ]) {
      const { status } = await change(`/organizations/${slug}/policies`, body);
      expect([body, status]).toEqual([body, 400]);
    }
    expect((await port.manage.auditHead()).number).toBe(number);
  });
});

describe("a key is made", () => {
  test("with owner, labels, addresses and expiry at once; what is wrong with one of them makes none", async () => {
    const body = {
      ...{ organization: "globex", name: "whole", owner: "ann", labels: { stage: "test", none: null } },
      ...{ allow_from: ["10.0.0.0/8", "10.0.0.0/8"], expires_at: "2030-01-31", idempotency: undefined },
    };
    const { body: key } = await change("/keys", body, { method: "POST" });
    expect(key).toMatchObject({
      ...{ owner: "ann", labels: { stage: "test" }, allow_from: ["10.0.0.0/8"], version: 1 },
      ...{ expires_at: "2030-01-31T00:00:00.000Z", ends_at: "2030-01-31T00:00:00.000Z" },
    });
    const [entry] = (await port.manage.pageAudit({ organization: "globex", limit: 1 })).data;
    expect(entry).toMatchObject({
      action: "key.create",
      details: { owner: "ann", labels: { stage: "test" }, allow_from: ["10.0.0.0/8"] },
    });
    const { number } = await port.manage.auditHead();
    for (const wrong of [
      { owner: "" },
      { labels: { "No Label": "x" } },
      { labels: { a: "" } },
      { labels: Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`a${index}`, "x"])) },
      { allow_from: [] },
      { allow_from: ["nowhere"] },
      { allow_from: Array.from({ length: 101 }, (_, index) => `10.0.0.${index}`) },
      { expires_at: "2020-01-01" },
    ])
      expect([wrong, (await change("/keys", { ...body, ...wrong }, { method: "POST" })).status]).toEqual([wrong, 400]);
    expect((await port.manage.auditHead()).number).toBe(number);
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
      const first = await change(path, one, { version });
      expect([path, first.status, first.headers.get("etag")]).toEqual([path, 200, `"${version + 1}"`]);
      const second = await change(path, two, { version });
      expect([path, second.status, second.code]).toEqual([path, 412, "version_conflict"]);
      expect(second.body.error).toMatchObject({ current: { ...reads, version: version + 1 } });
      expect(second.body.error!.message).toContain("by operator:a-admin");
      expect((await change(path, two, { version: version + 1 })).status).toBe(200);
    }
  });

  test("many with the same version: one is done, and the others leave no trace", async () => {
    const organization = await made("crowded");
    const team = await port.manage.createTeam({ organization, name: "research" });
    const key = await port.manage.createKey({ organization, name: "app" });
    for (const path of [`/teams/${team.id}/limits`, `/keys/${key.id}/limits`]) {
      const { number } = await port.manage.auditHead();
      const asked = [1, 2, 3, 4, 5].map((week) => change(path, { own: { week } }, { version: 1 }));
      const answers = await Promise.all(asked);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412]);
      expect((await port.manage.auditHead()).number).toBe(number + 1);
    }
  });
});

describe("an organization", () => {
  test("that is renamed is found by its old slug, except by administrators of others", async () => {
    const slug = await made("before");
    const key = await port.manage.createKey({ organization: slug, name: "app" });
    expect((await change(`/organizations/${slug}`, { slug: "after", name: "After" })).body).toMatchObject({
      ...{ slug: "after", name: "After", former_slugs: ["before"], version: 2 },
    });
    expect((await port.ask(`/keys/${key.id}`)).body).toMatchObject({ organization: "after" });
    const gone = await port.ask(`/organizations/${slug}`);
    expect([gone.status, gone.body.error!.message]).toEqual([404, expect.stringContaining("renamed to 'after'")]);
    const foreign = await port.ask(`/keys?organization=${slug}`, { token: port.tokens["organization-admin"] });
    expect([foreign.status, JSON.stringify(foreign.body)]).toEqual([404, expect.not.stringContaining("after")]);
    for (const body of [{}, { slug: "No Slug" }, { slug: "globex" }, { name: "" }]) {
      const { status } = await change("/organizations/after", body);
      expect([body, status]).toEqual([body, "slug" in body && body.slug === "globex" ? 409 : 400]);
    }
    expect((await port.ask("/organizations", { method: "POST", body: { slug } })).code).toBe("already_exists");
  });

  test("that is closed can be listed and reported on, and every change of it is refused", async () => {
    const slug = await made("closing");
    const key = await port.manage.createKey({ organization: slug, name: "app" });
    const team = await port.manage.createTeam({ organization: slug, name: "research" });
    const closed = await change(`/organizations/${slug}/close`, {}, { method: "POST" });
    expect(closed.body).toMatchObject({ status: "closed", plan: null, version: 2 });
    const again = await change(`/organizations/${slug}/close`, {}, { method: "POST" });
    expect(again.body).toEqual(closed.body);
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
      expect([method, path, ...outcome(await change(path, taken, { method }))]).toEqual([
        ...[method, path, 409, "wrong_state"],
      ]);
  });
});

describe("an organization that keeps no content", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ engine: { directives: "", namesModel: false } });
  });
  afterAll(async () => {
    await service.stop();
  });

  test("answers store: false whatever is asked, finds nothing, says why; what was stored is deleted", async () => {
    const { organization: silent, key } = await newMember(service, "unlimited");
    const { key: others } = await newMember(service, "unlimited");
    const say = (body: object, by = key) => service.post("/v1/responses", { model, ...body }, { key: by });
    const answered = async (body: object, by = key) => (await (await say(body, by)).json()) as ResponseObject;
    const before = await answered({ input: "one" });
    const kept = await answered({ input: "one" }, others);
    expect(before.store).toBe(true);
    await service.json("org", "policy", silent, "--content", "none");
    // For up to a second, the node may still use what it knew of the key.
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
  });
});

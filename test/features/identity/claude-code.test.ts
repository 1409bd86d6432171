// The endpoints that Claude Code uses at its gateway besides messages: settings, usage, and the limits of a user who is
// signed in.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { modelsFor } from "../../../src/admin/people/claude-code/settings.ts";
import { decimalOf } from "../../../src/core/inference/money.ts";
import { modelOf } from "../../core/routing/models.ts";
import { type Laptop, laptop } from "../../harness/laptop.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(90_000);

const price = "\nmetering: { currency: EUR }\nreports: { provider: Example }\n";
const family = "anthropic-ratelimit-unified";

interface Managed {
  uuid: string;
  checksum: string;
  settings: { model: string; availableModels: string[]; env: Record<string, string> };
}
interface Usage {
  extra_usage: { monthly_limit: number; used_credits: number };
  limits: { is_active: boolean; percent: number; resets_at: string }[];
}

let node: PeopleNode;
let home: Laptop;
let token: string;
const secrets: string[] = [];
beforeAll(async () => {
  node = await startPeopleNode({ secrets, more: `  claude_code_settings: true\n${price}` });
  await node.sluice.json("org", "plan", node.sluice.organization, "pro");
  node.provider.claims.set("ann", { email: "ann@x.test", email_verified: true, groups: ["research"] });
  home = laptop();
  await home.signIn(node);
  token = JSON.parse(readFileSync(home.signInFile(node.serviceUrl), "utf8")).access_token;
  secrets.push(token);
});
afterAll(async () => {
  home?.[Symbol.dispose]();
  await node?.[Symbol.asyncDispose]();
});

const get = (path: string, key: string, headers: Record<string, string> = {}) =>
  fetch(node.serviceUrl + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
const body = { model: "qwen/qwen3-coder", max_tokens: 20, messages: [{ role: "user", content: "hi" }] };
const ask = (key: string) => node.sluice.post("/v1/messages", body, { key });
/** Sets a limit of the person who signed in, because the key of a sign-in has no limits of its own. */
const limit = async (session: number) => {
  const { person_id: person } = await node.sluice.json<{ person_id: string }>("key", "show", keyId);
  const whose = ["person", person, "--org", node.sluice.organization];
  return node.sluice.json("limit", "set", ...whose, `session=${decimalOf(session, 9)}`);
};
let keyId: string;

test("a sign-in of Claude Code takes its models from the catalog, and is told when nothing changed", async () => {
  const response = await get("/managed/settings", token);
  const { uuid, checksum, settings } = (await response.json()) as Managed;
  keyId = uuid;
  expect(settings.availableModels).toContain("qwen/qwen3-coder");
  expect(settings.availableModels).toContain(settings.model);
  const { availableModels, env, model } = settings;
  const sorted = JSON.stringify({ availableModels, env, model });
  expect(checksum).toBe(`sha256:${Bun.SHA256.hash(sorted, "hex")}`);
  const again = await get("/managed/settings", token, { "if-none-match": `"${checksum}"` });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  expect((await get("/managed/settings", token, { "if-none-match": '"sha256:other"' })).status).toBe(200);
});

test("a sign-in of Claude Code is named models that are served and that its key may call, by their ids", () => {
  const tools = { capabilities: new Set(["tools"] as const) };
  const retired = modelOf([], { id: "acme/old", ...tools, retirement: { at_ms: 1_000, replacedBy: null } as never });
  const renamed = modelOf([], { id: "acme/new", aliases: ["acme/former"], ...tools });
  const catalog = { models: new Map([retired, renamed].map((one) => [one.id, one])) } as never;
  const named = (allowed: string[] | null, now_ms = 2_000) =>
    modelsFor({ models: allowed }, catalog, now_ms).map(({ id }) => id);
  expect(named(null, 0)).toEqual(["acme/old", "acme/new"]);
  expect(named(null)).toEqual(["acme/new"]);
  expect(named(["acme/former"])).toEqual(["acme/new"]);
  expect(named(["acme/other"])).toEqual([]);
});

test("a sign-in of Claude Code needs a credential for settings and usage", async () => {
  for (const path of ["/managed/settings", "/api/oauth/usage"]) {
    const response = await get(path, "slt_nothing");
    expect([path, response.status, response.headers.get("x-should-retry")]).toEqual([path, 401, "false"]);
    expect(await response.json()).toMatchObject({ type: "error", error: { type: "authentication_error" } });
  }
});

test("amounts are shown to a key with the scope for usage alone", async () => {
  const narrow = ["--org", node.sluice.organization, "--scopes", "models:read,inference:create"];
  const { key } = await node.sluice.json<{ key: string }>("key", "create", "--name", "ci", ...narrow);
  secrets.push(key);
  const response = await get("/api/oauth/usage", key);
  const error = { type: "permission_error", details: { error_code: "missing_scope" } };
  expect([response.status, await response.json()]).toMatchObject([403, { type: "error", error }]);
});

test("a sign-in of Claude Code hears how full its fullest limit is, and sees the same in money and to the same second", async () => {
  const response = await ask(token);
  expect(response.status).toBe(200);
  const { headers } = response;
  expect(headers.get(`${family}-status`)).toBe("allowed");
  expect(headers.get(`${family}-representative-claim`)).toBe("overage");
  expect(headers.get(`${family}-overage-utilization`)).toMatch(/^0\.\d\d$/);
  expect(headers.get(`${family}-overage-surpassed-threshold`)).toBeNull();
  const usage = (await (await get("/api/oauth/usage", token)).json()) as Usage;
  const active = usage.limits.find((one) => one.is_active)!;
  expect(Date.parse(active.resets_at) / 1000).toBe(Number(headers.get(`${family}-overage-reset`)));
  expect(usage.extra_usage).toMatchObject({ is_enabled: true, currency: "EUR", utilization: active.percent });
  expect(usage.extra_usage.monthly_limit).toBeGreaterThan(usage.extra_usage.used_credits);
});

test("a key hears nothing of it", async () => {
  const { headers, status } = await ask(node.sluice.key);
  expect(status).toBe(200);
  expect([...headers.keys()].filter((name) => name.startsWith(family))).toEqual([]);
});

test("a sign-in of Claude Code is told in one sentence that its window is over, and not asked to come again", async () => {
  await limit(60_000);
  const shares: number[] = [];
  let last = await ask(token);
  const isOver = async () => {
    if (last.status === 200) shares.push(Number(last.headers.get(`${family}-overage-utilization`)));
    await last.clone().text();
    if (last.status === 429 && last.headers.get("retry-after") !== "1") return true;
    last = await ask(token);
    return false;
  };
  await until(isOver, 30_000, "the window to be used up");
  // The headers report the used share of the person's own limit: the organization has used next to nothing of its
  // limit.
  expect(Math.max(...shares)).toBeGreaterThan(0.2);
  const { error } = (await last.json()) as { error: { type: string; message: string } };
  expect(error.type).toBe("billing_error");
  expect(error.message).not.toMatch(/\. [A-Z]/);
  expect(error.message).toContain("starts anew on");
  expect(last.headers.get("x-should-retry")).toBe("false");
  expect(last.headers.get("retry-after")).toBeNull();
  expect(last.headers.get(`${family}-overage-disabled-reason`)).toBe("org_spend_cap_reached");
  for (const name of ["representative-claim", "overage-status"])
    expect(last.headers.get(`${family}-${name}`)).toBeNull();
});

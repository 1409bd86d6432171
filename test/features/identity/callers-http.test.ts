// Two nodes whose clients call with tokens of their issuer: over HTTP, in all three protocols, with receipts and
// limits. Both nodes have verified a token and cached that. When an administrator then changes a setting of its person
// or organization, the change takes effect on both nodes within a second, as it does for a key, even though Redis is
// down.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { freePort } from "../../harness/daemon.ts";
import { errorOf, model, plainModel, type Service, startService } from "../../harness/engine.ts";
import { startIssuer, type TestIssuer } from "../../harness/issuer.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { secretKey } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);
let issuer: TestIssuer;
let database: Awaited<ReturnType<typeof migratedDatabase>>;
let nodes: Service[];
let person: string;
let token: string;

beforeAll(async () => {
  issuer = await startIssuer();
  database = await migratedDatabase();
  const more = `
identity:
  service_url: http://127.0.0.1:1
  issuers:
    - { issuer: "${issuer.issuer}", client_id: sluice, client_secret: secret, audiences: [sluice-api] }
  rules:
    - { claim: groups, has: research, organization: acme, role: member }
    - { claim: groups, has: readers, organization: beta, role: member }
    - { claim: groups, has: viewers, organization: acme, role: member, scopes: [models:read] }
`;
  const redis = `redis://127.0.0.1:${await freePort()}`;
  const env = { DATABASE_URL: database.url, REDIS_URL: redis, SLUICE_SECRET_KEY: secretKey };
  const start = () => startService({ more, sluice: { store: "pglite", dataDir: "unused", env } });
  nodes = [await start(), await start()];
  await cli("org", "create", "acme", "--plan", "unlimited");
  await cli("org", "create", "beta", "--plan", "unlimited");
  await cli("team", "create", "--org", "acme", "--name", "small", "--limit", "session=0.000000001");
  token = await newToken("research");
  expect(await answers()).toEqual(["200", "200"]);
  person = (await cli<{ id: string }[]>("person", "list"))[0]!.id;
});
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  await database.drop();
  await issuer[Symbol.asyncDispose]();
});

const newToken = (group: string, sub = "ann") => issuer.sign({ sub, aud: "sluice-api", groups: [group] });
const cli = <Answer>(...words: string[]) => nodes[0]!.json<Answer>(...words);

/**
 * The result of a request with the token at a node: 200, or the error code and the owner of the limit that refused it.
 */
async function answerOf(node: Service): Promise<string> {
  const body = { model, messages: [{ role: "user", content: "Hello." }], max_tokens: 5 };
  const response = await node.post("/v1/chat/completions", body, { key: token });
  if (response.ok) return String(response.status);
  const { code, limited_by } = (await errorOf(response)) as { code: string; limited_by?: string };
  return limited_by ? `${code} of ${limited_by}` : code;
}

const message = { role: "user", content: "Hello." };
const answers = () => Promise.all(nodes.map(answerOf));

/** Waits until requests to every node have this result, and returns how many milliseconds that took. */
async function seen(answer: string): Promise<number> {
  const began = performance.now();
  await until(async () => (await answers()).every((one) => one === answer), 10_000, `${answer} of both nodes`);
  return performance.now() - began;
}

const give = (...words: string[]) => cli("membership", "give", person, "--org", "acme", "--role", "member", ...words);
const take = () => cli("membership", "take", person, "--org", "acme");

/**
 * The key names a change; the value has the change, the result that requests with the token then have, and the function
 * that undoes the change.
 */
const facts: Record<string, [change: () => Promise<unknown>, answer: string, restore: () => Promise<unknown>]> = {
  "a team given by hand": [() => give("--team", "small"), "usage_limit_reached of team", take],
  "fewer scopes": [() => give("--scopes", "models:read"), "missing_scope", take],
  "other models": [() => give("--models", plainModel), "model_not_allowed", take],
  "a limit of the person": [
    () => cli("limit", "set", "person", person, "--org", "acme", "session=0.000000001"),
    "usage_limit_reached of person",
    () => cli("limit", "set", "person", person, "--org", "acme", "session=inherit"),
  ],
  "the limits of members": [
    () => cli("limit", "set", "org", "acme", "--members", "session=0.000000001"),
    "usage_limit_reached of person",
    () => cli("limit", "set", "org", "acme", "--members", "session=inherit"),
  ],
  "a suspension": [() => cli("person", "suspend", person), "person_suspended", () => cli("person", "resume", person)],
  "the organization's suspension": [
    () => cli("org", "suspend", "acme"),
    "organization_suspended",
    () => cli("org", "resume", "acme"),
  ],
  "a plan that is taken away": [
    () => cli("org", "plan", "acme", "--none"),
    "no_active_plan",
    () => cli("org", "plan", "acme", "unlimited"),
  ],
  "a membership that is lost by a newer token": [
    async () => nodes[0]!.fetch("/v1/models", { key: await newToken("readers") }),
    "revoked_api_key",
    async () => nodes[0]!.fetch("/v1/models", { key: await newToken("research") }),
  ],
};

test.each(Object.entries(facts))("%s", async (_, [change, answer, restore]) => {
  expect(await answers()).toEqual(["200", "200"]);
  await change();
  expect(await seen(answer)).toBeLessThan(1_000 * busyness());
  await restore();
  expect(await seen("200")).toBeLessThan(1_000 * busyness());
});

test("a token may do what its rule says, never administers, and is no key in x-api-key", async () => {
  const key = await newToken("viewers", "rob");
  expect((await nodes[0]!.fetch("/v1/models", { key })).status).toBe(200);
  const refused = await nodes[0]!.post("/v1/chat/completions", { model, messages: [message] }, { key });
  expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("missing_scope");
  expect((await nodes[0]!.fetch("/v1/models", { key: null, headers: { "x-api-key": key } })).status).toBe(401);
  expect((await nodes[0]!.fetch("/v1/models", { key: await newToken("others", "eve") })).status).toBe(401);
});

// A node whose clients call with tokens of their issuer: over HTTP, on all three protocols, with receipts and limits.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Money } from "../../../src/core/inference/money.ts";
import { model, type Service, startService } from "../../harness/engine.ts";
import { startIssuer, type TestIssuer } from "../../harness/issuer.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { secretKey } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);
let issuer: TestIssuer;
let service: Service;
beforeAll(async () => {
  issuer = await startIssuer();
  const more = `
identity:
  service_url: http://127.0.0.1:1
  issuers:
    - { issuer: "${issuer.issuer}", client_id: sluice, client_secret: secret, audiences: [sluice-api] }
  rules:
    - { claim: groups, has: research, organization: acme, role: member }
    - { claim: groups, has: readers, organization: acme, role: member, scopes: [models:read] }
`;
  service = await startService({ more, sluice: { env: { SLUICE_SECRET_KEY: secretKey } } });
  await service.json("org", "create", "acme", "--plan", "unlimited");
});
afterAll(async () => {
  await service.stop();
  await issuer[Symbol.asyncDispose]();
});

const token = (sub: string, groups = ["research"]) => issuer.sign({ sub, aud: "sluice-api", groups });
const message = { role: "user", content: "Hello." };

test("a token calls on all three protocols, and its use stands under the person's key", async () => {
  const key = await token("ann");
  const chat = await service.post("/v1/chat/completions", { model, messages: [message] }, { key });
  expect(chat.status).toBe(200);
  const messages = await service.post("/v1/messages", { model, max_tokens: 10, messages: [message] }, { key });
  expect(messages.status).toBe(200);
  expect((await service.post("/v1/responses", { model, input: "Hello." }, { key })).status).toBe(200);
  const id = chat.headers.get("x-request-id")!;
  const receipt = () => service.fetch(`/v1/service/requests/${id}`, { key });
  await until(async () => (await receipt()).status === 200, 10_000, "the receipt");
  const [person] = await service.json<{ id: string; memberships: object[] }[]>("person", "list");
  expect(person).toMatchObject({ memberships: [{ organization: "acme", source: "rule" }] });
});

test("a token may do what its rule says, never administers, and is no key in x-api-key", async () => {
  const key = await token("rob", ["readers"]);
  expect((await service.fetch("/v1/models", { key })).status).toBe(200);
  const refused = await service.post("/v1/chat/completions", { model, messages: [message] }, { key });
  expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("missing_scope");
  expect((await service.fetch("/v1/models", { key: null, headers: { "x-api-key": key } })).status).toBe(401);
  expect((await service.fetch("/v1/models", { key: await token("eve", ["others"]) })).status).toBe(401);
});

test("a person's limit counts the token and the keys together, names her in refusals, and every reader shows it", async () => {
  const key = await token("dee");
  const chat = (own: string) =>
    service.post("/v1/chat/completions", { model, messages: [message], max_tokens: 100 }, { key: own });
  expect((await chat(key)).status).toBe(200);
  interface Shown {
    id: string;
    subject: string;
  }
  interface Limited {
    standing: { session: { limit: Money; used: Money } };
  }
  const { id } = (await service.json<Shown[]>("person", "list")).find(({ subject }) => subject === "dee")!;
  const made = await service.json<{ id: string; key: string; person_id: string }>(
    ...["key", "create", "--org", "acme", "--name", "dee", "--person", id],
  );
  expect(made.person_id).toBe(id);
  expect((await chat(made.key)).status).toBe(200);
  // What she used before the limit was set counts.
  await service.json("limit", "set", "person", id, "--org", "acme", "session=0.000001,requests_per_minute=1000");
  const shown = await service.json<Limited>("limit", "show", "person", id, "--org", "acme");
  expect(shown).toMatchObject({ standing: { session: { limit: dollars(1000) } } });
  expect(nanosOf(shown.standing.session.used)).toBeGreaterThan(0);
  for (const own of [key, made.key]) {
    await until(async () => (await chat(own)).status === 429, 5_000, "the refusal");
    const { error } = (await (await chat(own)).json()) as { error: object };
    expect(error).toMatchObject({ code: "usage_limit_reached", limited_by: "person", limit: "session" });
    const usage = (await (await service.fetch("/v1/service/usage", { key: own })).json()) as object;
    expect(usage).toMatchObject({
      person: { session: { usage_percent: expect.any(Number) }, requests_per_minute: {} },
    });
  }
  expect(await service.json<Shown[]>("person", "list", "--over", "1")).toMatchObject([{ id }]);
  const requests = await service.json<{ key_id: string }[]>("request", "list", "--person", id);
  expect(requests.some(({ key_id }) => key_id === made.id)).toBe(true);
  // If the person has no limits of their own, those of the organization for its members apply.
  await service.json("limit", "set", "person", id, "--org", "acme", "session=inherit,requests_per_minute=inherit");
  await until(async () => (await chat(made.key)).status === 200, 5_000, "her room");
  await service.json("limit", "set", "org", "acme", "--members", "session=0.000002");
  await until(async () => (await chat(made.key)).status === 429, 5_000, "the refusal by the organization's default");
});

/**
 * Who may use a response. Within the response's organization, every operation admits the person who made it and keys
 * that belong to no person, and nobody else; it admits nobody of another organization.
 */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { model, refusalOf, startService } from "../../harness/engine.ts";
import { startIssuer } from "../../harness/issuer.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { secretKey } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import { errorIn, responseIn, talk } from "../../harness/websocket.ts";

setDefaultTimeout(60_000);
const path = "/v1/responses";
const callers = ["ann by a token", "ann by her key", "bob by a token", "the service's key", "another's key"] as const;
type Caller = (typeof callers)[number];
const issuer = await startIssuer();
const more = `
identity:
  service_url: http://127.0.0.1:1
  issuers:
    - { issuer: "${issuer.issuer}", client_id: sluice, client_secret: secret, audiences: [sluice-api] }
  rules:
    - { claim: groups, has: research, organization: acme, role: member }
`;
const service = await startService({ more, sluice: { env: { SLUICE_SECRET_KEY: secretKey } } });
await service.json("org", "create", "acme", "--plan", "unlimited");
const token = (sub: string) => issuer.sign({ sub, aud: "sluice-api", groups: ["research"] });
const tokens = { "ann by a token": await token("ann"), "bob by a token": await token("bob") };
for (const key of Object.values(tokens)) expect((await service.fetch("/v1/models", { key })).status).toBe(200);
const people = await service.json<{ id: string; subject: string }[]>("person", "list");
const ann = people.find(({ subject }) => subject === "ann")!.id;
const keys: Record<Caller, string> = {
  ...tokens,
  "ann by her key": (await newKey(service, "acme", "--person", ann)).key,
  "the service's key": (await newKey(service, "acme")).key,
  "another's key": (await newMember(service, "unlimited")).key,
};
afterAll(async () => {
  await service.stop();
  await issuer[Symbol.asyncDispose]();
});

const post = (caller: Caller, body: object, at = path) => service.post(at, { model, ...body }, { key: keys[caller] });
async function made(by: Caller, body: object = {}) {
  const response = await post(by, { input: "Hello.", ...body });
  expect(response.status).toBe(200);
  const { id, output } = (await response.json()) as ResponseObject;
  return { id, item: output[0]?.id, requestId: response.headers.get("x-request-id")! };
}
type Made = Awaited<ReturnType<typeof made>>;

/** The status of each operation's answer. An operation that ends the response comes last. */
const doors: Record<string, (caller: Caller, one: Made) => Promise<number>> = {
  GET: (caller, { id }) => status(caller, `${path}/${id}`),
  input_items: (caller, { id }) => status(caller, `${path}/${id}/input_items`),
  previous_response_id: async (caller, { id }) =>
    (await post(caller, { input: "And?", previous_response_id: id, store: false })).status,
  item_reference: async (caller, { item }) =>
    (await post(caller, { input: [{ type: "item_reference", id: item }], store: false })).status,
  "input_tokens of previous_response_id": async (caller, { id }) =>
    (await post(caller, { input: "And?", previous_response_id: id }, `${path}/input_tokens`)).status,
  "input_tokens of item_reference": async (caller, { item }) =>
    (await post(caller, { input: [{ type: "item_reference", id: item }] }, `${path}/input_tokens`)).status,
  "compact of previous_response_id": async (caller, { id }) =>
    (await post(caller, { previous_response_id: id }, `${path}/compact`)).status,
  WebSocket: async (caller, { id }) => {
    using client = await talk(service.url, { authorization: `Bearer ${keys[caller]}` });
    const events = await client.create({ model, input: "And?", previous_response_id: id, store: false });
    return events.at(-1)?.type === "error"
      ? errorIn(events).status
      : responseIn(events).status === "completed"
        ? 200
        : 500;
  },
  receipt: (caller, { requestId }) => status(caller, `/v1/service/requests/${requestId}`),
  DELETE: (caller, { id }) => status(caller, `${path}/${id}`, "DELETE"),
};
const status = async (caller: Caller, at: string, method = "GET") =>
  (await service.fetch(at, { method, key: keys[caller] })).status;
/** The status of a refusal: a reference in a body is refused like one to something that does not exist. */
const refused = (door: string) => (/^(GET|input_items|DELETE|receipt)$/.test(door) ? 404 : 400);

const admitted: Record<"ann by a token" | "the service's key", readonly Caller[]> = {
  "ann by a token": ["ann by a token", "ann by her key", "the service's key"],
  "the service's key": ["the service's key"],
};

for (const maker of ["ann by a token", "the service's key"] as const)
  test.each(Object.keys(doors))(`a response of ${maker}: %s`, async (door) => {
    const one = await made(maker);
    const receipt = async () => (await doors.receipt!(maker, one)) === 200;
    await until(receipt, 10_000, "the receipt");
    const others = callers.filter((caller) => !admitted[maker].includes(caller));
    for (const caller of others) expect([caller, await doors[door]!(caller, one)]).toEqual([caller, refused(door)]);
    for (const caller of admitted[maker]) {
      const its = door === "DELETE" ? await made(maker) : one;
      expect([caller, await doors[door]!(caller, its)]).toEqual([caller, 200]);
    }
  });

test("a background response is fetched, followed, cancelled and deleted by its maker, and by no colleague", async () => {
  const long = { input: "[simulator: tps=20 tokens=2000] hello", background: true };
  const { id } = await made("ann by her key", long);
  const bob = { key: keys["bob by a token"] };
  for (const [at, method] of [
    [`${path}/${id}`, "GET"],
    [`${path}/${id}?stream=true`, "GET"],
    [`${path}/${id}/cancel`, "POST"],
    [`${path}/${id}`, "DELETE"],
  ] as const)
    expect(await refusalOf(await service.fetch(at, { method, ...bob }))).toEqual([404, "response_not_found", "id"]);
  const state = async (caller: Caller) =>
    ((await (await service.fetch(`${path}/${id}`, { key: keys[caller] })).json()) as ResponseObject).status;
  expect(await state("ann by a token")).toBe("in_progress");
  expect(await state("the service's key")).toBe("in_progress");
  const cancelled = await service.fetch(`${path}/${id}/cancel`, { method: "POST", key: keys["ann by a token"] });
  expect(cancelled.status).toBe(200);
  expect(await state("ann by her key")).toBe("cancelled");
  expect(await status("the service's key", `${path}/${id}`, "DELETE")).toBe(200);
});

test("an idempotency key is a person's own, whichever credential it comes with, or that of a key without a person", async () => {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const asked = async (caller: Caller) => {
    const response = await service.post(path, { model, input: "Hello." }, { key: keys[caller], headers });
    expect(response.status).toBe(200);
    return response.headers.get("x-service-replay-of") ?? response.headers.get("x-request-id");
  };
  const runs: Record<string, string | null> = {};
  for (const caller of callers) runs[caller] = await asked(caller);
  expect(runs["ann by her key"]).toBe(runs["ann by a token"]!);
  expect(new Set(Object.values(runs)).size).toBe(callers.length - 1);
});

test("the receipt of a refused request is its maker's", async () => {
  let at = "";
  // Only ten refusals a second have receipts, and the tests above may have used them up.
  await until(
    async () => {
      const response = await service.post(path, { model: "acme/none", input: "x" }, { key: keys["ann by a token"] });
      at = `/v1/service/requests/${response.headers.get("x-request-id")}`;
      return (await status("ann by her key", at)) === 200;
    },
    10_000,
    "a receipt",
  );
  expect(await status("bob by a token", at)).toBe(404);
  expect(await status("the service's key", at)).toBe(200);
});

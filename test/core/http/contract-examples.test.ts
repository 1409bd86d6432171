/** The request examples of the contract, as published, against the running service on its default catalog. */
import { afterAll, expect, test } from "bun:test";
import { defaultModels } from "../../../src/config/models.ts";
import { type Example, exampleModel } from "../../../src/core/operations/operation.ts";
import { operations } from "../../../src/node/operations.ts";
import { kindModels, startService } from "../../harness/engine.ts";
import { startSluice } from "../../harness/sluice.ts";

const service = await startSluice();
/** A service with models of other kinds; the default catalog has chat models only. */
const ofKinds = await startService({ hasKinds: true, engine: { directives: "" } });
afterAll(async () => {
  await service.stop();
  await ofKinds.stop();
}, 60_000);

const models = defaultModels();
const isOfChat = ({ kind = "chat" }: Example) => kind === "chat";

for (const operation of operations) {
  for (const example of operation.examples) {
    test(`${operation.operationId}: ${example.summary}`, async () => {
      const model = isOfChat(example)
        ? exampleModel(models, example)!
        : kindModels[example.kind as keyof typeof kindModels];
      const { path, headers, body } = example.request(model);
      const response = await (isOfChat(example) ? service : ofKinds).fetch(path, {
        method: operation.method.toUpperCase(),
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // Sends a key only to operations that say that they need one.
        ...(operation.scope === null ? { key: null } : {}),
      });
      expect([response.status, response.headers.get("content-type")?.split(";")[0]]).toEqual([
        example.status,
        example.contentType,
      ]);
      expect((await response.text()).length).toBeGreaterThan(0);
    });
  }
}

test("what is kept of a response is fetched, listed and deleted as the contract says", async () => {
  const operation = operations.find(({ operationId }) => operationId === "createResponse")!;
  const { path, body } = operation.examples
    .find(({ name }) => name === "tool_result")!
    .request(exampleModel(models, { needs: ["tools"] })!);
  const created = (await (await service.post(path, body)).json()) as { id: string };
  const here = `${path}/${created.id}`;
  const list = async (query: string) => {
    const response = await service.fetch(`${here}/input_items${query}`);
    const { data, has_more } = (await response.json()) as { data?: { id: string; type: string }[]; has_more?: boolean };
    return { status: response.status, data: data ?? [], has_more };
  };

  expect(await (await service.fetch(here)).json()).toEqual(created);

  const types = ["message", "function_call", "function_call_output"];
  const all = await list("?order=asc&limit=100");
  expect([all.data.map(({ type }) => type), all.has_more]).toEqual([types, false]);
  expect((await list("")).data).toEqual(all.data.toReversed());
  const rest = await list(`?order=asc&limit=1&after=${all.data[0]!.id}`);
  expect([rest.data, rest.has_more]).toEqual([[all.data[1]!], true]);
  for (const query of ["?limit=0", "?limit=101", "?limit=1.5", "?order=up", "?after=msg_0"])
    expect([query, (await list(query)).status]).toEqual([query, 400]);

  expect(await (await service.fetch(here, { method: "DELETE" })).json()).toEqual({
    id: created.id,
    object: "response",
    deleted: true,
  });
  for (const [where, method] of [
    [here, "GET"],
    [here, "DELETE"],
    [`${here}/input_items`, "GET"],
  ] as const) {
    const response = await service.fetch(where, { method });
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: "response_not_found" } }]);
  }
});

test("a WebSocket is refused by its own status, another method by the usual one", async () => {
  const asking = { headers: { connection: "Upgrade", upgrade: "websocket" } };
  const refused = await service.fetch("/v1/responses", asking);
  expect([refused.status, await refused.json()]).toMatchObject([426, { error: { code: "upgrade_not_supported" } }]);
  const plain = await service.fetch("/v1/responses");
  expect([plain.status, plain.headers.get("allow")]).toEqual([405, "POST"]);
  await plain.arrayBuffer();
});

test("the running service publishes the checked-in contract", async () => {
  const served = await (await service.fetch("/openapi.json", { key: null })).text();
  expect(served).toBe(await Bun.file(new URL("../../../contract/openapi.json", import.meta.url)).text());
});

test("the documentation's script comes from the service itself", async () => {
  const response = await service.fetch("/docs/scalar.js", { key: null });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  await response.arrayBuffer();
});

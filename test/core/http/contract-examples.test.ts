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

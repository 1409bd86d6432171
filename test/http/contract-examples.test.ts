/** The request examples of the contract, as published, against the running service on its default catalog. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { defaultModels } from "../../src/config/models.ts";
import { exampleModel } from "../../src/http/contract/operation.ts";
import { operations } from "../../src/http/contract/operations.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";

let service: Sluice;
beforeAll(async () => {
  service = await startSluice();
}, 60_000);
afterAll(async () => {
  await service.stop();
}, 60_000);

for (const operation of operations) {
  for (const example of operation.examples) {
    test(`${operation.operationId}: ${example.summary}`, async () => {
      const { path, headers, body } = example.request(exampleModel(defaultModels(), example.needs)!);
      const response = await service.fetch(path, {
        method: operation.method.toUpperCase(),
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // Only what says that it needs a key gets one.
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

test("the running service publishes the checked-in contract", async () => {
  const served = await (await service.fetch("/openapi.json", { key: null })).text();
  expect(served).toBe(await Bun.file(new URL("../../openapi.json", import.meta.url)).text());
});

test("the documentation's script comes from the service itself", async () => {
  const response = await service.fetch("/docs/scalar.js", { key: null });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  await response.arrayBuffer();
});

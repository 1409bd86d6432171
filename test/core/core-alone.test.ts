/**
 * The core serves its operations without any feature: no stored answers, no telemetry, no identity, no contract page. A
 * request that needs a feature is refused with a message, and never ignored.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { listen } from "../../src/core/http/listen.ts";
import { coreOperations } from "../../src/core/operations/list.ts";
import { mount, type NodeDependencies } from "../../src/node/app.ts";
import { contractProblems } from "../harness/contract.ts";
import { startSimulator } from "../harness/simulator.ts";
import { until } from "../harness/until.ts";
import { coreNode, modelId } from "./core-node.ts";
import { stores } from "./store/ledger-stores.ts";

const store = await stores.postgres();
const organizationId = await store.newOrganization();
const engine = await startSimulator({ models: ["writer"] });
const node = coreNode({ store, organizationId, engineUrl: engine.url });
// Only the core's operations are mounted, so the dependencies of features can be absent.
const served = mount(node.dependencies as NodeDependencies, coreOperations);
const listening = listen(served as never, { host: "127.0.0.1", port: 0, idle_ms: 60_000 });

afterAll(async () => {
  await listening.stop();
  await node.stop();
  await engine.stop();
  await store.close();
});

async function asked(path: string, body?: object) {
  const method = body ? "POST" : "GET";
  const response = await fetch(listening.url + path, {
    method,
    headers: { "content-type": "application/json", authorization: "Bearer slk_any" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  expect(contractProblems(method, path, response, text)).toEqual([]);
  return { status: response.status, text, headers: response.headers };
}

const said = [{ role: "user", content: "three words please" }];
const bodies = {
  "/v1/chat/completions": { model: modelId, messages: said, max_tokens: 4 },
  "/v1/messages": { model: modelId, messages: said, max_tokens: 4 },
  "/v1/responses": { model: modelId, input: "three words please", max_output_tokens: 16 },
};

describe.each(Object.entries(bodies))("%s", (path, body) => {
  test.each([false, true])("is answered, charged once, and has a record (streamed: %p)", async (stream) => {
    const { status, headers } = await asked(path, { ...body, stream });
    expect(status).toBe(200);
    await until(() => node.holds() === 0, 5_000, "the request to be settled");
    const record = await node.receipt(headers.get("x-service-request-id")!);
    expect(record).toMatchObject({ outcome: "completed", usage: { outputTokens: expect.any(Number) } });
    expect(record!.nanos.charged).toBeGreaterThan(0);
  });
});

test("models, counts, usage and probes are served", async () => {
  const count = { model: modelId, messages: said };
  expect((await asked("/v1/messages/count_tokens", count)).status).toBe(200);
  expect((await asked("/v1/responses/input_tokens", { model: modelId, input: "three words" })).status).toBe(200);
  for (const path of ["/v1/models", `/v1/models/${modelId}`, "/v1/service/usage", "/livez", "/readyz", "/"])
    expect({ path, status: (await asked(path)).status }).toEqual({ path, status: 200 });
});

test("a response is not stored, and says so; what would need it is refused", async () => {
  const body = bodies["/v1/responses"];
  const answer = JSON.parse((await asked("/v1/responses", { ...body, store: true })).text);
  expect(answer.store).toBe(false);
  const next = await asked("/v1/responses", { ...body, previous_response_id: answer.id });
  expect(JSON.parse(next.text).error.code).toBe("previous_response_not_found");
  const background = await asked("/v1/responses", { ...body, background: true });
  expect(JSON.parse(background.text).error).toMatchObject({ code: "unsupported_feature", param: "background" });
});

// Requests that one poll of the event loop brings are read in their order, once all of them have arrived:
// docs/design/runtime.md, Bun as a server.
import { expect, test } from "bun:test";
import Type from "typebox";
import { lifecycle } from "../../../src/core/http/frame.ts";
import { json } from "../../../src/core/http/json.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { createChatCompletion } from "../../../src/core/operations/chat.ts";
import { countTokens } from "../../../src/core/operations/count-tokens.ts";
import type { Dependencies } from "../../../src/core/operations/dependencies.ts";
import type { Operation } from "../../../src/core/operations/operation.ts";
import { serveOperation } from "../../../src/core/operations/serve-operation.ts";
import { plentifulBounds } from "../../harness/bounds.ts";

const connection = { address: () => "192.0.2.1", isLocal: () => false, keepOpen() {} };
const steps: string[] = [];
const needed: Partial<Dependencies> = {
  newId: () => "0".repeat(32),
  async authenticate(headers) {
    if (!headers.get("authorization")) throw new Fault("missing_api_key", "No key.");
    const key = { id: "key_1", scopes: ["inference:create"], models: null };
    return { key, organization: { id: "org_1", plan: null } } as never;
  },
  arrivals: { take() {} },
  catalog: () => ({ models: new Map(), plans: new Map() }) as never,
  bounds: plentifulBounds(),
  lifecycle: lifecycle(),
  metrics: { decision() {}, unauthenticated() {}, request() {} } as never,
  unread: { discard: async () => true },
  traces: null,
  log: { request() {}, event() {}, flush() {} },
  shedsConnection: () => false,
};
const serving = (operation: Operation, more: Partial<Dependencies> = {}) =>
  serveOperation({ ...needed, ...more } as Dependencies, {
    ...operation,
    request: {
      schema: Type.Object({}),
      read: async (_, call) => void steps.push(`${nameOf(call.request)} is read`) as never,
    },
    handle: () => json(200, {}),
  });
const serve = serving(createChatCompletion);
const nameOf = (request: Request) => request.headers.get("x-name");

async function arrived(name: string, headers: Record<string, string>): Promise<{ answer: Promise<Response> }> {
  const request = new Request("http://localhost/v1/chat/completions", {
    method: "POST",
    headers: { ...headers, "x-name": name },
  });
  const answer = serve(request, connection);
  // Everything that the request can do without waiting is done before the next request arrives.
  for (let hops = 0; hops < 20; hops++) await Promise.resolve();
  steps.push(`${name} has arrived`);
  return { answer };
}

test("requests of one poll are read when all have arrived, in their order", async () => {
  steps.length = 0;
  const known = { authorization: "Bearer a" };
  const [first, second] = [await arrived("first", known), await arrived("second", known)];
  for (const { answer } of [first, second]) expect((await answer).status).toBe(200);
  expect(steps).toEqual(["first has arrived", "second has arrived", "first is read", "second is read"]);
});

test("one that is refused before its body matters waits for nobody", async () => {
  const { answer } = await arrived("stranger", {});
  const refused = await Promise.race([answer, new Promise((resolve) => setImmediate(resolve, null))]);
  expect((refused as Response | null)?.status).toBe(401);
});

test("a count of tokens takes nothing from what a key may ask of models, and the other way round", async () => {
  const taken: string[] = [];
  const arrivals = { take: (_: string, purpose: string) => void taken.push(purpose) };
  for (const operation of [createChatCompletion, countTokens]) {
    const headers = { authorization: "Bearer a" };
    const asked = new Request(`http://localhost${operation.path}`, { method: "POST", headers });
    expect((await serving(operation, { arrivals })(asked, connection)).status).toBe(200);
  }
  expect(taken).toEqual(["inference", "count"]);
});

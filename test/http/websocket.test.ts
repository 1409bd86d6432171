/** A WebSocket on /v1/responses, over real sockets: each response is a request like any other, with one record. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { RequestReceipt } from "../../src/management/receipt-shape.ts";
import { model, type Service, startService } from "../harness/engine.ts";
import { eventsOf, textOf } from "../harness/responses.ts";
import { until } from "../harness/until.ts";
import { errorIn, responseIn, type ServerEvent, talk } from "../harness/websocket.ts";

setDefaultTimeout(60_000);

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
});

const connect = (key = service.key) => talk(service.url, { authorization: `Bearer ${key}` });
const asks = (text: string, more: object = {}) => ({ model, input: text, ...more });
const says = (text: string) => `[simulator: echo] ${text}`;
const result = (call: { call_id: string }) => ({
  type: "function_call_output",
  call_id: call.call_id,
  output: "4 degrees",
});
const told = () =>
  (service.engine.requests.at(-1)!.body as { messages: { role: string; content: unknown }[] }).messages;

async function receiptOf(events: readonly ServerEvent[]): Promise<RequestReceipt> {
  const id = events.find(({ request_id }) => request_id)?.request_id;
  let receipt: RequestReceipt | null = null;
  await until(async () => {
    const response = await service.fetch(`/v1/service/requests/${id}`);
    receipt = response.status === 200 ? ((await response.json()) as RequestReceipt) : null;
    return receipt !== null && receipt.outcome !== "running";
  });
  return receipt!;
}

describe("a response on a WebSocket", () => {
  test("has the events of a stream, and one record", async () => {
    using client = await connect();
    const events = await client.create(asks("[simulator: tokens=12]"));
    const streamed = await eventsOf(
      await service.post("/v1/responses", asks("[simulator: tokens=12]", { stream: true })),
    );
    const shape = (all: readonly { type: string; sequence_number?: number }[]) =>
      all.map(({ type, sequence_number }) => `${sequence_number} ${type}`);
    expect(shape(events)).toEqual(shape(streamed));
    expect(responseIn(events)).toMatchObject({ status: "completed", usage: { output_tokens: 12 } });
    expect(await receiptOf(events)).toMatchObject({
      operation: "responses",
      stream: true,
      outcome: "completed",
      usage: { output_tokens: 12, source: "reported" },
    });
    expect(client.state).toBe("open");
  });

  test("continues the one before, which nobody stored", async () => {
    using client = await connect();
    const first = responseIn(await client.create(asks(says("one"), { store: false })));
    const next = await client.create(asks(says("two"), { store: false, previous_response_id: first.id }));
    expect(textOf(responseIn(next))).toContain("two");
    expect(told().map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(told())).toContain(says("one"));
    const stranger = await service.post("/v1/responses", asks("x", { previous_response_id: first.id }));
    expect([stranger.status, await stranger.json()]).toMatchObject([
      400,
      { error: { code: "previous_response_not_found" } },
    ]);
  });
});

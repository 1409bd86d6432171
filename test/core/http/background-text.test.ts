/**
 * A background response is charged up to the text that its GET returns, which counts as delivered, whatever ended the
 * response, streamed or not. A response with an idempotency key whose text nobody can read is charged nothing.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { tokens } from "../../../src/features/simulator/text.ts";
import { model, says, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const service = await startService({
  engine: { directives: "", namesModel: false },
  more: "answers: { answer_bytes_max: 65536 }",
});
afterAll(() => service.stop());

interface Got {
  id: string;
  status: string;
  output: { content?: { text: string }[] }[];
}

interface Begun {
  id: string;
  request: string;
}

async function begin(directives: string, { stream = false, key = null as string | null } = {}): Promise<Begun> {
  const leaving = new AbortController();
  const body = { model, input: says(directives), background: true, stream };
  const headers: Record<string, string> = key === null ? {} : { "idempotency-key": key };
  const response = await service.post("/v1/responses", body, { headers, signal: leaving.signal });
  expect(response.status).toBe(200);
  let text = "";
  const decoder = new TextDecoder();
  const reader = response.body!.getReader();
  while (!/"id":"resp_/.test(text)) text += decoder.decode((await reader.read()).value, { stream: true });
  // The client leaves its stream.
  leaving.abort();
  return { id: /"id":"(resp_[0-9a-f]{32})"/.exec(text)![1]!, request: requestIdOf(response) };
}

const fetched = async (id: string) => (await (await service.fetch(`/v1/responses/${id}`)).json()) as Got;
const cancel = async (id: string) => (await service.post(`/v1/responses/${id}/cancel`, {})).json() as Promise<Got>;
const textOf = ({ output }: Got) => output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join("");
const produced = () => service.engine.requests.at(-1)?.tokens ?? 0;

/** What the response's GET returns after it has ended and was settled, and what it was charged. */
async function settled({ id, request }: Begun) {
  await until(async () => (await fetched(id)).status !== "in_progress", 10_000, "the end of the response");
  const { outcome, usage, cost } = await endedReceipt(service, request);
  const got = await fetched(id);
  return {
    status: got.status,
    outcome,
    text: textOf(got),
    charged: nanosOf(cost.charged),
    output_tokens: usage.output_tokens,
  };
}

describe.each([false, true])("streamed: %p", (stream) => {
  test("one whose engine breaks is charged for its text", async () => {
    const ended = await settled(await begin("tokens=60 tps=100 error-after=25", { stream }));
    expect(ended).toMatchObject({ status: "failed", outcome: "failed", output_tokens: 25 });
    expect(tokens(ended.text)).toHaveLength(25);
    expect(ended.charged).toBeGreaterThan(0);
  });

  test("one that is cancelled is charged for its text", async () => {
    const before = service.engine.counts.requests;
    const begun = await begin("tokens=3000 tps=100", { stream });
    await until(() => service.engine.counts.requests > before && produced() > 20, 10_000, "some tokens");
    await cancel(begun.id);
    const ended = await settled(begun);
    expect(ended).toMatchObject({ status: "cancelled", outcome: "cancelled" });
    expect(tokens(ended.text).length).toBe(ended.output_tokens);
    expect(ended.output_tokens).toBeGreaterThan(15);
  });

  test("one that outgrows its log, and is cancelled, is charged nothing: nobody can read it", async () => {
    const begun = await begin("tokens=16000 tps=4000", { stream });
    await until(() => produced() > 2_000, 20_000, "more than its log takes");
    await cancel(begun.id);
    expect(await settled(begun)).toMatchObject({ status: "cancelled", text: "", charged: 0 });
  });
});

test("one that fails before any text is charged nothing", async () => {
  const ended = await settled(await begin("status=500"));
  expect(ended).toMatchObject({ status: "failed", text: "", charged: 0 });
});

test("one with a key that is not streamed is charged nothing until it is whole, and then in full", async () => {
  const before = service.engine.counts.requests;
  const begun = await begin("tokens=3000 tps=100", { key: crypto.randomUUID() });
  await until(() => service.engine.counts.requests > before && produced() > 20, 10_000, "some tokens");
  await cancel(begun.id);
  expect(await settled(begun)).toMatchObject({ status: "cancelled", text: "", charged: 0 });
  const whole = await settled(await begin("tokens=30 tps=100", { key: crypto.randomUUID() }));
  expect(whole).toMatchObject({ status: "completed", outcome: "completed", output_tokens: 30 });
});

test("one that is not streamed cannot be followed, and completes as before", async () => {
  const begun = await begin("tokens=30 tps=100");
  expect((await service.fetch(`/v1/responses/${begun.id}?stream=true`)).status).toBe(400);
  const whole = await settled(begun);
  expect(whole).toMatchObject({ status: "completed", output_tokens: 30 });
  expect(tokens(whole.text)).toHaveLength(30);
});

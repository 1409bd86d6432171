/**
 * A background response is charged up to the text that its GET returns, which counts as delivered, whatever ended the
 * response, streamed or not. A response with an idempotency key whose text nobody can read is charged nothing.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { tokens } from "../../../src/features/simulator/text.ts";
import { textOf } from "../../faults/background-client.ts";
import { startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";
import { backgroundOf } from "./background-responses.ts";

setDefaultTimeout(60_000);

const service = await startService({
  engine: { directives: "", namesModel: false },
  more: "answers: { answer_bytes_max: 65536 }",
});
afterAll(() => service.stop());

const { begin, cancel, ended: over, fetched } = backgroundOf(service);
const withKey = () => ({ "idempotency-key": crypto.randomUUID() });
const produced = () => service.engine.requests.at(-1)?.tokens ?? 0;

/** Begins a response, and cancels it when it has produced some text. */
async function cancelledAmid(more: object, headers = {}) {
  const before = service.engine.counts.requests;
  const begun = await begin("tokens=3000 tps=100", more, headers);
  await until(() => service.engine.counts.requests > before && produced() > 20, 10_000, "some tokens");
  const answer = await cancel(begun.id);
  const receipt = await (await service.fetch(`/v1/service/requests/${begun.request}`)).json();
  return { answer, receipt, ended: await settled(begun) };
}

/** What GET returns for a response that has ended and was settled, and what the response was charged. */
async function settled({ id, request }: { id: string; request: string }) {
  await over(id);
  const { outcome, usage, cost } = await endedReceipt(service, request);
  const { status, output } = await fetched(id);
  return { status, outcome, text: textOf(output), charged: nanosOf(cost.charged), output_tokens: usage.output_tokens };
}

describe.each([false, true])("streamed: %p", (stream) => {
  test("one whose engine breaks is charged for its text", async () => {
    const ended = await settled(await begin("tokens=60 tps=100 error-after=25", { stream }));
    expect(ended).toMatchObject({ status: "failed", outcome: "failed", output_tokens: 25 });
    expect(tokens(ended.text)).toHaveLength(25);
    expect(ended.charged).toBeGreaterThan(0);
  });

  test("one that is cancelled is charged for its text, which the answer to that has, too", async () => {
    const { answer, receipt, ended } = await cancelledAmid({ stream });
    // The answer comes after the settlement, so its text is what was charged.
    expect(receipt).toMatchObject({ outcome: "cancelled", ended_at: expect.any(String) });
    expect(ended).toMatchObject({ status: "cancelled", outcome: "cancelled" });
    expect([answer.status, textOf(answer.output)]).toEqual(["cancelled", ended.text]);
    expect(tokens(ended.text).length).toBe(ended.output_tokens);
    expect(ended.output_tokens).toBeGreaterThan(15);
  });

  test("one that outgrows its log, and is cancelled, is charged nothing: nobody can read it", async () => {
    const begun = await begin("tokens=16000 tps=1000", { stream });
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
  const { ended } = await cancelledAmid({}, withKey());
  expect(ended).toMatchObject({ status: "cancelled", text: "", charged: 0 });
  const whole = await settled(await begin("tokens=30 tps=100", {}, withKey()));
  expect(whole).toMatchObject({ status: "completed", outcome: "completed", output_tokens: 30 });
});

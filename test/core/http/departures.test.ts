/**
 * A client that leaves, on each protocol, streaming or not, before the first byte, in the middle, or after the last:
 * its engine is released within a second, and one record is written within two, with the tokens that were produced
 * until then. Each admitted request leaves exactly one record, however it ended.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { errorOf, eventsOf, inferenceBodies, model, says, startService, words } from "../../harness/engine.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";
import { leftAt } from "./leaving.ts";

setDefaultTimeout(60_000);

/**
 * At this many tokens a second, the engine generates at most `tokens_in_flight` while the news of a departure is on its
 * way.
 */
const pace = 100;
const tokens_in_flight = 10;

const service = await startService({ engine: { directives: "", namesModel: false } });
afterAll(() => service.stop());

const kinds = Object.entries(inferenceBodies).flatMap(([path, body]) =>
  [true, false].map((stream) => [stream ? "a stream" : "an unstreamed answer", path, stream, body] as const),
);
describe.each(kinds)("%s of %s", (_, path, stream, body) => {
  /** Leaves the answer when the engine has produced `tokens` tokens of it. */
  const left = async (directives: string, tokens: number) => {
    const { engine, receipt } = await leftAt(service, path, body, directives, { stream, tokens });
    await until(() => engine.ended === "client-left", 1000, "the engine to be let go");
    return { engine, receipt: await receipt() };
  };

  test("before the first byte: the input alone", async () => {
    const { receipt } = await left("ttft=20000", 0);
    expect(receipt).toMatchObject({ outcome: "cancelled", stream, usage: { output_tokens: 0, source: "estimated" } });
    expect(receipt.usage.input_tokens).toBeGreaterThan(0);
  });

  test("in the middle: as much as was produced", async () => {
    const { engine, receipt } = await left(`tps=${pace} tokens=5000`, 20);
    const { outcome, usage } = receipt;
    expect(outcome).toBe("cancelled");
    expect(usage.output_tokens).toBeLessThanOrEqual(engine.tokens);
    expect(engine.tokens - usage.output_tokens).toBeLessThanOrEqual(tokens_in_flight * busyness());
  });

  test("after the last byte: all of it, once", async () => {
    const leaving = new AbortController();
    const response = await service.post(path, { model, ...body("tokens=40"), stream }, { signal: leaving.signal });
    await response.text();
    leaving.abort();
    const receipt = await endedReceipt(service, requestIdOf(response), { deadline_ms: 2000 });
    expect(receipt).toMatchObject({ outcome: "completed", usage: { output_tokens: 40, source: "reported" } });
    expect(service.engine.requests.at(-1)).toMatchObject({ ended: "complete", tokens: 40 });
  });
});

const chat = (body: object, init: RequestInit = {}) => service.post("/v1/chat/completions", { model, ...body }, init);

const settled = (id: string, deadline_ms = 2000) => endedReceipt(service, id, { deadline_ms });

describe("a record", () => {
  test("of an answer has the engine's counts, the prices and the sum", async () => {
    for (const stream of [false, true]) {
      const response = await chat({ messages: says("echo cached=4", words(30)), stream });
      await response.text();
      const receipt = await settled(requestIdOf(response));
      expect(receipt).toMatchObject({
        operation: "chat.completions",
        model,
        stream,
        outcome: "completed",
        attempts: 1,
        recovered: false,
        error_code: null,
      });
      const { input_tokens, cached_input_tokens, output_tokens, source } = receipt.usage;
      expect([cached_input_tokens, output_tokens, source]).toEqual([4, 30, "reported"]);
      expect(nanosOf(receipt.cost.charged)).toBe(input_tokens * 100 + 4 * 10 + 30 * 400);
      expect(nanosOf(receipt.cost.uncharged)).toBe(0);
    }
  });

  test("of an answer whose engine never reports says what the client was told", async () => {
    const response = await chat({
      messages: says("echo no-usage", words(25)),
      stream: true,
      stream_options: { include_usage: true },
    });
    const events = await eventsOf(response);
    const { usage } = JSON.parse(events.at(-2) ?? "");
    const receipt = await settled(requestIdOf(response));
    expect(receipt.usage).toMatchObject({ output_tokens: 25, source: "estimated" });
    expect(usage.completion_tokens).toBe(25);
    expect(usage.prompt_tokens).toBe(receipt.usage.input_tokens);
  });

  test("of a failure before any output charges nothing", async () => {
    for (const directive of ["status=500", "cut-after=0", "context-length"]) {
      const response = await chat({ messages: says(directive) });
      const receipt = await settled(requestIdOf(response));
      expect(receipt).toMatchObject({
        outcome: "failed",
        error_code: (await errorOf(response)).code,
        cost: { charged: dollars(0) },
      });
    }
  });

  test("of a stream that broke charges what came of it, token for token", async () => {
    // Sent at a slow pace, because a connection that breaks loses what was still on its way.
    const response = await chat({ messages: says("echo tps=50 cut-after=7", words(30)), stream: true });
    const received = (await response.text()).match(/"delta":\{"content":"[^"]/g)?.length ?? 0;
    const receipt = await settled(requestIdOf(response));
    expect(receipt).toMatchObject({ outcome: "failed", error_code: "upstream_unavailable" });
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThanOrEqual(7);
    expect(receipt.usage.output_tokens).toBe(received);
    expect(nanosOf(receipt.cost.charged)).toBeGreaterThanOrEqual(received * 400);
  });
});

test("a hundred requests at once, some failing, some leaving, leave a hundred records", async () => {
  const ids: string[] = [];
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const abort = new AbortController();
      const directive = ["echo", "echo cut-after=2", "status=500", "echo tps=50"][index % 4]!;
      const response = await chat(
        { messages: says(directive, words(20)), stream: index % 2 === 0 },
        { signal: abort.signal },
      );
      ids.push(requestIdOf(response));
      if (directive === "echo tps=50") abort.abort();
      await response.text().catch(() => {});
    }),
  );
  expect(new Set(ids).size).toBe(100);
  const receipts = await Promise.all(ids.map((id) => settled(id, 5000)));
  expect(receipts.filter((receipt) => receipt.outcome === "completed").length).toBeGreaterThanOrEqual(25);
  expect(receipts.every((receipt) => receipt.ended_at !== null)).toBe(true);
});

test("the usage read-out of an organization without limits is 0 percent, with three resets", async () => {
  const usage = (await (await service.fetch("/v1/service/usage")).json()) as Record<
    string,
    { usage_percent: number; reset_at: string }
  >;
  for (const window of ["session", "week", "month"]) {
    expect(usage[window]?.usage_percent).toBe(0);
    expect(Date.parse(usage[window]?.reset_at ?? "")).toBeGreaterThan(Date.now());
  }
  const again = await (await service.fetch("/v1/service/usage")).json();
  expect(again).toEqual(usage);
});

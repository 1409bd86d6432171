/**
 * A client that leaves, on each protocol, streaming or not, before the first byte, in the middle, or after the last:
 * its engine is released within a second, and one record is written within two, with the tokens that were produced
 * until then.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { inferenceBodies, model, startService } from "../../harness/engine.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

/**
 * At this many tokens a second, the engine generates at most `tokens_in_flight` while the news of a departure is on its
 * way.
 */
const pace = 100;
const tokens_in_flight = 10;

const service = await startService({ engine: { directives: "", namesModel: false } });
afterAll(() => service.stop());

/** The engine's latest request, once it has more than `before` requests. */
async function engineAfter(before: number) {
  await until(() => service.engine.counts.requests > before, 5000, "the engine to be asked");
  return service.engine.requests.at(-1)!;
}

const receiptOf = (id: string) => endedReceipt(service, id, { deadline_ms: 2000 });

/** The id of a request whose client left before it saw a byte. Only the log has that id. */
async function idInLog(from: number): Promise<string> {
  const id = () => /"request_id":"(req_\w+)"[^\n]*"outcome":"cancelled"/.exec(service.stderr().slice(from))?.[1];
  await until(() => id() !== undefined, 2000, "the line of the log");
  return id()!;
}

describe.each(Object.keys(inferenceBodies))("%s", (path) => {
  const ask = (directives: string, stream: boolean, signal?: AbortSignal) =>
    service.post(path, { model, ...inferenceBodies[path]!(directives), stream }, signal ? { signal } : {});

  for (const stream of [true, false]) {
    const kind = stream ? "a stream" : "an unstreamed answer";

    /** Leaves an answer when the engine has produced `tokens` tokens of it. */
    const leftAt = async (directives: string, tokens: number) => {
      const leaving = new AbortController();
      const [asked, logged] = [service.engine.counts.requests, service.stderr().length];
      const answer = ask(directives, stream, leaving.signal)
        .then((response) => response.text())
        .catch(() => null);
      const engine = await engineAfter(asked);
      await until(() => engine.tokens >= tokens, 5000, "some tokens");
      leaving.abort();
      expect(await answer).toBeNull();
      await until(() => engine.ended === "client-left", 1000, "the engine to be let go");
      return { engine, receipt: await receiptOf(await idInLog(logged)) };
    };

    test(`before the first byte of ${kind}: the input alone`, async () => {
      const { receipt } = await leftAt("ttft=20000", 0);
      expect(receipt).toMatchObject({ outcome: "cancelled", stream, usage: { output_tokens: 0, source: "estimated" } });
      expect(receipt.usage.input_tokens).toBeGreaterThan(0);
    });

    test(`in the middle of ${kind}: as much as was produced`, async () => {
      const { engine, receipt } = await leftAt(`tps=${pace} tokens=5000`, 20);
      const { outcome, usage } = receipt;
      expect(outcome).toBe("cancelled");
      expect(usage.output_tokens).toBeLessThanOrEqual(engine.tokens);
      expect(engine.tokens - usage.output_tokens).toBeLessThanOrEqual(tokens_in_flight);
    });

    test(`after the last byte of ${kind}: all of it, once`, async () => {
      const leaving = new AbortController();
      const response = await ask("tokens=40", stream, leaving.signal);
      await response.text();
      leaving.abort();
      const receipt = await receiptOf(requestIdOf(response));
      expect(receipt).toMatchObject({ outcome: "completed", usage: { output_tokens: 40, source: "reported" } });
      expect(service.engine.requests.at(-1)).toMatchObject({ ended: "complete", tokens: 40 });
    });
  }
});

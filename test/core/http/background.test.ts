/**
 * Background responses: their requests are answered at once; they run on by themselves and can be fetched, followed and
 * cancelled, by OpenAI's SDK. A response is charged up to the text that its GET returns, which counts as delivered,
 * whatever ended it, streamed or not. Without its log, it is charged for what was streamed until then, or to its client.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import OpenAI from "openai";
import { tokens } from "../../../src/features/simulator/text.ts";
import { textOf } from "../../faults/background-client.ts";
import { errorOf, model, says, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { newKey } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const service = await startService({
  engine: { directives: "", namesModel: false },
  more: "answers: { answer_bytes_max: 65536 }\nlimits: { first_event_hold_ms: 200 }",
});
const client = new OpenAI({ apiKey: service.key, baseURL: `${service.url}/v1`, maxRetries: 0 });
afterAll(() => service.stop());

interface Created {
  id: string;
  status: string;
  background: boolean;
  output: { content?: { text: string }[] }[];
}

const asked = (directives: string, more: object = {}) => ({
  ...{ model, input: says(directives), background: true as const },
  ...more,
});

const idIn = (text: string) => /"id":"(resp_[0-9a-f]{32})"/.exec(text)![1]!;

/** Reads a stream until `isEnough` is true of the text that has come, and then disconnects. */
async function readUntil(response: Response, isEnough: (text: string) => boolean): Promise<string> {
  let text = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (isEnough(text)) break;
  }
  return text;
}

/** Begins a response. The client of a streamed one disconnects when it has read the response's id. */
async function begin(directives: string, more: object = {}, headers: Record<string, string> = {}) {
  const response = await service.post("/v1/responses", asked(directives, more), { headers });
  expect(response.status).toBe(200);
  const text = await readUntil(response, (text) => /"id":"resp_\w{32}"/.test(text));
  return { id: idIn(text), request: requestIdOf(response) };
}

const fetched = async (id: string) => (await (await service.fetch(`/v1/responses/${id}`)).json()) as Created;
const cancel = async (id: string) => (await (await service.post(`/v1/responses/${id}/cancel`, {})).json()) as Created;

async function ended(id: string): Promise<Created> {
  let now = await fetched(id);
  const isOver = async () => {
    now = await fetched(id);
    return now.status !== "in_progress" && now.status !== "queued";
  };
  await until(isOver, 10_000, "the end of the response");
  return now;
}
const receiptOf = (id: string) => endedReceipt(service, id);

test("it answers at once, completes, is stored, charged, and gone on from", async () => {
  const response = await service.post("/v1/responses", asked("tokens=30 tps=30"));
  const { id, ...begun } = (await response.json()) as Created;
  expect([response.status, begun]).toMatchObject([200, { status: "in_progress", background: true, output: [] }]);
  expect((await fetched(id)).status).toBe("in_progress");
  const whole = await ended(id);
  expect(whole).toMatchObject({ id, status: "completed", background: true, output: [{ type: "message" }] });
  expect(tokens(textOf(whole.output))).toHaveLength(30);
  const charged = { outcome: "completed", usage: { output_tokens: 30 }, replay_of: null };
  expect(await receiptOf(requestIdOf(response))).toMatchObject(charged);
  const next = await service.post("/v1/responses", { model, input: "and?", previous_response_id: id });
  expect(next.status).toBe(200);
});

test("it ends as incomplete and as failed, too", async () => {
  const [incomplete, failed] = await Promise.all([
    begin("tokens=60 tps=100", { max_output_tokens: 20 }),
    begin("tokens=30 tps=30 error-after=5"),
  ]);
  const cut = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  expect(await ended(incomplete.id)).toMatchObject(cut);
  expect(await ended(failed.id)).toMatchObject({ status: "failed", error: { code: "server_error" } });
});

test("its input is told to come with its end, and not to have been deleted", async () => {
  const { id } = await begin("tokens=60 tps=100");
  const inputOf = async () => {
    const response = await service.fetch(`/v1/responses/${id}/input_items`);
    return [response.status, response.status === 200 ? null : await errorOf(response)];
  };
  const refused = { code: "response_not_found", message: expect.stringContaining("once it has ended") };
  expect(await inputOf()).toMatchObject([404, refused]);
  expect(await ended(id)).toMatchObject({ status: "completed" });
  expect(await inputOf()).toEqual([200, null]);
});

test("a HEAD of its stream has the stream's head, and leaves no request open", async () => {
  const { id } = await begin("tokens=2000 tps=50", { stream: true });
  const open = async () => {
    const metrics = await (await service.fetch("/metrics", { key: null })).text();
    return Number(/^\w*http_open_requests (\d+)$/m.exec(metrics)![1]);
  };
  const before = await open();
  for (let at = 0; at < 5; at++) {
    const head = await service.fetch(`/v1/responses/${id}?stream=true`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), await head.text()]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
      "",
    ]);
  }
  await until(async () => (await open()) <= before, 5_000, "the end of the HEAD requests");
  expect(await cancel(id)).toMatchObject({ status: "cancelled" });
});

test("it is cancelled, once and for all, and charged for what was produced", async () => {
  const before = service.engine.counts.requests;
  const { id, request } = await begin("tokens=2000 tps=50");
  await until(() => service.engine.counts.requests > before, 5_000, "the engine to be asked");
  const engine = service.engine.requests.at(-1)!;
  expect(await cancel(id)).toMatchObject({ id, status: "cancelled" });
  await until(() => engine.ended === "client-left", 2_000, "the engine to be let go");
  expect(await cancel(id)).toMatchObject({ status: "cancelled" });
  expect(await ended(id)).toMatchObject({ status: "cancelled" });
  expect(await receiptOf(request)).toMatchObject({ outcome: "cancelled" });
});

test("a refusal has its true status, and leaves no response", async () => {
  for (const [more, param] of [
    [{ store: false }, "background"],
    [{ model: "acme/none" }, "model"],
  ] as const) {
    const refused = await service.post("/v1/responses", asked("", more));
    expect([refused.status >= 400, (await errorOf(refused)).param]).toEqual([true, param]);
  }
});

test("only background responses are cancelled and followed", async () => {
  const stored = (await (await service.post("/v1/responses", { model, input: "x" })).json()) as Created;
  const cancelled = await service.post(`/v1/responses/${stored.id}/cancel`, {});
  expect([cancelled.status, (await errorOf(cancelled)).code]).toEqual([400, "invalid_value"]);
  const unknown = await service.post(`/v1/responses/resp_${"0".repeat(32)}/cancel`, {});
  expect([unknown.status, (await errorOf(unknown)).code]).toEqual([404, "response_not_found"]);
  for (const id of [stored.id, (await begin("tokens=3")).id]) {
    const followed = await service.fetch(`/v1/responses/${id}?stream=true`);
    expect([followed.status, (await errorOf(followed)).code]).toEqual([400, "unsupported_feature"]);
  }
});

type Event = { type: string; sequence_number: number; response?: { id: string } };
/** The first `count` events of a stream that OpenAI's SDK has begun. */
async function some(directives: string, count: number): Promise<Event[]> {
  const stream = await client.responses.create({ ...asked(directives), stream: true } as never);
  const seen: Event[] = [];
  for await (const event of stream as unknown as AsyncIterable<Event>) if (seen.push(event) === count) break;
  return seen;
}

test("OpenAI's SDK creates, loses, follows and fetches a streamed one, without a gap", async () => {
  const seen = await some("tokens=40 tps=40", 12);
  const { id } = seen[0]!.response!;
  const after = { stream: true, starting_after: seen.at(-1)!.sequence_number };
  const rest = await client.responses.retrieve(id, after as never);
  for await (const event of rest as unknown as AsyncIterable<Event>) seen.push(event);
  expect(seen.map(({ sequence_number }) => sequence_number)).toEqual(seen.map((_, index) => index));
  expect(seen.at(-1)!.type).toBe("response.completed");
  expect((await client.responses.retrieve(id)).output_text).toContain("simulator");
});

test("OpenAI's SDK cancels a streamed one, and deletes it", async () => {
  const [created] = await some("tokens=2000 tps=50", 1);
  const { id } = created!.response!;
  expect((await client.responses.cancel(id)).status).toBe("cancelled");
  expect((await client.responses.retrieve(id)).status).toBe("cancelled");
  await client.responses.delete(id);
  expect((await service.fetch(`/v1/responses/${id}`)).status).toBe(404);
});

describe("with an idempotency key", () => {
  const newKey = () => `key ${crypto.randomUUID()}`;
  const repeated = (key: string, directives: string, more: object = {}) =>
    service.post("/v1/responses", asked(directives, more), { headers: { "idempotency-key": key } });
  const replayOf = (response: Response) => response.headers.get("x-service-replay-of");

  test("a repeat gets the same response, as it stands, and no engine is asked again", async () => {
    const key = newKey();
    const before = service.engine.counts.requests;
    const first = await repeated(key, "tokens=30 tps=30");
    const begun = (await first.json()) as Created;
    const running = await repeated(key, "tokens=30 tps=30");
    expect([running.status, replayOf(running)]).toEqual([200, requestIdOf(first)]);
    expect(await running.json()).toMatchObject({ id: begun.id, status: "in_progress" });
    await ended(begun.id);
    const over = await repeated(key, "tokens=30 tps=30");
    expect(await over.json()).toMatchObject({ id: begun.id, status: "completed", output: [{ type: "message" }] });
    expect(service.engine.counts.requests).toBe(before + 1);
    expect(nanosOf((await receiptOf(requestIdOf(over))).cost.charged)).toBe(0);
    const other = await repeated(key, "tokens=31 tps=30");
    expect([other.status, (await errorOf(other)).code]).toEqual([400, "idempotency_key_reused"]);
  });

  test("many that come at once are one response", async () => {
    const key = newKey();
    const all = await Promise.all(Array.from({ length: 8 }, () => repeated(key, "tokens=20 tps=30")));
    const ids = await Promise.all(all.map(async (one) => ((await one.json()) as Created).id));
    expect(new Set(ids).size).toBe(1);
    expect(all.filter((one) => replayOf(one) === null)).toHaveLength(1);
  });

  test("a stream is repeated from its first byte, and one that failed with its failure", async () => {
    for (const directives of ["tokens=20 tps=40", "tokens=30 tps=60 error-after=10"]) {
      const key = newKey();
      const first = await repeated(key, directives, { stream: true });
      const text = await first.text();
      const again = await repeated(key, directives, { stream: true });
      expect([await again.text(), replayOf(again)]).toEqual([text, requestIdOf(first)]);
    }
  });

  test("the key of one that failed is free, and so is that of one that was refused; the failed one can be fetched", async () => {
    const key = newKey();
    const failed = (await (await repeated(key, "tokens=30 tps=60 error-after=5")).json()) as Created;
    expect((await ended(failed.id)).status).toBe("failed");
    const again = await repeated(key, "tokens=30 tps=60 error-after=5");
    expect([replayOf(again), ((await again.json()) as Created).id === failed.id]).toEqual([null, false]);
    expect((await fetched(failed.id)).status).toBe("failed");
    const refused = newKey();
    expect((await repeated(refused, "", { model: "acme/none" })).status).toBe(404);
    expect((await repeated(refused, "tokens=3")).status).toBe(200);
  });

  test("the key of a stream that failed before its first part is free, and the failed response can be fetched", async () => {
    for (const directives of ["status=400", "slow-headers=500 status=400"]) {
      const key = newKey();
      const before = service.engine.counts.requests;
      const text = await (await repeated(key, directives, { stream: true })).text();
      const id = /"id":"(resp_[0-9a-f]{32})"/.exec(text)?.[1];
      if (id) expect((await ended(id)).status).toBe("failed");
      const isFree = async () => {
        const again = await repeated(key, directives, { stream: true });
        await again.text();
        return replayOf(again) === null;
      };
      await until(isFree, 5_000, "the key to be free");
      expect(service.engine.counts.requests).toBe(before + 2);
    }
  });

  test("a cancelled one stays cancelled", async () => {
    const key = newKey();
    const { id } = (await (await repeated(key, "tokens=2000 tps=50")).json()) as Created;
    await cancel(id);
    expect(await (await repeated(key, "tokens=2000 tps=50")).json()).toMatchObject({ id, status: "cancelled" });
  });
});

test("one whose key is revoked fails with the true reason", async () => {
  const { id: keyId, key } = await newKey(service, service.organization);
  const create = (stream: boolean) => service.post("/v1/responses", asked("tokens=16000 tps=50", { stream }), { key });
  const whole = ((await (await create(false)).json()) as Created).id;
  const streamed = idIn(await readUntil(await create(true), (text) => text.includes("output_text.delta")));
  await service.json("key", "revoke", keyId);
  for (const id of [whole, streamed]) {
    const now = await ended(id);
    expect(now).toMatchObject({ status: "failed" });
    expect(JSON.stringify(now)).not.toContain("node that wrote it");
  }
});

test("one that is too large for its log goes on, and is stored", async () => {
  const stream = await service.post("/v1/responses", asked("tokens=2000", { stream: true }));
  const text = await stream.text();
  expect(text.length).toBeGreaterThan(65_536);
  expect(text).toContain("event: response.completed");
  const id = idIn(text);
  expect(await ended(id)).toMatchObject({ id, status: "completed" });
});

test("one that is too large for its log goes on when its client leaves", async () => {
  const stream = await service.post("/v1/responses", asked("tokens=2000 tps=1000", { stream: true }));
  const id = idIn(await readUntil(stream, (text) => text.length > 100_000));
  expect(await ended(id)).toMatchObject({ id, status: "completed" });
});

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
  await ended(id);
  const { outcome, usage, cost } = await receiptOf(request);
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
    // The answer to the cancellation is sent after the settlement, so its text is the text that was charged.
    expect(receipt).toMatchObject({ outcome: "cancelled", ended_at: expect.any(String) });
    expect(ended).toMatchObject({ status: "cancelled", outcome: "cancelled" });
    expect([answer.status, textOf(answer.output)]).toEqual(["cancelled", ended.text]);
    expect(tokens(ended.text).length).toBe(ended.output_tokens);
    expect(ended.output_tokens).toBeGreaterThan(15);
  });
});

describe("one that outgrows its log", () => {
  const deltasIn = (text: string) => text.split("event: response.output_text.delta").length - 1;
  /** Streams a response, to a client that reads until the text has this many characters. */
  async function streamed(directives: string, { headers = {}, characters_max = 100_000 } = {}) {
    const leaving = new AbortController();
    const { signal } = leaving;
    const response = await service.post("/v1/responses", asked(directives, { stream: true }), { headers, signal });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const read = async (characters_max: number) => {
      while (text.length < characters_max) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
      }
      return deltasIn(text);
    };
    const readTokens = await read(characters_max);
    return { id: idIn(text), request: requestIdOf(response), readTokens, read, leave: () => leaving.abort() };
  }

  test("and is not streamed, and cancelled, is charged nothing: nobody can read it", async () => {
    const begun = await begin("tokens=16000 tps=1000");
    await until(() => produced() > 2_000, 20_000, "more than its log takes");
    await cancel(begun.id);
    expect(await settled(begun)).toMatchObject({ status: "cancelled", text: "", charged: 0 });
  });

  test("and whose client has left at once, is charged for what could be followed until then", async () => {
    const begun = await streamed("tokens=16000 tps=1000", { characters_max: 1_000 });
    begun.leave();
    await until(() => produced() > 2_000, 20_000, "more than its log takes");
    await cancel(begun.id);
    const ended = await settled(begun);
    expect(ended.output_tokens).toBeGreaterThan(50);
    expect(ended.output_tokens).toBeLessThan(1_000);
  });

  test.each([{}, { "idempotency-key": crypto.randomUUID() }])(
    "and is cancelled while its client reads it, is charged for what its client got: %p",
    async (headers) => {
      const begun = await streamed("tokens=16000 tps=1000", { headers });
      await cancel(begun.id);
      const ended = await settled(begun);
      const got = await begun.read(Number.POSITIVE_INFINITY);
      expect(ended).toMatchObject({ status: "cancelled", outcome: "cancelled" });
      expect(ended.charged).toBeGreaterThan(0);
      expect(ended.output_tokens).toBeGreaterThanOrEqual(begun.readTokens);
      expect(ended.output_tokens).toBeLessThanOrEqual(got);
    },
  );

  test("and is cancelled after its client has left, is charged for what its client got", async () => {
    const begun = await streamed("tokens=16000 tps=1000");
    begun.leave();
    const left = produced();
    await until(() => produced() > left + 1_000, 20_000, "more than the client got");
    await cancel(begun.id);
    const { output_tokens } = await settled(begun);
    expect(output_tokens).toBeGreaterThanOrEqual(begun.readTokens);
    expect(output_tokens).toBeLessThan(left + 500);
  });

  test("and whose engine breaks, is charged for what its client got", async () => {
    const begun = await streamed("tokens=3000 tps=1000 error-after=1500");
    const got = await begun.read(Number.POSITIVE_INFINITY);
    const ended = await settled(begun);
    expect(ended).toMatchObject({ status: "failed", outcome: "failed" });
    expect(ended.output_tokens).toBeGreaterThan(got - 100);
    expect(ended.output_tokens).toBeLessThanOrEqual(got);
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

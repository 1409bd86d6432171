/**
 * An answer that its client does not stream, with a cap above `unstreamed_tokens_max`. The engine is asked for it
 * unstreamed on three conditions:
 * - by its measured speed, it finishes such an answer in ten seconds;
 * - it stops for a client that leaves;
 * - the hold is slight: at most a hundredth of what is left of each window.
 */
import { afterAll, expect, test } from "bun:test";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import type { Route } from "../../../src/core/routing/catalog.ts";
import { client } from "../../../src/core/upstream/http1/client.ts";
import { Attempts, type AttemptsParts } from "../../../src/core/usage/attempts.ts";
import type { RunRequest } from "../../../src/core/usage/record.ts";
import { WholeAnswers } from "../../../src/core/usage/whole-answers.ts";
import { attemptsParts, recordOf } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { modelOf, routeTo, upstreamOf } from "../routing/models.ts";
import { attempting, eventsOf } from "./attempting.ts";

/**
 * An engine whose answer says whether it was asked for a stream (`streamed`) or not (`whole`); it reports 100 tokens.
 */
const engine = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { stream } = (await request.json()) as { stream?: boolean };
    const usage = { prompt_tokens: 9, completion_tokens: 100 };
    const text = { content: stream ? "streamed" : "whole" };
    if (!stream) return Response.json({ choices: [{ message: text, finish_reason: "stop" }], usage });
    const chunk = { choices: [{ delta: text, finish_reason: "stop" }], usage };
    return new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, {
      headers: { "content-type": "text/event-stream" },
    });
  },
});
const engines = client();
afterAll(async () => {
  engines.close();
  await engine.stop(true);
});

const route = routeTo(upstreamOf(`http://127.0.0.1:${engine.port}/v1`));
const [cap, key] = [4096, "key_1"];

/** The speeds learned from eight (`times`) answers, each with `tokens` tokens in `ms` milliseconds. */
function taught(tokens: number, ms: number, { times = 8, now_ms = 0, whole = new WholeAnswers() } = {}): WholeAnswers {
  for (let time = 0; time < times; time++) ended(whole, { reported: tokens, ms }, now_ms);
  return whole;
}

function ended(
  whole: WholeAnswers,
  more: Partial<Parameters<WholeAnswers["ended"]>[0]> & { ms: number },
  now_ms = 0,
): void {
  whole.ended({ route, keyId: key, reported: null, quickTokens: null, isLeft: false, ...more }, now_ms);
}

const fast = () => taught(1000, 2000);

interface Asking {
  /** The request's own cap on its output; null if it has none. */
  outputTokens_max?: number | null;
  isSlight?: boolean;
  stream?: boolean;
  parts?: Partial<AttemptsParts>;
  at?: Route;
  more?: Partial<RunRequest>;
}

/** The way in which the engine was asked, as its answer says: `streamed` or `whole`. */
async function way({
  outputTokens_max: capped = cap,
  isSlight = true,
  stream = false,
  parts,
  at = route,
  more,
}: Asking = {}) {
  const model = modelOf([at], { outputTokens_max: cap });
  const request = saying("hi", { model: model.id, stream, ...(capped === null ? {} : { outputTokens_max: capped }) });
  const all = attemptsParts({ client: engines, wholeAnswers: fast(), now_ms: () => 0, ...parts });
  const room = { allowed: cap, held: cap, isSlight };
  const told = await eventsOf(new Attempts(all, attempting(recordOf(model, request, more), { room })));
  return told.map((event) => (event.type === "part-delta" ? event.delta : "")).join("");
}

test("an engine whose speed is not known is asked streamed, and one that is fast enough whole", async () => {
  expect(await way()).toBe("whole");
  expect(await way({ parts: { wholeAnswers: new WholeAnswers() } })).toBe("streamed");
  expect(await way({ parts: { wholeAnswers: taught(1000, 2000, { times: 7 }) } })).toBe("streamed");
});

test("only where the hold is slight, and the request has a cap of its own, of which the engine is told", async () => {
  expect(await way({ isSlight: false })).toBe("streamed");
  expect(await way({ outputTokens_max: null })).toBe("streamed");
});

test("a setting of 0 turns it off, and a cap up to the setting needs none of it", async () => {
  const parts = { settings: () => ({ unstreamed_tokens_max: 0 }) };
  expect(await way({ parts })).toBe("streamed");
  const nothing = { wholeAnswers: new WholeAnswers() };
  expect(await way({ parts: nothing, outputTokens_max: 512, isSlight: false })).toBe("whole");
  expect(await way({ parts: nothing, outputTokens_max: 513 })).toBe("streamed");
});

test("what is streamed to its client, and a background response, is asked streamed", async () => {
  expect(await way({ stream: true })).toBe("streamed");
  const fetched = { asProduced: false, isKept: true, isStreamed: false, delivered: async () => true };
  expect(await way({ more: { fetched } })).toBe("streamed");
});

test("an engine that does not stop for a client that leaves is asked streamed", async () => {
  const at = { ...route, upstream: { ...route.upstream, dialect: dialects.transformers } };
  expect(await way({ at })).toBe("streamed");
});

test("the answers of an engine teach its speed, however it was asked", async () => {
  const parts = { wholeAnswers: new WholeAnswers() };
  const ways: string[] = [];
  for (let time = 0; time < 10; time++) ways.push(await way({ parts }));
  expect(ways).toEqual([...Array(8).fill("streamed"), "whole", "whole"]);
});

test("it must finish the request's own cap in ten seconds, that before the first token included", () => {
  const whole = taught(1000, 5000);
  expect(whole.mayBeWhole(route, key, 2000, 0)).toBe(true);
  expect(whole.mayBeWhole(route, key, 2001, 0)).toBe(false);
});

test("each route has a speed of its own", () => {
  expect(fast().mayBeWhole({ ...route, model: "other" }, key, cap, 0)).toBe(false);
});

test("a short answer shows that an engine is fast, not that it is slow; a very short one neither", () => {
  expect(taught(16, 16).mayBeWhole(route, key, cap, 0)).toBe(true);
  expect(taught(15, 15).mayBeWhole(route, key, cap, 0)).toBe(false);
  const whole = fast();
  ended(whole, { reported: 63, ms: 6_300 });
  expect(whole.mayBeWhole(route, key, cap, 0)).toBe(true);
  ended(whole, { reported: 64, ms: 6_400 });
  expect(whole.mayBeWhole(route, key, cap, 0)).toBe(false);
});

test("a speed errs low: one slow answer among many fast ones counts", () => {
  const whole = taught(1000, 1000, { times: 100 });
  ended(whole, { reported: 1000, ms: 6000 });
  expect(whole.mayBeWhole(route, key, cap, 0)).toBe(false);
  taught(1000, 1000, { whole, times: 8 });
  expect(whole.mayBeWhole(route, key, cap, 0)).toBe(false);
  taught(1000, 1000, { whole, times: 8 });
  expect(whole.mayBeWhole(route, key, cap, 0)).toBe(true);
});

test("a speed is forgotten after ten minutes without an answer, and measured again", () => {
  const whole = fast();
  expect(whole.mayBeWhole(route, key, cap, 600_000)).toBe(true);
  expect(whole.mayBeWhole(route, key, cap, 600_001)).toBe(false);
  taught(1000, 2000, { whole, times: 7, now_ms: 600_001 });
  expect(whole.mayBeWhole(route, key, cap, 600_001)).toBe(false);
  ended(whole, { reported: 1000, ms: 2000 }, 600_001);
  expect(whole.mayBeWhole(route, key, cap, 600_001)).toBe(true);
});

const left = { quickTokens: cap, ms: 10_000, isLeft: true };

test("an engine that did not finish in time is as fast as its whole cap in that time, and no faster", () => {
  const whole = taught(1000, 2430);
  expect(whole.mayBeWhole(route, key, cap, 0)).toBe(true);
  ended(whole, { quickTokens: cap, ms: 30_000 });
  expect(whole.mayBeWhole(route, key, cap, 0)).toBe(false);
});

test("a client that left two such answers within a minute is asked streamed for a minute, and no other client is", () => {
  const whole = taught(1000, 1000, { now_ms: 1_000 });
  ended(whole, left, 1_000);
  expect(whole.mayBeWhole(route, key, cap, 1_000)).toBe(true);
  ended(whole, left, 61_000);
  const again = () => taught(1000, 1000, { whole, times: 100, now_ms: 121_000 });
  again();
  expect(whole.mayBeWhole(route, key, cap, 61_000)).toBe(false);
  expect(whole.mayBeWhole(route, "key_2", cap, 61_000)).toBe(true);
  expect(whole.mayBeWhole(route, key, cap, 121_000)).toBe(false);
  expect(whole.mayBeWhole(route, key, cap, 121_001)).toBe(true);
});

test("answers that were finished, that the service ended, or that are further apart, count against no client", () => {
  const whole = taught(1000, 1000);
  ended(whole, { ...left, reported: 1000, ms: 1000 });
  ended(whole, { ...left, ms: 9_999 });
  ended(whole, { ...left, isLeft: false });
  ended(whole, left, 0);
  ended(whole, left, 60_001);
  taught(1000, 1000, { whole, times: 100, now_ms: 60_001 });
  expect(whole.mayBeWhole(route, key, cap, 60_001)).toBe(true);
});

import { afterAll, describe, expect, test } from "bun:test";
import { startSimulator } from "../../harness/simulator.ts";
import { until } from "../../harness/until.ts";
import { gathered, jsonOf, post, said, streamed, whole } from "./ask.ts";

const simulator = await startSimulator();
afterAll(() => simulator.stop());

const cue = (words: string) => said(`Hello [simulator: ${words}]`);
const last = () => simulator.requests.at(-1)!;

describe("instead of an answer", () => {
  test.each([false, true])("a status, with retry-after (stream: %p)", async (stream) => {
    const response = await post(simulator, { ...cue("status=429 retry-after=7"), stream });
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("7");
    const { error } = await jsonOf(response);
    expect(error).toMatchObject({ type: "rate_limit_error", param: null, code: "rate_limit_exceeded" });
  });

  test("engines' forms of errors", async () => {
    const body = async (quirk: string) => jsonOf(post(simulator, cue(`status=503 quirk=${quirk}`)));
    expect(await body("integer-code")).toMatchObject({ error: { code: 503, message: expect.any(String) } });
    expect(await body("detail-error")).toEqual({ detail: expect.any(String) });
    expect(await body("object-error")).toMatchObject({ object: "error", message: expect.any(String) });
  });

  test("an HTML page", async () => {
    const response = await post(simulator, cue("html-error"));
    expect([response.status, response.headers.get("content-type")]).toEqual([502, "text/html"]);
    expect(await response.text()).toStartWith("<html>");
    expect((await post(simulator, cue("html-error=504 retry-after=3"))).headers.get("retry-after")).toBe("3");
  });

  test("a context that is too small", async () => {
    const response = await post(simulator, cue("context-length"));
    expect(response.status).toBe(400);
    expect((await jsonOf(response)).error).toMatchObject({ code: "context_length_exceeded", param: "messages" });
  });

  test("the wrong content type on the right body", async () => {
    const response = await post(simulator, { ...cue("wrong-content-type"), stream: true });
    expect(response.headers.get("content-type")).toBe("text/plain");
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
  });

  test("headers that come late", async () => {
    const start_ms = performance.now();
    expect((await post(simulator, cue("slow-headers=120"))).status).toBe(200);
    expect(performance.now() - start_ms).toBeGreaterThanOrEqual(120);
  });
});

describe("in the middle of a stream", () => {
  test.each([0, 5, 100_000])("cut after %p tokens: the connection breaks", async (after) => {
    const { chunks, data, broken } = await streamed(simulator, cue(`cut-after=${after} tokens=9`)).catch(() => ({
      chunks: [],
      data: [],
      broken: true,
    }));
    expect(broken).toBe(true);
    expect(data).not.toContain("[DONE]");
    expect(gathered(chunks).finish).toBe(null);
    expect(chunks.filter((chunk) => chunk.choices[0].delta.content)).toHaveLength(Math.min(after, 9));
    expect(last()).toMatchObject({ ended: "cut", tokens: Math.min(after, 9) });
  });

  test.each([
    ["stall", true, 0],
    ["stall-after=5", true, 5],
    ["ttft=60000", true, 0],
    ["stall", false, 0],
  ])("%s (stream: %p): the head comes, and %p tokens, until the client leaves", async (fault, stream, tokens) => {
    const leaving = new AbortController();
    const response = await post(simulator, { ...cue(fault), stream }, { signal: leaving.signal });
    expect(response.status).toBe(200);
    await until(() => last().tokens === tokens);
    expect(last().ended).toBe(null);
    leaving.abort();
    await until(() => last().ended === "client-left");
    expect(last().tokens).toBe(tokens);
  });

  test("a fault that is set beyond the end comes before the end", async () => {
    const { chunks } = await streamed(simulator, cue("error-after=100000 tokens=9"));
    expect(chunks.filter((chunk) => chunk.choices?.[0]?.delta.content)).toHaveLength(9);
    expect(chunks.at(-1).error.message).toContain("Simulator");
    expect(gathered(chunks.slice(0, -1)).finish).toBe(null);
  });

  test("a fault comes before a chunk that would go beyond its tokens", async () => {
    const { chunks } = await streamed(simulator, cue("error-after=5 tokens=9 per-chunk=3"));
    expect(chunks.filter((chunk) => chunk.choices?.[0]?.delta.content)).toHaveLength(1);
    expect(chunks.at(-1).error.message).toContain("Simulator");
  });

  test("an event that is not JSON", async () => {
    const { data, chunks } = await streamed(simulator, cue("malformed-after=3"));
    expect(() => JSON.parse(data[4]!)).toThrow();
    expect(chunks.length).toBe(data.length - 2);
  });

  test("an error object, and then the end", async () => {
    const { chunks, data } = await streamed(simulator, cue("error-after=3"));
    expect(chunks).toHaveLength(5);
    expect(chunks[4].error.message).toContain("Simulator");
    expect(data.at(-1)).toBe("[DONE]");
    expect((await streamed(simulator, cue("error-after=3 no-done"))).data).toHaveLength(5);
  });

  test("no end", async () => {
    const unfinished = await streamed(simulator, cue("no-finish"));
    expect(gathered(unfinished.chunks).finish).toBe(null);
    expect(unfinished.data.at(-1)).toBe("[DONE]");
    const undone = await streamed(simulator, cue("no-done"));
    expect(gathered(undone.chunks).finish).toBe("stop");
    expect(undone.data).not.toContain("[DONE]");
    expect(undone.broken).toBe(false);
    const uncounted = await streamed(simulator, { ...cue("no-usage"), stream_options: { include_usage: true } });
    expect(uncounted.text).not.toContain("usage");
    expect(await whole(simulator, cue("no-usage"))).not.toHaveProperty("usage");
  });

  test("another finish_reason", async () => {
    expect(gathered((await streamed(simulator, cue("finish=content_filter"))).chunks).finish).toBe("content_filter");
  });
});

describe("where the answer is not streamed", () => {
  test("a cut leaves half a body and a broken connection", async () => {
    const response = await post(simulator, cue("cut-after=5"));
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    await until(() => last().ended === "cut");
  });

  test("a malformed body is not JSON, an error is a status", async () => {
    await expect((await post(simulator, cue("malformed-after=1"))).json()).rejects.toThrow();
    expect((await post(simulator, cue("error-after=1"))).status).toBe(500);
  });
});

describe("directives", () => {
  test("an unknown one answers 400 and lists the known ones", async () => {
    const response = await post(simulator, cue("stattus=503"));
    expect(response.status).toBe(400);
    const { error } = await jsonOf(response);
    expect(error.code).toBe("unknown_directive");
    expect(error.message).toContain("“stattus”");
    expect(error.message).toContain("retry-after");
    const quirk = await jsonOf(post(simulator, cue("quirk=none")));
    expect(quirk.error.message).toContain("split-utf8");
  });

  const misused =
    "status status= status=200 status=503.5 tps=-1 tokens=9999999 echo=1 ttft=1e3 call= call=x: call=x:!! call=x:e30=:y";

  test.each(misused.split(" "))("one that is misused answers 400 and says how it is written: %s", async (words) => {
    const response = await post(simulator, cue(words));
    expect(response.status).toBe(400);
    expect((await jsonOf(response)).error.code).toBe("invalid_directive");
  });

  test("in a header, in several brackets, in the options; the request's own come last", async () => {
    const header = await post(simulator, said("x"), { headers: { "x-simulator": "status=418" } });
    expect(header.status).toBe(418);
    expect((await post(simulator, said("[simulator: status=500] and [Simulator: status=503]"))).status).toBe(503);
    const faulty = await startSimulator({ directives: "tokens=3, status=500" });
    expect((await post(faulty, said("x"))).status).toBe(500);
    expect((await post(faulty, said("[simulator: status=503]"))).status).toBe(503);
    await faulty.stop();
    await expect(startSimulator({ directives: "nonsense" })).rejects.toThrow("nonsense");
  });

  test("only the last user message counts", async () => {
    const messages = [
      { role: "user", content: "[simulator: status=500]" },
      { role: "assistant", content: "[simulator: status=501]" },
      { role: "user", content: "Again, please" },
    ];
    expect((await post(simulator, { messages })).status).toBe(200);
  });

  test("a text full of openings costs no more than its length", async () => {
    expect((await post(simulator, said("[simulator:".repeat(200_000)))).status).toBe(200);
  });
});

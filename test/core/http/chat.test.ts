/** POST /v1/chat/completions: what a client may rely on, streamed and not, in front of an engine over HTTP. */
import { afterAll, describe, expect, test } from "bun:test";
import { errorOf, eventsOf, model, plainModel, refusalOf, says, startService, words } from "../../harness/engine.ts";

const service = await startService();
afterAll(() => service.stop(), 60_000);

const chat = (body: object) => service.post("/v1/chat/completions", { model, ...body });
// biome-ignore lint/suspicious/noExplicitAny: answers are held against the contract by the harness
const answer = async (body: object): Promise<any> => (await chat(body)).json();
const asked = () => service.engine.requests.at(-1)?.body as Record<string, unknown>;

test("an answer with a small cap comes from the engine in one piece, else as a stream, and the client sees no difference", async () => {
  await answer({ messages: says(""), max_tokens: 16 });
  expect(asked().stream).toBe(false);
  await answer({ messages: says("") });
  expect(asked()).toMatchObject({ stream: true, stream_options: { include_usage: true } });
});

describe("a stream", () => {
  test("opens with the role, ends with a reason, exactly one [DONE], and no usage that nobody asked for", async () => {
    const response = await chat({ messages: says("", words(5)), stream: true });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const events = await eventsOf(response);
    expect(events.filter((data) => data === "[DONE]")).toHaveLength(1);
    expect(events.at(-1)).toBe("[DONE]");
    const chunks = events.slice(0, -1).map((data) => JSON.parse(data));
    expect(chunks[0].choices[0].delta).toEqual({ role: "assistant", content: "" });
    expect(chunks.at(-1).choices[0].finish_reason).toBe("stop");
    expect(chunks.every((chunk) => !("usage" in chunk) && chunk.choices.length === 1)).toBe(true);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  });

  test("refused by the engine has its true status, and a body", async () => {
    for (const [directive, status, code] of [
      ["status=503", 503, "overloaded"],
      ["status=500", 503, "upstream_unavailable"],
      ["status=401", 503, "upstream_unavailable"],
      ["status=404", 503, "upstream_unavailable"],
      ["status=429 retry-after=7", 429, "capacity_exceeded"],
      ["context-length", 400, "context_length_exceeded"],
      ["html-error", 503, "upstream_unavailable"],
      ["wrong-content-type", 503, "upstream_unavailable"],
      ["cut-after=0", 503, "upstream_unavailable"],
      ["malformed-after=0", 503, "upstream_unavailable"],
      ["error-after=0", 503, "upstream_unavailable"],
    ] as const) {
      for (const stream of [true, false]) {
        const response = await chat({ messages: says(directive), stream });
        expect([directive, response.status]).toEqual([directive, status]);
        if (status === 503 || status === 429) expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
        if (status === 429) expect(response.headers.get("retry-after")).toBe("7");
        expect(await errorOf(response)).toMatchObject({ code, request_id: response.headers.get("x-request-id") });
      }
    }
  });

  test("broken in the middle ends with an error and one [DONE], and never with a finish_reason", async () => {
    for (const directive of ["tps=100 cut-after=3", "malformed-after=3", "error-after=3", "no-finish no-done"]) {
      const events = await eventsOf(await chat({ messages: says(directive, words(10)), stream: true }));
      expect(events.at(-1)).toBe("[DONE]");
      expect(JSON.parse(events.at(-2) ?? "")).toMatchObject({ error: { code: "upstream_unavailable" } });
      expect(events.join("")).not.toContain('"finish_reason":"');
      const whole = await chat({ messages: says(directive, words(10)) });
      expect(whole.status).toBe(503);
    }
  });
});

test("explicit nulls equal absent", async () => {
  const names = ["temperature", "stop", "tools", "stream", "max_tokens", "response_format"];
  const response = await chat({ messages: says(""), ...Object.fromEntries(names.map((name) => [name, null])) });
  expect(response.status).toBe(200);
  expect(asked()).not.toHaveProperty("temperature");
});

test("a capability that the model lacks is refused by name, before any upstream is asked", async () => {
  const before = service.engine.counts.requests;
  const image = { type: "image_url", image_url: { url: "https://x.test/a.png" } };
  for (const [body, param] of [
    [{ messages: says(""), tools: [{ type: "function", function: { name: "weather" } }] }, "tools"],
    [{ messages: [{ role: "user", content: [image] }] }, "messages[0].content[0]"],
  ] as const) {
    const response = await chat({ model: plainModel, ...body });
    expect(await refusalOf(response)).toEqual([400, "unsupported_feature", param]);
  }
  expect(service.engine.counts.requests).toBe(before);
});

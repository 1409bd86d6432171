import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { startSimulator } from "../../harness/simulator.ts";
import { jsonOf, post, said, tools } from "./ask.ts";

const simulator = await startSimulator({ models: ["acme/writer-1", "b"] });
afterAll(() => simulator.stop());

const get = (path: string, init: RequestInit = {}) => fetch(new URL(path, simulator.url), init);

describe("routes", () => {
  test("health, the models, one model of any name", async () => {
    expect((await get("/health")).status).toBe(200);
    const list = await jsonOf(get("/v1/models"));
    expect(list.data.map((model: { id: string }) => model.id)).toEqual(["acme/writer-1", "b"]);
    expect(await jsonOf(get("/v1/models/any%2Fname"))).toMatchObject({ id: "any/name", object: "model" });
  });

  test("another path is 404, another method 405", async () => {
    expect((await get("/v1/nothing")).status).toBe(404);
    expect((await get("/v1/models/%ff")).status).toBe(404);
    expect((await get("/v1/chat/completions")).status).toBe(405);
  });

  test("a key is required where one is set", async () => {
    const locked = await startSimulator({ key: "secret" });
    const ask = (authorization?: string) =>
      post(locked, said("x"), authorization ? { headers: { authorization } } : {}).then((each) => each.status);
    expect(await Promise.all([ask(), ask("Bearer wrong"), ask("Bearer secret")])).toEqual([401, 401, 200]);
    expect((await fetch(`${locked.url}/models`)).status).toBe(401);
    await locked.stop();
  });

  test("a port that is taken is an error, never shared", async () => {
    await expect(startSimulator({ port: simulator.port })).rejects.toThrow();
    const code = `
      import { startSimulator } from "${new URL("../../../src/features/simulator/server.ts", import.meta.url).pathname}";
      startSimulator({ port: ${simulator.port} }).then(() => process.exit(0), () => process.exit(7));`;
    const other = Bun.spawn([process.execPath, "-e", code], { stdout: "ignore", stderr: "ignore" });
    expect(await other.exited).toBe(7);
  });

  test("stop ends what is running and frees the port", async () => {
    const first = await startSimulator();
    const response = await post(first, { ...said("[simulator: stall]"), stream: true });
    await first.stop();
    await expect(response.text()).rejects.toThrow();
    expect(first.counts.active).toBe(0);
    expect(first.requests[0]?.ended).toBe("stopped");
    const second = await startSimulator({ port: first.port });
    await second.stop();
  });
});

describe("bad input is 400 with the field at fault", () => {
  const messages = [{ role: "user", content: "x" }];
  test.each<[string, unknown]>([
    ["", []],
    ["", null],
    ["messages", {}],
    ["messages", { messages: [] }],
    ["messages[0]", { messages: [3] }],
    ["messages[0].role", { messages: [{ role: "boss", content: "x" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: 3 }] }],
    ["messages[0].content[0].type", { messages: [{ role: "user", content: [{ type: "video" }] }] }],
    ["messages[0].content[0].text", { messages: [{ role: "user", content: [{ type: "text" }] }] }],
    ["messages[0].tool_calls[0]", { messages: [{ role: "assistant", tool_calls: [{}] }] }],
    ["stream", { messages, stream: "yes" }],
    ["max_tokens", { messages, max_tokens: 0 }],
    ["n", { messages, n: 129 }],
    ["top_logprobs", { messages, logprobs: true, top_logprobs: 21 }],
    ["stop", { messages, stop: [1] }],
    ["tools", { messages, tools: {} }],
    ["tools[0].type", { messages, tools: [{ type: "custom" }] }],
    ["tools[0].function.name", { messages, tools: [{ type: "function", function: {} }] }],
    ["tool_choice", { messages, tools, tool_choice: { type: "function", function: { name: "other" } } }],
    ["response_format.type", { messages, response_format: { type: "xml" } }],
  ])("%s", async (param, body) => {
    const sent = body === null || Array.isArray(body) ? body : { model: "m", ...(body as object) };
    const response = await post(simulator, JSON.stringify(sent));
    expect(response.status).toBe(400);
    expect((await jsonOf(response)).error).toMatchObject({ param: param || null, type: "invalid_request_error" });
  });

  test.each(["", "{", "nothing", "[".repeat(100_000)])("what is not JSON", async (body) => {
    const response = await post(simulator, body);
    expect(response.status).toBe(400);
  });

  test("null counts as absent", async () => {
    const nulls = { stop: null, tools: null, n: null, stream: null, max_tokens: null, response_format: null };
    expect((await post(simulator, { messages, ...nulls, tool_choice: null, stream_options: null })).status).toBe(200);
  });

  test("no body leads to a 5xx", async () => {
    const fields = "messages stream tools tool_choice stop n response_format logprobs";
    const field = fc.constantFrom(...fields.split(" "));
    const broken = fc.dictionary(field, fc.jsonValue({ maxDepth: 3 }));
    await fc.assert(
      fc.asyncProperty(fc.oneof(broken, fc.jsonValue()), async (fields) => {
        const isObject = typeof fields === "object" && fields !== null && !Array.isArray(fields);
        const body = isObject ? { model: "m", ...said("x"), ...fields } : fields;
        const response = await post(simulator, JSON.stringify(body));
        await response.text();
        expect(response.status).toBeOneOf([200, 400]);
      }),
      { numRuns: 150 },
    );
  });
});

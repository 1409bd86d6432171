/**
 * `sluice upstream check`: the features that it finds an engine to have, the dialect rows that follow, and the changed
 * sluice.yaml, in which nothing else differs.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { amended, difference } from "../../src/config/check/amend.ts";
import { type CheckSettings, checkEngine, questions, verdictsOf } from "../../src/config/check/check.ts";
import { modelRows, upstreamRows } from "../../src/config/check/rows.ts";
import { probeEngine } from "../../src/config/engine.ts";
import { initConfiguration } from "../../src/config/init.ts";
import { dialects } from "../../src/core/protocol/dialects.ts";
import { defaultTimeouts } from "../../src/core/upstream/target.ts";
import { startSimulator } from "../harness/simulator.ts";
import { configured, engineAt } from "./reading.ts";

// All engines are checked in parallel, because each check takes long.
setDefaultTimeout(60_000);
const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops) await stop();
});

async function simulator(directives: string): Promise<string> {
  const started = await startSimulator({ directives });
  stops.push(started.stop);
  return started.url;
}

/**
 * A proxy in front of the simulator. `instead` may return a response in its place, and may change the request's body.
 */
function behind(url: string, instead: (path: string, body: Record<string, unknown>) => Response | null): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const text = await request.text();
      const body = text === "" ? {} : JSON.parse(text);
      const answer = instead(pathname, body);
      if (answer) return answer;
      const headers = { "content-type": "application/json" };
      const sent = text === "" ? {} : { body: JSON.stringify(body) };
      return fetch(new URL(pathname, url), { method: request.method, headers, ...sent });
    },
  });
  stops.push(() => server.stop(true));
  return `http://127.0.0.1:${server.port}/v1`;
}

const refusal = (status: number, message: string) =>
  Response.json({ error: { message, type: "BadRequest" } }, { status });

async function verdicts(url: string, settings: Partial<CheckSettings> = {}) {
  const upstream = { name: "main", url, protocol: "openai-chat" as const, apiKey: null, timeouts: defaultTimeouts };
  const found = await checkEngine({
    upstream,
    dialect: dialects.generic,
    model: "qwen/qwen3-32b",
    contextTokens: null,
    extent: "usual",
    ...settings,
  });
  return verdictsOf(found);
}

describe.concurrent("an engine is asked, and", () => {
  test("what it shows is a yes, in the usual extent without a prompt beyond its context", async () => {
    const found = await verdicts(await simulator("tokens=30"));
    expect(Object.fromEntries(found)).toMatchObject({ text: "yes", stream: "yes", usage: "yes", schema: "yes" });
    expect(found.has("too_long")).toBe(false);
    expect(questions.length).toBeGreaterThanOrEqual(30);
  });

  test.each([
    ["no-usage", { text: "yes", usage: "no", usage_streamed: "no", thought_reasoning: "unknown" }],
    ["echo", { call: "unknown", two_calls: "unknown", named_call: "yes", no_call: "unknown" }],
    ["call=weather call=time", { call: "yes", two_calls: "yes", named_call: "no", no_call: "yes" }],
    ["call=weather call=time quirk=index-missing", { two_calls: "yes", call_streamed: "yes" }],
    ["reasoning=5", { thought: "yes" }],
    ["reasoning=5 quirk=reasoning-field", { thought: "yes" }],
    ["tokens=60", { cap_max_tokens: "yes" }],
    ["cut-after=1", { stream: "unknown", usage: "unknown", call: "unknown" }],
    ["status=503", { text: "unknown", call: "unknown", picture: "unknown" }],
  ])("told '%s' it gives %o", async (directives, wanted) => {
    expect(Object.fromEntries(await verdicts(await simulator(directives)))).toMatchObject(wanted);
  });

  test("a field that it refuses is a no, and one that it ignores is unknown", async () => {
    const url = behind(await simulator(""), (_, body) => {
      if ("max_tokens" in body)
        return refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.");
      return body.min_p === undefined || typeof body.min_p === "number" ? null : refusal(400, "min_p is no number");
    });
    const openai = { ...dialects.generic, cap: "max_completion_tokens" as const };
    const found = await verdicts(url, { dialect: openai });
    expect(Object.fromEntries(found)).toMatchObject({
      cap_max_tokens: "no",
      field_min_p: "yes",
      field_top_k: "unknown",
    });
    expect(upstreamRows(found, dialects.generic, null).dialect_rows).toMatchObject({ cap: "max_completion_tokens" });
    expect(upstreamRows(found, openai, null).dialect_rows).not.toHaveProperty("cap");
    expect(modelRows(found)).toMatchObject({ extra_params: ["min_p"], bounds: "engine" });
  });

  test("what it is asked for and drops is a no", async () => {
    const dropped = ["response_format", "logprobs", "tool_choice", "parallel_tool_calls", "stream_options"];
    const dropping = (url: string) =>
      behind(url, (_, body) => {
        for (const name of dropped) delete body[name];
        return null;
      });
    const found = await verdicts(dropping(await simulator("")));
    expect(Object.fromEntries(found)).toMatchObject({ schema: "no", json: "no", logprobs: "no", usage_streamed: "no" });
    const calls = await verdicts(dropping(await simulator("call=weather call=time")));
    expect(Object.fromEntries(calls)).toMatchObject({ named_call: "no", no_call: "no", one_call: "no" });
    expect(modelRows(found).capabilities).not.toContain("structured_output");
  });

  test("a key that it refuses, a model that it lacks, and silence are errors that say so", async () => {
    const refuses = behind(await simulator(""), () => refusal(401, "no"));
    await expect(verdicts(refuses)).rejects.toThrow("refuses the key (401)");
    const lacks = behind(await simulator(""), () => refusal(404, "The model `x` does not exist."));
    await expect(verdicts(lacks)).rejects.toThrow("Choose --model");
    await expect(verdicts("http://127.0.0.1:9/v1")).rejects.toThrow("Nothing answers");
    await expect(verdicts("http://engine.invalid/v1")).rejects.toThrow("its name cannot be resolved here");
  });

  test("a prompt beyond its context goes to no public address", async () => {
    const long = { extent: "long" as const, contextTokens: 2000 };
    const near = await verdicts(await simulator(""), long);
    expect(near.get("too_long")).not.toBe("unknown");
    const question = questions.find(({ name }) => name === "too_long")!;
    const far = { upstream: { url: "http://93.184.215.14/v1" }, contextTokens: 2000, put: () => expect.unreachable() };
    expect(await question.ask(far as never)).toEqual({ verdict: "unknown", saw: "not asked: its address is public" });
  });
});

test.each([
  [{ data: [{ id: "m", owned_by: "vllm" }] }, {}, "vllm"],
  [{ data: [{ id: "m", owned_by: "llamacpp" }] }, {}, "llama.cpp"],
  [{ data: [{ id: "m", owned_by: "acme" }] }, { "/api/version": { version: "0.9.1" } }, "ollama"],
  [{ data: [{ id: "m", owned_by: "openai" }] }, { "/health/liveliness": "I'm alive!" }, "litellm"],
  [{ data: [{ id: "m", owned_by: "acme" }] }, {}, null],
] as const)("the signs of an engine tell its dialect: %o", async (models, pages, dialect) => {
  const url = behind("http://127.0.0.1:9", (path) => {
    const page = path === "/v1/models" ? models : (pages as Record<string, unknown>)[path];
    return page === undefined ? new Response("", { status: 404 }) : Response.json(page);
  });
  expect((await probeEngine(url, null, fetch)).dialect).toBe(dialect);
});

test("init writes what it found, in a file that can be loaded", async () => {
  const url = behind(await simulator("reasoning=5"), (path) =>
    path === "/v1/models" ? Response.json({ data: [{ id: "acme-1", owned_by: "vllm" }] }) : null,
  );
  const draft = await initConfiguration({
    engines: [engineAt(url)],
    fetch,
    nowSeconds: 1_795_000_000,
    check: checkEngine,
  });
  expect(draft.yaml).toContain("    dialect: vllm\n");
  const [model] = configured(draft.yaml, {}).catalog.models.values();
  expect(model).toMatchObject({ bounds: "engine" });
  expect([...model!.capabilities]).toContain("reasoning");
});

const operators = `# Ours.
upstreams:
  main:   # the cellar
    url: http://127.0.0.1:1/v1   # not the attic
    timeouts:
      idle_ms: 5000   # slow
    # a word at the end

  other: { url: "http://127.0.0.1:2/v1" }   # in a line
models:
  - id: a/b   # first
    capabilities: [tools]   # no pictures
    routes:
      - upstream: main   # only this
        model: b
`;

describe("rows are added", () => {
  test("between the operator's lines, which all stay", () => {
    const text = amended(operators, [
      { path: ["upstreams", "main"], name: "dialect", value: "vllm" },
      { path: ["upstreams", "other"], name: "load", value: {} },
      { path: ["models", 0, "capabilities"], name: null, value: "vision" },
      { path: ["models", 0], name: "bounds", value: "engine" },
    ]);
    expect(difference(operators, text)).toEqual([
      "+     dialect: vllm",
      '-   other: { url: "http://127.0.0.1:2/v1" }   # in a line',
      '+   other: { url: "http://127.0.0.1:2/v1", load: {} }   # in a line',
      "-     capabilities: [tools]   # no pictures",
      "+     capabilities: [tools, vision]   # no pictures",
      "+     bounds: engine",
    ]);
    for (const comment of operators.match(/#.*/g)!) expect(text).toContain(comment);
  });

  test.each([
    ["upstreams:\n  main:\n    url: x", "upstreams:\n  main:\n    url: x\n    load: {}\n"],
    ["upstreams:\r\n  main:\r\n    url: x\r\n", "upstreams:\r\n  main:\r\n    url: x\r\n    load: {}\r\n"],
    ['{"upstreams": {"main": {"url": "x"}}}', '{"upstreams": {"main": {"url": "x", load: {}}}}'],
    [
      "upstreams:\n  main:\n    url: |-\n      x\n# end\n",
      "upstreams:\n  main:\n    url: |-\n      x\n    load: {}\n# end\n",
    ],
  ])("to %j", (before, after) => {
    expect(amended(before, [{ path: ["upstreams", "main"], name: "load", value: {} }])).toBe(after);
  });

  test("not where there is no plain place: an alias is the operator's to change", () => {
    const text = "upstreams:\n  a: &one\n    url: x\n  main: *one\n";
    const add = () => amended(text, [{ path: ["upstreams", "main"], name: "load", value: {} }]);
    expect(add).toThrow("add it by hand");
  });
});

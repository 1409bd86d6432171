/**
 * Codex, unchanged, against the service in front of an engine that follows a script: `npm run test:clients -- codex`.
 * Its three sets of tools, which it chooses by the model's ID, work; a limit stops it without retries; and it recovers
 * by itself from an engine's faults. Each check also counts the requests, to see that Codex repeats none that was
 * answered.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService } from "../../harness/engine.ts";
import {
  neededMessage,
  smallKey,
  spentMessage,
  spentTeam,
  tooSmall,
  usedUpKey,
  usedUpMessage,
  weekly,
} from "../limited-keys.ts";
import { type ScriptedEngine, startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { patching, type Run, type RunOptions, runAgent, scripting } from "./agent.ts";

setDefaultTimeout(120_000);

let engine: ScriptedEngine;
let service: Service;
beforeAll(async () => {
  engine = startScriptedEngine();
  service = await startService({
    engineUrl: engine.url,
    models: [patching, scripting],
    plans: weekly,
    limits: "{ heartbeat_ms: 200, first_event_hold_ms: 200 }",
  });
});
afterAll(async () => {
  await service.stop();
  engine.stop();
});

const done: Turn = { text: "It is all done." };
const shell = (cmd: string) => ({ name: "exec_command", arguments: { cmd } });

async function run(turns: Turn[], options: Partial<RunOptions> = {}): Promise<Run> {
  engine.play(turns);
  return runAgent({ url: service.url, key: service.key, model, prompt: "Do the work.", ...options });
}

function expectDone({ code, answer }: Run): void {
  expect({ code, answer }).toEqual({ code: 0, answer: done.text! });
}
const requestsOf = ({ asked }: Run) => asked.map(({ method, status }) => `${method} ${status}`);
const times = (count: number) => Array(count).fill("POST 200");

interface Item {
  type: string;
  [key: string]: unknown;
}
const itemsOf = (run: Run, field: "input" | "tools", request = 0): Item[] =>
  (run.asked.at(request)?.body?.[field] ?? []) as Item[];
/** The items of one type in the last request. */
const sent = (run: Run, type: string) => itemsOf(run, "input", -1).filter((item) => item.type === type);
const toolNames = () => (engine.asked[0]?.tools ?? []).map((tool) => tool.function.name);
/** The tools' results in the last request that the engine got. */
const results = () =>
  (engine.asked.at(-1)?.messages ?? []).filter(({ role }) => role === "tool").map(({ content }) => told(content));
const told = (content: unknown) => (typeof content === "string" ? content : JSON.stringify(content));

describe("a model that Codex does not know", () => {
  test("works through its tools, one after the other and side by side", async () => {
    const ended = await run([
      { text: "First one.", calls: [shell("echo apple > one.txt; echo first is written")] },
      { calls: [shell("cat one.txt"), shell("echo pear > two.txt; echo second is written")] },
      done,
    ]);
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(3));
    expect(ended.files).toEqual({ "one.txt": "apple\n", "two.txt": "pear\n" });
    expect(results()).toEqual([
      expect.stringContaining("first is written"),
      expect.stringContaining("apple"),
      expect.stringContaining("second is written"),
    ]);
    const roles = engine.asked.at(-1)!.messages.map(({ role }) => role);
    expect(roles.slice(-5)).toEqual(["assistant", "tool", "assistant", "tool", "tool"]);
    expect(ended.usage).toMatchObject({ input_tokens: 300 });
  });

  test("is told of no web search, and calls what has a namespace by both its names", async () => {
    const ended = await run([
      { calls: [{ name: "multi_agent_v1__wait_agent", arguments: { targets: ["nobody"] } }] },
      done,
    ]);
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(2));
    const listed = itemsOf(ended, "tools").map(({ type }) => type);
    expect(listed).toContain("web_search");
    expect(listed).toContain("namespace");
    expect(toolNames()).not.toContain("web_search");
    expect(sent(ended, "function_call")).toMatchObject([{ name: "wait_agent", namespace: "multi_agent_v1" }]);
    expect(results()).toEqual([expect.stringContaining("invalid agent id")]);
  });

  test("looks at an image that a tool brings", async () => {
    const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    const make = `echo ${pixel} | base64 -d > dot.png`;
    const look = { name: "view_image", arguments: { path: "dot.png" } };
    const ended = await run([{ calls: [shell(make)] }, { calls: [look] }, done]);
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(3));
    expect(JSON.stringify(sent(ended, "function_call_output").at(-1))).toContain("data:image/png;base64,");
    expect(JSON.stringify(engine.asked.at(-1)?.messages.at(-1))).toContain("data:image/png;base64,");
  });
});

describe("reasoning", () => {
  const thought = "An apple has to be written down before a pear.";
  const turns: Turn[] = [{ reasoning: thought, text: "So be it.", calls: [shell("true")] }, done];
  const thoughts = () => engine.asked.at(-1)!.messages.flatMap(({ reasoning_content }) => reasoning_content ?? []);

  test("is shown, and is there again with the next turn, once", async () => {
    const ended = await run(turns);
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(2));
    expect(ended.asked[0]?.body?.reasoning).toEqual({ summary: "auto" });
    expect(ended.thoughts).toEqual([thought]);
    expect(sent(ended, "reasoning")).toMatchObject([
      { summary: [{ type: "summary_text", text: thought }], encrypted_content: expect.any(String) },
    ]);
    expect(thoughts()).toEqual([thought]);
  });

  test("is shown of a model that Codex knows where its configuration asks for it", async () => {
    const ended = await run(turns, { model: patching, config: 'model_reasoning_summary = "auto"' });
    expectDone(ended);
    expect(ended.thoughts).toEqual([thought]);
    expect(thoughts()).toEqual([thought]);
  });

  test("that is not to be shown is there again with the next turn all the same", async () => {
    const ended = await run(turns, { config: 'model_reasoning_summary = "none"' });
    expectDone(ended);
    expect(ended.thoughts).toEqual([]);
    expect(sent(ended, "reasoning")).toMatchObject([
      { summary: [], content: [{ type: "reasoning_text", text: thought }], encrypted_content: expect.any(String) },
    ]);
    expect(thoughts()).toEqual([thought]);
  });
});

describe("a model for which its patches are free-form tools", () => {
  test("has them applied", async () => {
    const patch = [
      "*** Begin Patch",
      "*** Update File: one.txt",
      "@@",
      '-a "red" apple',
      '+a "green" apple \\ \u{1f34f}',
      "*** Add File: two.txt",
      "+a pear",
      "*** End Patch",
      "",
    ].join("\n");
    const turns = [{ calls: [{ name: "apply_patch", arguments: { input: patch } }] }, done];
    const ended = await run(turns, { model: patching, files: { "one.txt": 'a "red" apple\n' } });
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(2));
    expect(ended.files).toEqual({ "one.txt": 'a "green" apple \\ \u{1f34f}\n', "two.txt": "a pear\n" });
    const listed = itemsOf(ended, "tools").find(({ name }) => name === "apply_patch");
    expect(listed).toMatchObject({ type: "custom", format: { type: "grammar", syntax: "lark" } });
    const { definition } = listed!.format as { definition: string };
    const known = engine.asked[0]?.tools?.find((tool) => tool.function.name === "apply_patch");
    expect(known?.function.description).toContain(definition);
    expect(sent(ended, "custom_tool_call")).toMatchObject([{ name: "apply_patch", input: patch }]);
    expect(results()).toEqual([expect.stringContaining("Success")]);
  });

  test("whose engine writes the patch without JSON around it has it applied too", async () => {
    const patch = "*** Begin Patch\n*** Add File: two.txt\n+a pear\n*** End Patch\n";
    const ended = await run([{ calls: [{ name: "apply_patch", arguments: patch }] }, done], { model: patching });
    expectDone(ended);
    expect(ended.files).toEqual({ "two.txt": "a pear\n" });
  });
});

describe("a model whose tools stand among the items", () => {
  const script = (input: string) => ({ name: "exec", arguments: { input } });

  test("runs them, from each namespace", async () => {
    const write =
      'const ran = await tools.exec_command({ cmd: "echo apple > one.txt; echo it is written" }); text(ran.output);';
    const list = { name: "collaboration__list_agents", arguments: {} };
    const ended = await run([{ calls: [script(write)] }, { calls: [list] }, done], { model: scripting });
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(3));
    expect(ended.files).toEqual({ "one.txt": "apple\n" });
    for (const request of ended.asked.keys()) {
      expect(itemsOf(ended, "tools", request)).toEqual([]);
      expect(itemsOf(ended, "input", request)[0]?.type).toBe("additional_tools");
    }
    expect(sent(ended, "custom_tool_call")).toMatchObject([{ name: "exec", input: write }]);
    expect(sent(ended, "function_call")).toMatchObject([{ name: "list_agents", namespace: "collaboration" }]);
    expect(results()).toEqual([expect.stringContaining("it is written"), expect.stringContaining("/root")]);
  });

  test("a script that reports on its way has one result at the engine, which takes no second", async () => {
    const ended = await run([{ calls: [script('notify("half way"); text("the end");')] }, done], { model: scripting });
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(2));
    const outputs = sent(ended, "custom_tool_call_output");
    expect(outputs).toHaveLength(2);
    expect(new Set(outputs.map(({ call_id }) => call_id)).size).toBe(1);
    expect(results()).toHaveLength(1);
    expect(results()[0]).toContain("half way");
    expect(results()[0]).toContain("the end");
  });
});

test("--output-schema reaches the engine, and its answer the user", async () => {
  const schema = {
    type: "object",
    properties: { fruit: { type: "string" } },
    required: ["fruit"],
    additionalProperties: false,
  };
  const ended = await run([{ text: '{"fruit":"apple"}' }], { schema });
  expect([ended.code, ended.answer]).toEqual([0, '{"fruit":"apple"}']);
  expect(requestsOf(ended)).toEqual(times(1));
  expect(ended.asked[0]?.body?.text).toMatchObject({ format: { type: "json_schema", strict: true } });
  expect(engine.asked[0]).toMatchObject({
    response_format: { type: "json_schema", json_schema: { strict: true, schema } },
  });
});

test("where it is told of WebSockets, it uses one for all its turns", async () => {
  const ended = await run([{ calls: [shell("echo apple > one.txt")] }, done], {
    provider: "supports_websockets = true",
  });
  expectDone(ended);
  expect(requestsOf(ended)).toEqual(["GET 101", ...Array(3).fill("WS 200")]);
  const [taken, first, second] = ended.asked.slice(1);
  expect(taken?.body).toMatchObject({ generate: false, store: false });
  expect([first, second].map((turn) => typeof turn?.body?.previous_response_id)).toEqual(["string", "string"]);
  // Besides the tools, each turn's request has only the new items.
  expect(itemsOf(ended, "input", 3).map(({ type }) => type)).toEqual(["function_call_output"]);
  const sizes = ended.asked.slice(1).map(({ bytes }) => bytes);
  console.log(`bytes of the messages: ${sizes.join(", ")}`);
  expect(ended.files).toEqual({ "one.txt": "apple\n" });
});

test("an engine that thinks longer than Codex waits for a word is waited for", async () => {
  const ended = await run([{ ...done, silent_ms: 3000 }], { provider: "stream_idle_timeout_ms = 1000" });
  expectDone(ended);
  expect(requestsOf(ended)).toEqual(times(1));
});

describe("an engine that breaks off", () => {
  test("in its text is asked again, and the work goes on", async () => {
    const ended = await run([
      { text: "I shall write it down", cut: true },
      { calls: [shell("echo apple > one.txt")] },
      done,
    ]);
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(3));
    expect(ended.files).toEqual({ "one.txt": "apple\n" });
    expect(ended.errors).toContain("Reconnecting... 1/5");
  });

  test("in a call is asked again, and what it had not finished is not run", async () => {
    const unfinished = { text: "I write.", calls: [shell("echo apple >> one.txt")], cut: true as const };
    const ended = await run([unfinished, { calls: [shell("echo pear >> one.txt")] }, done]);
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(3));
    expect(ended.files).toEqual({ "one.txt": "pear\n" });
  });
});

describe("a conversation that grows", () => {
  const work: Turn = { calls: [shell("echo hi")] };

  test("beyond what Codex was told of the context is summed up by the model, and goes on", async () => {
    const config = "model_context_window = 131072\nmodel_auto_compact_token_limit = 50";
    const ended = await run([work, { text: "It said hi." }, done], { config });
    expectDone(ended);
    expect(requestsOf(ended)).toEqual(times(3));
    expect(told(engine.asked[1]?.messages.at(-1)?.content)).toContain("COMPACTION");
    expect(told(engine.asked[2]?.messages.at(-1)?.content)).toContain("It said hi.");
    expect(results()).toEqual([]);
  });

  test("beyond what the engine takes is told as that, once", async () => {
    const refuses = { code: "context_length_exceeded", message: "maximum context length" };
    const ended = await run([work, { refuses }]);
    expect(ended.code).not.toBe(0);
    expect(requestsOf(ended)).toEqual(["POST 200", "POST 400"]);
    expect(ended.errors).toContain("ran out of room in the model's context window");
  });
});

test("an answer that a limit of tokens cuts ends the turn with what there is, and is not asked for again", async () => {
  const ended = await run([{ text: "It is not", finish: "length" }]);
  expect([ended.code, ended.answer]).toEqual([1, "It is not"]);
  expect(requestsOf(ended)).toEqual(times(1));
  expect(ended.errors).toContain("Incomplete response returned, reason: max_output_tokens");
});

describe("a refusal", () => {
  /** Expects that Codex sent one request, that it was refused, and that no engine got a request. */
  function expectRefused(ended: Run, status: number): void {
    expect(ended.code).not.toBe(0);
    expect(requestsOf(ended)).toEqual([`POST ${status}`]);
    expect(engine.asked).toHaveLength(0);
  }

  test("for a limit that is reached ends it at once, and it says until when", async () => {
    const ended = await run([done], { key: await usedUpKey(service) });
    expectRefused(ended, 429);
    expect(ended.errors).toContain(`hit your usage limit. The organization weekly ${usedUpMessage}. `);
    expect(ended.errors).toContain(" or try again at ");
  });

  test("of a team that has used its money says so in words, and when it starts anew where the team is", async () => {
    await using spent = await spentTeam();
    const ended = await run([done], { url: spent.service.url, key: spent.key });
    expectRefused(ended, 429);
    expect(ended.errors).toMatch(spentMessage);
  });

  test.each(tooSmall)("of what can never pass (%s) ends it at once, and it says why", async (limit, why) => {
    const ended = await run([done], { key: await smallKey(service, limit) });
    expectRefused(ended, 429);
    for (const message of [why, neededMessage]) expect(ended.errors).toMatch(message);
  });

  test("of a model that there is not says so", async () => {
    const ended = await run([done], { model: "acme/none" });
    expectRefused(ended, 404);
    expect(ended.errors).toContain("acme/none");
  });

  test("of its key is told, and reaches no engine", async () => {
    const ended = await run([done], { key: "slk_none" });
    expect(ended.code).not.toBe(0);
    expect(new Set(requestsOf(ended))).toEqual(new Set(["POST 401"]));
    expect(engine.asked).toHaveLength(0);
    expect(ended.errors).toContain("req_");
  });
});

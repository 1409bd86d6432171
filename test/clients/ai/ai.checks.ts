/**
 * The AI SDK's own OpenAI provider and the OpenAI Agents SDK, both with their default protocol, Responses, against the
 * service in front of an engine that follows a script: `npm run test:clients -- ai`.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { z } from "zod";
import { model, type Service, startService } from "../../harness/engine.ts";
import { usedUpKey, usedUpMessage, weekly } from "../limited-keys.ts";
import { type ScriptedEngine, startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { thrown } from "../sdk.ts";
import { watched } from "../traffic.ts";
import { type AgentsSdk, type AiCall, type AiOpenai, type AiSdk, fetched } from "./packages.ts";

setDefaultTimeout(60_000);

const ai = await fetched<AiSdk>("ai");
const { createOpenAI } = await fetched<AiOpenai>("@ai-sdk/openai");
const agents = await fetched<AgentsSdk>("@openai/agents");

let engine: ScriptedEngine;
let service: Service;
let watch: ReturnType<typeof watched>;
/** A key of an organization that has exhausted its limit for the week. */
let spentKey: string;
beforeAll(async () => {
  engine = startScriptedEngine();
  service = await startService({ engineUrl: engine.url, plans: weekly });
  watch = watched({ url: service.url });
  spentKey = await usedUpKey(service);
});
afterAll(async () => {
  watch.stop();
  await service.stop();
  engine.stop();
});
beforeEach(() => {
  watch.asked.length = 0;
});

const weather = (city: string) => ({ name: "weather", arguments: { city } });
const thought = "Rome and Oslo first, and Bonn after them.";
/** A script of three turns: two tool calls in one response, one more tool call, and the final text. */
const threeTurns: Turn[] = [
  { reasoning: thought, text: "Let me look.", calls: [weather("Rome"), weather("Oslo")] },
  { calls: [weather("Bonn")] },
  { text: "All are fine." },
];
const parameters = z.object({ city: z.string() });
const weatherOf = async ({ city }: { city: string }) => `${city} is fine`;

/**
 * The content of the last request to the engine: the agent's texts, its reasoning and calls, and the tools' results.
 */
function heard() {
  const messages = engine.asked.at(-1)?.messages ?? [];
  return messages.flatMap(({ role, content, reasoning_content, tool_calls }) => {
    if (role === "tool") return [content];
    const calls = tool_calls?.map((call) => call.function.arguments) ?? [];
    return role === "assistant" ? [[reasoning_content, content, ...calls]] : [];
  });
}
const allHeard = [
  [thought, "Let me look.", '{"city":"Rome"}', '{"city":"Oslo"}'],
  "Rome is fine",
  "Oslo is fine",
  [undefined, null, '{"city":"Bonn"}'],
  "Bonn is fine",
];
const statuses = () => watch.asked.map(({ status }) => status);
const typesSent = () => ((watch.asked.at(-1)?.body?.input ?? []) as { type?: string }[]).map(({ type }) => type);

describe("the AI SDK", () => {
  const modelBy = (key: string, id = model) => createOpenAI({ baseURL: `${watch.url}/v1`, apiKey: key }).responses(id);
  const call = (more: Partial<AiCall> = {}): AiCall => ({
    model: modelBy(service.key),
    prompt: "How is the weather?",
    tools: { weather: ai.tool({ description: "Weather of a city", inputSchema: parameters, execute: weatherOf }) },
    stopWhen: ai.stepCountIs(6),
    ...more,
  });

  test("works through its tools with references to what it was answered, streamed", async () => {
    engine.play(threeTurns);
    const run = ai.streamText(call());
    const types = new Set<string>();
    for await (const { type } of run.fullStream) types.add(type);
    expect(await run.text).toBe("All are fine.");
    expect(await run.steps).toHaveLength(3);
    expect((await run.usage).inputTokens).toBe(300);
    expect(types).not.toContain("error");
    expect(statuses()).toEqual([200, 200, 200]);
    expect(typesSent()).toContain("item_reference");
    expect(heard()).toEqual(allHeard);
  });

  test("works through its tools, not streamed", async () => {
    engine.play(threeTurns);
    const { text, steps } = await ai.generateText(call());
    expect([text, steps.length]).toEqual(["All are fine.", 3]);
    expect(typesSent()).toContain("item_reference");
    expect(heard()).toEqual(allHeard);
  });

  test("with store: false sends everything itself, reasoning too where it asks for what keeps it", async () => {
    engine.play(threeTurns);
    const openai = { store: false, include: ["reasoning.encrypted_content"] };
    expect(await ai.generateText(call({ providerOptions: { openai } }))).toMatchObject({ text: "All are fine." });
    expect(typesSent()).not.toContain("item_reference");
    expect(typesSent()).toContain("reasoning");
    expect(heard()).toEqual(allHeard);
  });

  describe("shows the model's reasoning where it asks for a summary, and sends it back once", () => {
    const shows = { forceReasoning: true, reasoningSummary: "auto" };
    const ways: [string, Record<string, unknown>, string][] = [
      ["by references", shows, "item_reference"],
      ["by items", { ...shows, store: false }, "reasoning"],
    ];
    const forms = () => watch.asked.map(({ body }) => body?.reasoning);

    test.each(ways)("%s, streamed", async (_, openai, type) => {
      engine.play(threeTurns);
      const run = ai.streamText(call({ providerOptions: { openai } }));
      const shown: string[] = [];
      for await (const part of run.fullStream) {
        if (part.type === "reasoning-start") shown.push("");
        if (part.type === "reasoning-delta") shown.push(shown.pop() + part.text!);
      }
      expect(shown).toEqual([thought]);
      expect(await run.text).toBe("All are fine.");
      expect(forms()).toEqual(Array(3).fill({ summary: "auto" }));
      expect(typesSent()).toContain(type);
      expect(heard()).toEqual(allHeard);
    });

    test.each(ways)("%s, not streamed", async (_, openai, type) => {
      engine.play(threeTurns);
      const { text, steps } = await ai.generateText(call({ providerOptions: { openai } }));
      expect(steps.map(({ reasoningText }) => reasoningText)).toEqual([thought, undefined, undefined]);
      expect(text).toBe("All are fine.");
      expect(forms()).toEqual(Array(3).fill({ summary: "auto" }));
      expect(typesSent()).toContain(type);
      expect(heard()).toEqual(allHeard);
    });
  });

  test("has the object that its schema describes", async () => {
    engine.play([{ text: '{"fruit":"apple"}' }]);
    const output = ai.Output.object({ schema: z.object({ fruit: z.string() }) });
    expect((await ai.generateText({ ...call({ output }), tools: {} })).output).toEqual({ fruit: "apple" });
    expect(engine.asked[0]).toMatchObject({ response_format: { type: "json_schema", json_schema: { strict: true } } });
  });

  test("is told that an engine broke off, after what came", async () => {
    engine.play([{ text: "I begin and then", cut: true }]);
    const run = ai.streamText(call({ maxRetries: 0, onError: () => {} }));
    let text = "";
    let end: string | undefined;
    for await (const part of run.fullStream) {
      if (part.type === "text-delta") text += part.text;
      if (part.type === "finish") end = part.finishReason;
    }
    expect([text, end]).toEqual(["I begin and then", "error"]);
    expect(statuses()).toEqual([200]);
  });

  test("a wrong key, a model that there is not, and a limit are errors with our words", async () => {
    const errorOf = (as: unknown) => thrown(ai.generateText(call({ model: as, maxRetries: 0 })));
    expect(await errorOf(modelBy("slk_none"))).toMatchObject({
      statusCode: 401,
      message: expect.stringContaining("API key"),
    });
    const unknown = { statusCode: 404, message: expect.stringContaining("acme/none") };
    expect(await errorOf(modelBy(service.key, "acme/none"))).toMatchObject(unknown);
    const limit = { statusCode: 429, message: expect.stringContaining(usedUpMessage) };
    expect(await errorOf(modelBy(spentKey))).toMatchObject(limit);
    expect(statuses()).toEqual([401, 404, 429]);
  });
});

describe("the Agents SDK", () => {
  const runnerBy = (apiKey: string) => {
    const modelProvider = new agents.OpenAIProvider({ baseURL: `${watch.url}/v1`, apiKey, useResponses: true });
    return new agents.Runner({ modelProvider, tracingDisabled: true });
  };
  const tool = () => agents.tool({ name: "weather", description: "Weather of a city", parameters, execute: weatherOf });
  const agent = (more: object = {}) =>
    new agents.Agent({ name: "keeper", instructions: "Be brief.", model, tools: [tool()], ...more });

  test("works through its tools", async () => {
    engine.play(threeTurns);
    const { finalOutput } = await runnerBy(service.key).run(agent(), "How is the weather?");
    expect(finalOutput).toBe("All are fine.");
    expect(statuses()).toEqual([200, 200, 200]);
    expect(heard()).toEqual(allHeard);
    expect(engine.asked.at(-1)?.messages[0]).toEqual({ role: "system", content: "Be brief." });
  });

  test("works through its tools, streamed", async () => {
    engine.play(threeTurns);
    const run = await runnerBy(service.key).run(agent(), "How is the weather?", { stream: true });
    let text = "";
    for await (const piece of run.toTextStream()) text += piece;
    await run.completed;
    expect([text, run.finalOutput]).toEqual(["Let me look.All are fine.", "All are fine."]);
    expect(heard()).toEqual(allHeard);
  });

  test("goes on from a run by the id of its last response", async () => {
    const runner = runnerBy(service.key);
    engine.play([...threeTurns, { text: "No more." }]);
    const { lastResponseId } = await runner.run(agent(), "How is the weather?");
    const { finalOutput } = await runner.run(agent(), "And more?", { previousResponseId: lastResponseId });
    expect(finalOutput).toBe("No more.");
    expect(watch.asked.at(-1)?.body?.input).toEqual([{ role: "user", content: "And more?" }]);
    expect(heard()).toEqual([...allHeard, [undefined, "All are fine."]]);
  });

  test("hands over to another agent, and has the object that a schema describes", async () => {
    engine.play([{ calls: [{ name: "transfer_to_gauger", arguments: {} }] }, { text: '{"fruit":"apple"}' }]);
    const outputType = z.object({ fruit: z.string() });
    const gauger = agent({ name: "gauger", instructions: "You are the gauger.", tools: [], outputType });
    const { finalOutput, lastAgent } = await runnerBy(service.key).run(agent({ handoffs: [gauger] }), "Hello.");
    expect([finalOutput, lastAgent.name]).toEqual([{ fruit: "apple" }, "gauger"]);
    expect(engine.asked.at(-1)).toMatchObject({ response_format: { type: "json_schema" } });
  });

  test("a limit that is reached ends the run at once, with our words", async () => {
    engine.play(threeTurns);
    const error = await thrown(runnerBy(spentKey).run(agent(), "Hello."));
    expect(error).toMatchObject({ status: 429, message: expect.stringContaining(usedUpMessage) });
    expect(statuses()).toEqual([429]);
    expect(engine.asked).toHaveLength(0);
  });
});

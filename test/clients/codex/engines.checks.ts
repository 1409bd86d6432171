/**
 * Codex in front of engines of the other two protocols. A second service plays these engines: it speaks all three
 * protocols, and its own engine follows a script. So each request is translated twice, and so is its response.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService } from "../../harness/engine.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { type ScriptedEngine, startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { patching, runAgent, scripting } from "./agent.ts";

setDefaultTimeout(120_000);

let engine: ScriptedEngine;
let back: Service;
beforeAll(async () => {
  engine = startScriptedEngine();
  back = await startService({ engineUrl: engine.url, models: [patching, scripting] });
});
afterAll(async () => {
  await back.stop();
  engine.stop();
});

const done: Turn = { text: "It is all done." };

for (const protocol of ["openai-responses", "anthropic-messages"]) {
  describe(`an engine that speaks ${protocol}`, () => {
    let front: Sluice;
    beforeAll(async () => {
      front = await startSluice({ config: configTo(protocol), env: { ENGINE_KEY: back.key }, secrets: [back.key] });
    });
    afterAll(async () => {
      await front.stop();
    });
    const run = async (of: string, turns: Turn[]) => {
      engine.play(turns);
      const { url, key } = front;
      const { code, answer, thoughts, files, asked } = await runAgent({ url, key, model: of, prompt: "Do the work." });
      return { code, answer, thoughts, files, statuses: asked.map(({ status }) => status) };
    };
    const worked = (requests: number, files: Record<string, string>, thoughts: string[] = []) => ({
      ...{ code: 0, answer: done.text!, thoughts, files },
      statuses: Array(requests).fill(200),
    });

    test("works through functions and a namespace, one after the other and side by side", async () => {
      const shell = (cmd: string) => ({ name: "exec_command", arguments: { cmd } });
      const wait = { name: "multi_agent_v1__wait_agent", arguments: { targets: ["nobody"] } };
      const turns = [
        { reasoning: "One first.", text: "I write.", calls: [shell("echo apple > one.txt")] },
        { calls: [shell("cat one.txt"), shell("echo pear > two.txt"), wait] },
        done,
      ];
      const files = { "one.txt": "apple\n", "two.txt": "pear\n" };
      expect(await run(model, turns)).toEqual(worked(3, files, ["One first."]));
      const results = engine.asked.at(-1)!.messages.filter(({ role }) => role === "tool");
      expect(results.map(({ content }) => content)).toEqual([
        expect.any(String),
        expect.stringContaining("apple"),
        expect.any(String),
        expect.stringContaining("invalid agent id"),
      ]);
    });

    test("has its patches applied", async () => {
      const input = '*** Begin Patch\n*** Add File: one.txt\n+a "green" apple \\ \u{1f34f}\n*** End Patch\n';
      const turns = [{ calls: [{ name: "apply_patch", arguments: { input } }] }, done];
      expect(await run(patching, turns)).toEqual(worked(2, { "one.txt": 'a "green" apple \\ \u{1f34f}\n' }));
    });

    test("runs scripts, which report on their way", async () => {
      const input = 'notify("half way"); await tools.exec_command({ cmd: "echo apple > one.txt" }); text("the end");';
      const list = { name: "collaboration__list_agents", arguments: {} };
      const turns = [{ calls: [{ name: "exec", arguments: { input } }] }, { calls: [list] }, done];
      expect(await run(scripting, turns)).toEqual(worked(3, { "one.txt": "apple\n" }));
    });

    test("that breaks off is asked again", async () => {
      expect(await run(model, [{ text: "I begin and then", cut: true }, done])).toEqual(worked(2, {}));
    });
  });
}

function configTo(protocol: string): string {
  const able = "capabilities: [tools, parallel_tools, vision, reasoning, structured_output]";
  const room = "context_window: 131072, max_output_tokens: 16384";
  const prices = "prices: { input: 0.1, cached_input: 0.01, cache_write: 0.125, output: 0.4 }";
  const entry = (id: string) => {
    const routes = `routes: [{ upstream: second, model: "${id}" }]`;
    return `  - { id: "${id}", owned_by: acme, created: 1790000000, ${room}, ${able}, ${prices}, ${routes} }`;
  };
  return [
    "upstreams:",
    `  second: { url: "${back.url}/v1", protocol: ${protocol}, api_key: "\${ENGINE_KEY}" }`,
    "metering: { currency: USD }",
    "models:",
    ...[model, patching, scripting].map(entry),
    "plans: { pro: {} }",
    "",
  ].join("\n");
}

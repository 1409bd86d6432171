/**
 * pi, unchanged, against the service in front of an engine that follows a script: `npm run test:clients -- pi`. pi
 * assigns each delta to the latest item of a stream, so if items overlapped, it would run a wrong command. Therefore
 * the tests check that each command is run exactly once: each writes a line, and the lines are counted.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService } from "../../harness/engine.ts";
import { type ScriptedEngine, startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { apis, runAgent } from "./agent.ts";

setDefaultTimeout(120_000);

let engine: ScriptedEngine;
let service: Service;
beforeAll(async () => {
  engine = startScriptedEngine();
  service = await startService({ engineUrl: engine.url });
});
afterAll(async () => {
  await service.stop();
  engine.stop();
});

const done: Turn = { text: "It is all done." };
const bash = (command: string) => ({ name: "bash", arguments: { command } });
/** Generates this many commands, each of which writes a line into a file of its own and prints that it did. */
const commands = (count: number) =>
  Array.from({ length: count }, (_, at) => bash(`echo line-${at} >> ${at}.txt; echo ${at} is written`));
const written = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}.txt`, `line-${at}\n`]));

const turns: [string, number, Turn][] = [
  ["two commands in one answer", 2, {}],
  ["two commands whose fragments the engine interleaves", 2, { interleaved: true }],
  ["five commands after reasoning and text", 5, { reasoning: "One first.", text: "I write." }],
];

describe.each(apis)("by %s", (api) => {
  test.each(turns)("runs %s, each once", async (_, count, turn) => {
    engine.play([{ ...turn, calls: commands(count) }, done]);
    const ended = await runAgent({ url: service.url, key: service.key, model, api, prompt: "Do the work." });
    expect(ended.files).toEqual(written(count));
    expect(ended).toMatchObject({ code: 0, answer: done.text! });
    expect(ended.asked.map(({ status }) => status)).toEqual([200, 200]);
    const results = engine.asked.at(-1)!.messages.filter(({ role }) => role === "tool");
    expect(results.map(({ content }) => content)).toEqual(
      Array.from({ length: count }, (_, at) => expect.stringContaining(`${at} is written`)),
    );
  });
});

/**
 * Nine pairs over real sockets, for the order of a stream: a service is asked in each protocol, with an engine of each
 * protocol that sends its parts in order or interleaved, and sends the client one part at a time.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startResponsesEngine } from "../../harness/responses-engine.ts";
import { startSluice } from "../../harness/sluice.ts";
import { answerOf, answers, framesOf, kindsTold, messagesOf, orderProblem, orders } from "../protocol/pairs/parts.ts";
import { clientNames, type EngineName, engineNames, engines, wires } from "../protocol/pairs/wires.ts";

setDefaultTimeout(60_000);

const engine = startResponsesEngine();
const upstream = (name: EngineName) => `  ${name}: { url: "${engine.url}", protocol: ${engines[name].protocol} }`;
const entry = (name: EngineName) => `  - id: acme/${name}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    capabilities: [tools, parallel_tools, reasoning]
    prices: { input: 0.1, cached_input: 0.01, output: 0.4 }
    routes: [{ upstream: ${name}, model: m }]`;
const config = [
  "upstreams:",
  ...engineNames.map(upstream),
  "metering: { currency: USD }",
  "models:",
  ...engineNames.map(entry),
  "plans: { pro: {} }",
  "",
];
const service = await startSluice({ config: config.join("\n") });
afterAll(async () => {
  await service?.stop();
  engine.stop();
});

describe.each(clientNames.flatMap((client) => engineNames.map((of) => [client, of] as const)))(
  "a client of %s in front of an engine of %s",
  (client, of) => {
    test.each(Object.keys(orders))("is told of one part at a time: engines tell %s", async (order) => {
      for (const parts of Object.values(answers)) {
        engine.plays({ stream: framesOf(of, parts, order).join(""), whole: null });
        const ask = { instructions: "Be brief.", question: "Go on.", tools: ["f0", "f1", "f2", "f3", "f4"] };
        const body = { ...wires[client].body(ask), model: `acme/${of}`, stream: true };
        const response = await service.post(wires[client].path, body);
        const frames = messagesOf(await response.text());
        expect(orderProblem[client](frames)).toBeNull();
        expect(wires[client].readFrames(frames)).toEqual(answerOf(parts, "tool_calls"));
        const kinds = parts.map(({ kind }) => kind);
        expect(kindsTold[client](frames) ?? kinds).toEqual(kinds);
      }
    });
  },
);

/**
 * An engine dies in the middle of a text, and another continues it: the caller sees one answer, and pays for it once.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { eventsOf as framesOf, says } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { startSimulator } from "../../harness/simulator.ts";
import { startSluice } from "../../harness/sluice.ts";

setDefaultTimeout(60_000);

const [going, plain, other, twice] = ["acme/going", "acme/plain", "acme/other", "acme/twice"];
const question = "[simulator: tokens=40] Tell me of sluices.";
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];

const dying = { namesModel: false, directives: "cut-after=12" };
const [well, unable] = [await startSimulator({ namesModel: false }), await startSimulator({ namesModel: false })];
/** Engines by the names of their upstreams. */
const engines = {
  dying: await startSimulator(dying),
  // A second dying engine, because an engine that fails repeatedly is not used for a while.
  "dying-too": await startSimulator(dying),
  // Two engines that can continue an answer but die as well.
  "failing-1": await startSimulator(dying),
  "failing-2": await startSimulator(dying),
  // An engine that could answer, but cannot continue another's answer.
  unable,
  well,
};
const upstreams = Object.entries(engines).map(
  ([name, { url }]) => `\n  ${name}: { url: "${url}", protocol: openai-chat }`,
);
const failing = ["failing-1", "failing-2", "well"].map((name) => `${name}, continue: true`);
const model = (id: string, routes: string[]) => `
  - id: ${id}
    created: 1790000000
    context_window: 131072
    capabilities: [tools, structured_output]
    prices: { input: 0.1, output: 0.4 }
    routes: [${routes.map((upstream, priority) => `{ model: writer, priority: ${priority}, upstream: ${upstream} }`).join(", ")}]`;
const config = `
upstreams:${upstreams.join("")}
metering: { currency: USD }
models:${model(going, ["dying", "unable", "well, continue: true"])}${model(plain, ["dying", "well"])}${model(other, ["dying-too", "well, continue: true"])}${model(twice, failing)}
plans: { pro: {} }
`;
const sluice = await startSluice({ config });
afterAll(async () => {
  await sluice.stop();
  await Promise.all(Object.values(engines).map((engine) => engine.stop()));
});

/** The text of an engine that does not die. */
async function wholeText(): Promise<string> {
  const body = { model: "writer", messages: [{ role: "user", content: question }] };
  const response = await fetch(`${well.url}/chat/completions`, { method: "POST", body: JSON.stringify(body) });
  return ((await response.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content;
}

const receiptOf = (response: Response) => endedReceipt(sluice, requestIdOf(response));

const asks = (model: string, more: object = {}) => ({
  ...{ model, stream: true, messages: [{ role: "user", content: question }] },
  ...more,
});
const chat = (body: object) => sluice.post("/v1/chat/completions", body);

describe("a text goes on at another engine", () => {
  test("in each protocol, as one answer with one record that is paid once", async () => {
    const text = await wholeText();
    for (const [path, body] of [
      ["/v1/chat/completions", asks(going)],
      ["/v1/messages", asks(going, { max_tokens: 100 })],
      ["/v1/responses", { model: going, stream: true, input: question }],
    ] as const) {
      const response = await sluice.post(path, body);
      expect([path, textIn(await response.text())]).toEqual([path, text]);
      const receipt = await receiptOf(response);
      expect(receipt).toMatchObject({ outcome: "completed", attempts: 2, continued: true, error_code: null });
      const { input_tokens, output_tokens } = receipt.usage;
      expect(nanosOf(receipt.cost.charged)).toBe(100 * input_tokens + 400 * output_tokens);
      // The engine that continued was also sent the text of the first one; the tokens of the caller's input do not
      // include that text.
      expect(Math.abs(input_tokens - 18)).toBeLessThan(12);
      expect(Math.abs(output_tokens - 40)).toBeLessThan(15);
    }
    expect(unable.counts.requests).toBe(0);
  });

  test("which is given what was said, as the engine's fields have it", async () => {
    const response = await chat(asks(going));
    await response.text();
    const sent = well.requests.at(-1)!.body as Record<string, unknown> & {
      messages: { role: string; content: string }[];
    };
    expect(sent).toMatchObject({ continue_final_message: true, add_generation_prompt: false });
    const [, said] = sent.messages;
    expect(said?.role).toBe("assistant");
    expect((await wholeText()).startsWith(said!.content)).toBe(true);
    expect(said!.content).toBe(said!.content.trimEnd());
  });

  test("which is none that has failed in the middle of it, however many have", async () => {
    const response = await chat(asks(twice));
    expect(textIn(await response.text())).toBe(await wholeText());
    expect(await receiptOf(response)).toMatchObject({ outcome: "completed", attempts: 3, continued: true });
    expect([engines["failing-1"], engines["failing-2"]].map(({ counts }) => counts.requests)).toEqual([1, 1]);
  });
});

describe("an answer does not go on", () => {
  const broken = async (body: object) => {
    const asked = well.counts.requests;
    const response = await chat(body);
    const frames = await framesOf(response);
    expect(frames.filter((frame) => frame.includes('"error"'))).toHaveLength(1);
    expect(well.counts.requests).toBe(asked);
    expect(await receiptOf(response)).toMatchObject({ outcome: "failed", continued: false });
  };

  test("where no route says that its engine can", () => broken(asks(plain)));
  test("in the middle of a call", () => {
    const call = `call=look:${btoa(JSON.stringify({ a: question.repeat(4) }))}`;
    return broken(asks(other, { tools, messages: says(call, "") }));
  });
});

/** The text in a stream of any protocol. */
function textIn(stream: string): string {
  const events = [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!) as Said);
  const pieces = events.map(({ choices, delta }) => choices?.[0]?.delta?.content ?? delta);
  return pieces.map((piece) => (typeof piece === "object" ? piece.text : piece) ?? "").join("");
}
interface Said {
  choices?: { delta?: { content?: string } }[];
  delta?: string | { text?: string };
}

/** An engine dies in the middle of a text, and another goes on: the caller sees one answer, and pays once for it. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { eventsOf as framesOf } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { eventsOf, finalOf, textOf } from "../../harness/responses.ts";
import { startSimulator } from "../../harness/simulator.ts";
import { startSluice } from "../../harness/sluice.ts";

setDefaultTimeout(60_000);

const [going, plain, lost, other, twice] = ["acme/going", "acme/plain", "acme/lost", "acme/other", "acme/twice"];
const question = "[simulator: tokens=40] Tell me of sluices.";
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];

const dying = await startSimulator({ namesModel: false, directives: "cut-after=12" });
/** A second dying engine, because an engine that fails again and again is not used for a while. */
const dyingToo = await startSimulator({ namesModel: false, directives: "cut-after=12" });
/** Two engines that can continue an answer but die as well. */
const failing = await Promise.all([1, 2].map(() => startSimulator({ namesModel: false, directives: "cut-after=12" })));
const well = await startSimulator({ namesModel: false });
/** An engine that could answer, but cannot continue another's answer. */
const unable = await startSimulator({ namesModel: false });
/** An engine that fails before its first word. */
const silent = await startSimulator({ namesModel: false, directives: "status=500" });
const model = (id: string, routes: string[]) => `
  - id: ${id}
    created: 1790000000
    context_window: 131072
    capabilities: [tools, structured_output]
    prices: { input: 0.1, output: 0.4 }
    routes: [${routes.map((upstream, priority) => `{ model: writer, priority: ${priority}, upstream: ${upstream} }`).join(", ")}]`;
const config = `
upstreams:
  dying: { url: "${dying.url}", protocol: openai-chat }
  dying-too: { url: "${dyingToo.url}", protocol: openai-chat }
  failing-1: { url: "${failing[0]!.url}", protocol: openai-chat }
  failing-2: { url: "${failing[1]!.url}", protocol: openai-chat }
  unable: { url: "${unable.url}", protocol: openai-chat }
  silent: { url: "${silent.url}", protocol: openai-chat }
  well: { url: "${well.url}", protocol: openai-chat }
metering: { currency: USD }
models:${model(going, ["dying", "unable", "well, continue: true"])}${model(plain, ["dying", "well"])}${model(other, ["dying-too", "well, continue: true"])}${model(lost, ["dying", "silent, continue: true"])}${model(
  twice,
  ["failing-1", "failing-2", "well"].map((name) => `${name}, continue: true`),
)}
plans: { pro: {} }
`;
const sluice = await startSluice({ config });
afterAll(async () => {
  await sluice.stop();
  await Promise.all([unable, dying, dyingToo, ...failing, well, silent].map((engine) => engine.stop()));
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
    const answers: [string, object, (response: Response) => Promise<string>][] = [
      ["/v1/chat/completions", asks(going), async (response) => chatText(await framesOf(response))],
      ["/v1/messages", asks(going, { max_tokens: 100 }), async (response) => messagesText(await response.text())],
      [
        "/v1/responses",
        { model: going, stream: true, input: question },
        async (response) => textOf(finalOf(await eventsOf(response))),
      ],
    ];
    for (const [path, body, read] of answers) {
      const response = await sluice.post(path, body);
      expect([path, await read(response)]).toEqual([path, text]);
      const receipt = await receiptOf(response);
      expect(receipt).toMatchObject({ outcome: "completed", attempts: 2, continued: true, error_code: null });
      const { input_tokens, output_tokens } = receipt.usage;
      expect(nanosOf(receipt.cost.charged)).toBe(100 * input_tokens + 400 * output_tokens);
      // The engine that went on was also sent what the first one had said; the caller's input has not grown by it.
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
    expect(chatText(await framesOf(response))).toBe(await wholeText());
    expect(await receiptOf(response)).toMatchObject({ outcome: "completed", attempts: 3, continued: true });
    expect(failing.map(({ counts }) => counts.requests)).toEqual([1, 1]);
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
  test("in the middle of a call", () =>
    broken(
      asks(other, {
        tools,
        messages: [
          { role: "user", content: `[simulator: call=look:${btoa(JSON.stringify({ a: question.repeat(4) }))}]` },
        ],
      }),
    ));
});

function chatText(frames: readonly string[]): string {
  const deltas = frames.filter((frame) => frame !== "[DONE]").map((frame) => JSON.parse(frame) as Chunk);
  return deltas.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join("");
}
interface Chunk {
  choices?: { delta?: { content?: string } }[];
}

function messagesText(stream: string): string {
  const deltas = [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as Delta);
  return deltas.map(({ delta }) => delta?.text ?? "").join("");
}
interface Delta {
  delta?: { text?: string };
}

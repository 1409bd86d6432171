/** Unusual responses of engines to completions: an echo of the prompt, and tokens that have no text of their own. */
import { afterAll, describe, expect, test } from "bun:test";
import { eventsOf, startService, words } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { modelEntry } from "./model-entry.ts";

interface Choice {
  index: number;
  text: string;
  logprobs?: { tokens: string[]; token_logprobs: number[] } | null;
  finish_reason: string | null;
}
interface Chunk {
  choices?: Choice[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
}

/** The odd engine's answer to the next request: whole, or the chunks of a stream. */
let said: Chunk | object[] = [];
const odd = Bun.serve({
  port: 0,
  fetch() {
    if (!Array.isArray(said)) return Response.json(said);
    const events = [...said.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`);
    return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
  },
});
const model = "acme/odd-1";
const service = await startService({
  engine: { directives: "" },
  upstream: `dialect: generic\n  odd:\n    url: "http://127.0.0.1:${odd.port}/v1"\n    dialect: vllm`,
  extraModels: modelEntry(model, "completion", "odd", { prices: { input: 0.1, output: 0.4 } }),
});
afterAll(async () => {
  await service.stop();
  await odd.stop(true);
}, 60_000);

/** A chunk, or a whole response, with this choice. */
const chunk = (text: string, finish_reason: string | null = null): Chunk & { choices: Choice[] } => ({
  choices: [{ index: 0, text, finish_reason }],
});
const complete = (body: object) => service.post("/v1/completions", { model, ...body });

const chunksOf = async (response: Response): Promise<Chunk[]> => {
  const events = await eventsOf(response);
  expect(events.at(-1)).toBe("[DONE]");
  return events.slice(0, -1).map((event) => JSON.parse(event) as Chunk);
};
const choicesOf = async (response: Response) => (await chunksOf(response)).flatMap(({ choices = [] }) => choices);
const textOf = (choices: readonly Choice[]) => choices.map(({ text }) => text).join("");

describe("an echo of the prompt is not counted as output", () => {
  const prompt = words(400);
  const ids = Array.from({ length: 400 }, (_, at) => at);
  const usage = { prompt_tokens: 400, completion_tokens: 1 };
  const charged = async (response: Response) => {
    const receipt = await endedReceipt(service, requestIdOf(response));
    expect(receipt).toMatchObject({ usage: { input_tokens: 400, output_tokens: 1, source: "reported" } });
    return nanosOf(receipt.cost.charged);
  };
  const asked = { max_tokens: 1, echo: true, logprobs: 1 };

  test("but what a few token ids cannot be is output, where the engine reports nothing", async () => {
    const few = { prompt: [1, 2, 3], echo: true, max_tokens: 600 };
    const countedOf = async (response: Response) => {
      await response.text();
      return (await endedReceipt(service, requestIdOf(response))).usage.output_tokens;
    };
    said = chunk(prompt, "stop");
    expect(await countedOf(await complete(few))).toBeGreaterThan(200);
    said = [chunk(prompt), chunk("", "stop")];
    expect(await countedOf(await complete({ ...few, stream: true }))).toBeGreaterThan(200);
  });

  for (const [form, sent] of [
    ["a text", prompt],
    ["token ids", ids],
  ] as const) {
    test(`of ${form}, in a whole answer`, async () => {
      said = { ...chunk(`${prompt} on`, "length"), usage };
      const response = await complete({ ...asked, prompt: sent });
      const { choices, usage: told } = (await response.json()) as Chunk;
      expect([textOf(choices!), told]).toEqual([`${prompt} on`, expect.objectContaining(usage)]);
      expect(await charged(response)).toBe(400 * 100 + 400);
    });

    test(`of ${form}, in the first chunk of a stream`, async () => {
      said = [chunk(`${prompt} on`), chunk("", "length"), { choices: [], usage }];
      const response = await complete({ ...asked, prompt: sent, stream: true });
      expect(textOf(await choicesOf(response))).toBe(`${prompt} on`);
      expect(await charged(response)).toBe(400 * 100 + 400);
    });
  }

  test("wherever an engine cuts it", async () => {
    const cut = [prompt.slice(0, 700), prompt.slice(700, 701), `${prompt.slice(701)} on`];
    said = [...cut.map((text) => chunk(text)), { ...chunk("", "length"), usage }];
    const response = await complete({ ...asked, prompt, stream: true });
    expect(textOf(await choicesOf(response))).toBe(`${prompt} on`);
    expect(await charged(response)).toBe(400 * 100 + 400);
  });

  test("and a text that only begins like the prompt is output as a whole", async () => {
    const texts = [prompt.slice(0, 1000), words(300)];
    said = [...texts.map((text) => chunk(text)), { ...chunk("", "stop"), usage }];
    const response = await complete({ ...asked, max_tokens: 600, prompt, stream: true });
    expect(textOf(await choicesOf(response))).toBe(texts.join(""));
    const { usage: counted } = await endedReceipt(service, requestIdOf(response));
    expect(counted.output_tokens).toBeGreaterThan(200);
  });
});

describe("a stream", () => {
  test("has the log probabilities of tokens without text: first bytes of a character, and the token of the end", async () => {
    const token = (text: string, name: string, at: number) => ({
      choices: [{ ...chunk(text).choices[0]!, logprobs: { tokens: [name], token_logprobs: [-at] } }],
    });
    said = [token("", "bytes:e6", 1), token("日", "bytes:97a5", 2), token("", "</s>", 3), chunk("", "stop")];
    const response = await complete({ prompt: "a", max_tokens: 9, logprobs: 0, stream: true });
    const choices = await choicesOf(response);
    expect(textOf(choices)).toBe("日");
    expect(choices.flatMap(({ logprobs }) => logprobs?.tokens ?? [])).toEqual(["bytes:e6", "bytes:97a5", "</s>"]);
    expect(choices.flatMap(({ logprobs }) => logprobs?.token_logprobs ?? [])).toEqual([-1, -2, -3]);
    expect(choices.map(({ finish_reason }) => finish_reason)).toEqual([null, null, null, "stop"]);
  });

  test("may report its usage in a chunk without choices", async () => {
    said = [chunk("on", "stop"), { usage: { prompt_tokens: 3, completion_tokens: 1 } }];
    const response = await complete({ prompt: "a b c", stream: true });
    expect(textOf(await choicesOf(response))).toBe("on");
    const { outcome, usage } = await endedReceipt(service, requestIdOf(response));
    expect([outcome, usage.input_tokens, usage.source]).toEqual(["completed", 3, "reported"]);
  });

  test.each([
    ["an object that is an error", { object: "error", message: "CUDA out of memory", code: 500 }],
    ["a message alone", { message: "The engine is gone." }],
    ["neither choices nor usage", { object: "text_completion", usage: null }],
    ["an error", { error: { message: "No memory." } }],
  ])("that ends with %s fails, although [DONE] follows", async (_, error) => {
    said = [chunk("Hel"), error];
    const response = await complete({ prompt: "a b c", stream: true });
    // The failure is an event, or the whole answer if nothing was sent before.
    const body = await response.text();
    expect(body).toContain('"error":{');
    expect(body).not.toContain('"finish_reason":"stop"');
    expect((await endedReceipt(service, requestIdOf(response))).outcome).toBe("failed");
  });
});

// `npm run conformance`: our own server keeps every rule, over real sockets; and for each rule there is an answer that
// breaks it.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatSuite } from "../../proof/conformance/chat.ts";
import { conformance } from "../../proof/conformance/command.ts";
import { examine, type Finding, judged } from "../../proof/conformance/examine.ts";
import { type Ask, asking, type Exchange } from "../../proof/conformance/exchange.ts";
import { messagesSuite } from "../../proof/conformance/messages.ts";
import { responsesSuite } from "../../proof/conformance/responses.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";

const model = "qwen/qwen3-32b";
const suites = [chatSuite(model), messagesSuite(model), responsesSuite(model)];

let sluice: Sluice;
const exchanges = new Map<object, Exchange>();
const findings: Finding[] = [];

beforeAll(async () => {
  sluice = await startSluice();
  const ask = asking(new URL(`${sluice.url}/v1/`), sluice.key, 20_000);
  const remembered: Ask = async (request) => {
    const exchange = await ask(request);
    exchanges.set(request, exchange);
    return exchange;
  };
  for (const suite of suites) findings.push(...(await examine(suite, remembered, true)));
}, 60_000);
afterAll(() => sluice.stop());

test("our own server keeps every rule of every protocol", () => {
  expect(findings.filter(({ result }) => result !== "kept")).toEqual([]);
  expect(findings.length).toBeGreaterThan(100);
});

/** Ways to damage an answer, each of which some client would trip over. */
const damages: ((exchange: Exchange) => Exchange)[] = [
  (exchange) => ({ ...exchange, json: {}, messages: [] }),
  (exchange) => ({ ...exchange, headers: { "content-type": "application/json" } }),
  ...[0, 1, -1, -2, -3].map((place) => (exchange: Exchange) => {
    const messages = exchange.messages.toSpliced(place, 1);
    return { ...exchange, messages };
  }),
  (exchange) => ({ ...exchange, messages: exchange.messages.concat(exchange.messages) }),
  (exchange) => ({ ...exchange, messages: exchange.messages.map((message) => ({ ...message, event: "other" })) }),
  (exchange) => ({ ...exchange, messages: exchange.messages.map((message) => ({ ...message, data: "{" })) }),
  textReplaced(/"delta":"[^"]+"/, '"delta":"something else"'),
  textReplaced(/"index":0/, '"index":7'),
  textReplaced(/"usage":null/, '"usage":{"prompt_tokens":1}'),
  textReplaced(/"choices":/, '"usage":{"prompt_tokens":1},"choices":'),
  textReplaced(/"(output|completion|total|input)_tokens":\d+/, '"$1_tokens":"many"'),
];

function textReplaced(find: RegExp, replacement: string) {
  return (exchange: Exchange): Exchange => ({
    ...exchange,
    messages: exchange.messages.map((message) => ({ ...message, data: message.data.replace(find, replacement) })),
  });
}

describe("every rule can be broken", () => {
  for (const suite of suites)
    test(`of ${suite.protocol}`, () => {
      const never = suite.cases.flatMap((one) => {
        const exchange = exchanges.get(one.request)!;
        const broken = new Set(
          damages.flatMap((damage) =>
            judged(suite, one, damage(exchange))
              .filter(({ result }) => result === "broken")
              .map(({ rule }) => rule),
          ),
        );
        return one.rules.filter(({ id }) => !broken.has(id)).map(({ id }) => `${one.name}: ${id}`);
      });
      expect(never).toEqual([]);
    });
});

async function typed(words: string): Promise<{ code: number; out: string; err: string }> {
  const said = { out: "", err: "" };
  const code = await conformance(words.split(" "), {
    key: null,
    out(text) {
      said.out += text;
    },
    err(text) {
      said.err += text;
    },
  });
  return { code, ...said };
}

describe("the command", () => {
  test("asks the first model of the list, and says that all is well", async () => {
    const { code, out } = await typed(`${sluice.url} --key ${sluice.key}`);
    expect([code, out]).toEqual([0, expect.stringMatching(/Responses: \d+ rules kept, 0 broken, 0 unchecked/)]);
  });

  test("shows request, answer, rule and source of what is broken, and exits with 1", async () => {
    const wrong = Bun.serve({
      port: 0,
      fetch: ({ url }) =>
        url.endsWith("/chat/completions") ? Response.json({ id: 7 }) : new Response(null, { status: 404 }),
    });
    try {
      const { code, out } = await typed(`http://127.0.0.1:${wrong.port}/v1 --model one`);
      expect(code).toBe(1);
      expect(out).toContain("found    `object` is nothing");
      expect(out).toContain("source   OpenAI API reference, Chat completions");
      expect(out).toContain('answer   200 {"id":7}');
      expect(out).toContain("Messages: 0 rules kept, 0 broken");
      expect(out).toContain("the protocol isn't served, or the model isn't there (404)");
      expect(out).toContain("no key was given");
      const json = await typed(`http://127.0.0.1:${wrong.port}/v1 --model one --json`);
      const report = JSON.parse(json.out) as { findings: { answer?: { text: string } }[] };
      expect(report.findings.find(({ answer }) => answer)?.answer?.text).toBe('{"id":7}');
    } finally {
      await wrong.stop(true);
    }
  });

  test("says what is wrong with its words, and with a server that doesn't answer", async () => {
    expect(await typed("ftp://example")).toMatchObject({ code: 2 });
    const { code, err } = await typed("http://127.0.0.1:1");
    expect([code, err]).toEqual([1, expect.stringContaining("name a model with --model")]);
  });
});

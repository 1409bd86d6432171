/**
 * Unusual responses of engines. An invalid one fails, costs nothing, and another engine is tried; a valid one is passed
 * on unchanged.
 */
import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Sieve } from "../../../src/features/operations/sieve.ts";
import { refusalOf, startService } from "../../harness/engine.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";
import { modelEntry } from "./model-entry.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The body of the fake engine's response to the next request. */
let said: string | ReadableStream<Uint8Array> = "";
const odd = Bun.serve({
  port: 0,
  fetch: () => new Response(said, { headers: { "content-type": "application/json" } }),
});
const [alone, spared] = ["acme/odd-1", "acme/spared-1"];
const routes = [
  { upstream: "odd", model: "odd" },
  { upstream: "simulator", model: "sim", priority: 1 },
];
const service = await startService({
  hasKinds: true,
  engine: { directives: "" },
  upstream: `dialect: generic\n  odd:\n    url: "http://127.0.0.1:${odd.port}/v1"`,
  extraModels: modelEntry(alone, "embedding", "odd") + modelEntry(spared, "embedding", "odd", { routes }),
});
afterAll(async () => {
  await service.stop();
  await odd.stop(true);
}, 60_000);

const embed = (model: string) => service.post("/v1/embeddings", { model, input: ["a", "b"] });
const vector = (index: number, embedding = "[0.5,-1e-3]") =>
  `{"index":${index},"object":"embedding","embedding":${embedding},"secret":{"a":[1,"]"]}}`;
const unnumbered = '{"object":"embedding","embedding":[0.5,1]}';
const answer = (items: string[], more = "") => `{"object":"list","data":[${items.join(",")}]${more}}`;

describe("an answer that fails, and for which another engine is asked:", () => {
  for (const [what, body] of [
    ["fewer vectors than inputs", answer([vector(0)])],
    ["more vectors than inputs", answer([vector(0), vector(1), vector(2)])],
    ["an index twice", answer([vector(0), vector(0)])],
    ["an index beyond the inputs", answer([vector(0), vector(2)])],
    ["an index that is another one's place", answer([unnumbered, vector(0)])],
    ["an index of null", answer([vector(0), vector(1).replace("1", "null")])],
    ["NaN", answer([vector(0, "[NaN]"), vector(1)])],
    ["a text in a vector", answer([vector(0, '[1,"2"]'), vector(1)])],
    ["an empty vector", answer([vector(0, "[]"), vector(1)])],
    ["vectors of different lengths", answer([vector(0), vector(1, "[1]")])],
    ["no list", '{"object":"list"}'],
    ["half of an answer", answer([vector(0), vector(1)]).slice(0, -9)],
    ["no JSON", "<html></html>"],
    ["an item of a thousand fields", answer([`{${Array.from({ length: 1000 }, (_, at) => `"f${at}":1`)},"index":0}`])],
    ["two lists", `{"data":[${vector(0)},${vector(1)}],"data":[]}`],
  ] as const)
    test(what, async () => {
      said = body;
      const failed = await embed(alone);
      expect(await refusalOf(failed)).toEqual([503, "upstream_unavailable", null]);
      expect(await endedReceipt(service, requestIdOf(failed))).toMatchObject({
        outcome: "failed",
        cost: { charged: dollars(0) },
      });
      const saved = await embed(spared);
      expect(saved.status).toBe(200);
      expect(((await saved.json()) as { data: unknown[] }).data).toHaveLength(2);
    }, 60_000);
});

describe("with 'dimensions',", () => {
  const packed = (count: number) => Buffer.from(new Float32Array(count).fill(-3.4e38).buffer).toString("base64");
  const floats = (count: number) => JSON.stringify(Array(count).fill(0.5));
  const asks = (dimensions: number | undefined, first: string, second: string) => {
    said = answer([vector(0, first), vector(1, second)]);
    return service.post("/v1/embeddings", { model: alone, input: ["a", "b"], dimensions });
  };
  const text = (count: number) => JSON.stringify(packed(count));

  for (const [what, dimensions, first, second, status] of [
    ["floats of that length", 3, floats(3), floats(3), 200],
    ["floats of another length", 3, floats(4), floats(4), 400],
    ["base64 of one number less", 3, text(2), text(2), 400],
    ["base64 of one number more", 3, text(4), text(4), 400],
    ["base64 that is no list of 32-bit floats", 3, '"AAAAAAAAAAAAAAAAAAAA"', '"AAAAAAAAAAAAAAAAAAAA"', 503],
    ["base64 of different lengths, asked for or not", undefined, text(3), text(4), 503],
    ["an empty base64", undefined, '""', '""', 503],
  ] as const)
    test(`${what}: ${status}`, async () => {
      const response = await asks(dimensions, first, second);
      expect(response.status).toBe(status);
      if (status !== 200)
        expect(await endedReceipt(service, requestIdOf(response))).toMatchObject({ cost: { charged: dollars(0) } });
    });

  test("base64 of that length passes as it is, with and without padding, and with escapes: 200", async () => {
    for (let count = 1; count <= 12; count++) {
      const unpadded = JSON.stringify(packed(count).replaceAll("=", ""));
      const escaped = text(count).replaceAll("n", "\\u006e").replaceAll("/", "\\/");
      for (const written of [text(count), unpadded, escaped]) {
        const response = await asks(count, text(count), written);
        expect([count, written, response.status]).toEqual([count, written, 200]);
        expect(await response.text()).toContain(written);
      }
    }
  });
});

const packed = '"AAAAAA=="';

test("vectors of another length than was asked for are the request's fault, and not the engine's, which goes on", async () => {
  for (let round = 0; round < 6; round++) {
    // The vectors are shorter than the model's: once as a list of two numbers, once as the base64 of one number.
    said = answer(round % 2 === 0 ? [vector(0), vector(1)] : [vector(0, packed), vector(1, packed)]);
    const refused = await service.post("/v1/embeddings", { model: alone, input: ["a", "b"], dimensions: 8 });
    expect(await refusalOf(refused)).toEqual([400, "unsupported_feature", "dimensions"]);
    expect(nanosOf((await endedReceipt(service, requestIdOf(refused))).cost.charged)).toBe(0);
  }
  said = answer([vector(0), vector(1)]);
  expect((await embed(alone)).status).toBe(200);
});

test("vectors stay byte for byte, in the engine's order, and nothing else of the engine passes", async () => {
  said = answer(
    [vector(1, "[ 1.0, -0.10E+2 ]"), vector(0, '"AAAAAAAAAAA="')],
    ',"usage":{"prompt_tokens":5},"x":{"y":[]}',
  );
  const response = await embed(alone);
  expect(await response.text()).toBe(
    `{"object":"list","data":[{"index":1,"object":"embedding","embedding":[ 1.0, -0.10E+2 ]},{"index":0,"object":"embedding","embedding":"AAAAAAAAAAA="}],"model":"${alone}","usage":{"prompt_tokens":5,"total_tokens":5}}`,
  );
});

describe("vectors that are asked for in base64, and that the engine writes as lists,", () => {
  const packedOf = (numbers: number[]) => Buffer.from(new Float32Array(numbers).buffer).toString("base64");
  const asks = (dimensions?: number) =>
    service.post("/v1/embeddings", { model: alone, input: ["a", "b"], encoding_format: "base64", dimensions });

  test("come in base64, beside one that the engine has written so", async () => {
    said = answer(
      [vector(1, "[ 1.0, -0.10E+2,0.1 ]"), vector(0, '"AAAAAAAAAAAAAAAA"')],
      ',"usage":{"prompt_tokens":5}',
    );
    const response = await asks(3);
    expect(await response.text()).toBe(
      `{"object":"list","data":[{"index":1,"object":"embedding","embedding":"${packedOf([1, -10, 0.1])}"},{"index":0,"object":"embedding","embedding":"AAAAAAAAAAAAAAAA"}],"model":"${alone}","usage":{"prompt_tokens":5,"total_tokens":5}}`,
    );
  });

  test("stay checked: their length, their numbers, and what a 32-bit float can hold", async () => {
    for (const [first, dimensions, status] of [
      ["[0.5,1,2]", undefined, 503],
      ["[0.5,1]", 3, 400],
      ["[]", undefined, 503],
      ['[0.5,"1"]', undefined, 503],
      ["[0.5,[1]]", undefined, 503],
      ["[0.5,1e39]", undefined, 503],
      ["[0.5,1]", 2, 200],
    ] as const) {
      said = answer([vector(0, first), vector(1, "[0.5,1]")]);
      expect([first, (await asks(dimensions)).status]).toEqual([first, status]);
      // A valid response in between: failures in a row would stop requests to the engine.
      said = answer([vector(0), vector(1)]);
      expect((await asks()).status).toBe(200);
    }
  });

  test("pass piece by piece if they are many", async () => {
    const numbers = Array.from({ length: 150_000 }, (_, at) => at / 7);
    said = answer([vector(0, JSON.stringify(numbers)), vector(1, JSON.stringify(numbers))]);
    const { data } = (await (await asks()).json()) as { data: { embedding: string }[] };
    expect(data.map(({ embedding }) => embedding === packedOf(numbers))).toEqual([true, true]);
  });
});

test("vectors without an index have that of their place: Gemini leaves out 0, others all", async () => {
  for (const items of [
    [unnumbered, vector(1)],
    [unnumbered, unnumbered],
  ]) {
    said = answer(items);
    const { data } = (await (await embed(alone)).json()) as { data: { index: number }[] };
    expect(data.map(({ index }) => index)).toEqual([0, 1]);
  }
});

test("fields that are left out are named once an hour in the log, and a null is none", async () => {
  const lines = () =>
    service
      .stderr()
      .split("\n")
      .filter((line) => line.includes("answer_part_left_out"));
  const named = () => lines().filter((line) => line.includes('"fields":["data.secret","warnings"]'));
  expect(named()).toEqual([]);
  said = answer([vector(0), vector(1)], ',"warnings":[],"nothing":null,"usage":{"prompt_tokens":5},"created":1');
  for (let at = 0; at < 3; at++) expect((await embed(alone)).status).toBe(200);
  await until(() => named().length > 0);
  // The log is written in order: once this later line is there, all of the earlier ones are.
  said = answer([vector(0), vector(1)], ',"other":1');
  expect((await embed(alone)).status).toBe(200);
  await until(() => lines().some((line) => line.includes('"fields":["data.secret","other"]')));
  expect(named()).toHaveLength(1);
  expect(named()[0]).toContain('"upstream":"odd"');
});

test("a large answer passes as it arrives; one that turns out to be wrong ends with its connection, and costs nothing", async () => {
  const long = `[${Array(150_000).fill("0.123456789").join(",")}]`;
  said = answer([vector(0, long), vector(1, long)], ',"usage":{"prompt_tokens":7}');
  const right = await embed(alone);
  const body = (await right.json()) as { data: { embedding: number[] }[]; usage: object };
  expect(body.data.map(({ embedding }) => embedding.length)).toEqual([150_000, 150_000]);
  expect(body.usage).toEqual({ prompt_tokens: 7, total_tokens: 7 });
  expect(nanosOf((await endedReceipt(service, requestIdOf(right))).cost.charged)).toBe(700);

  said = answer([vector(0, long)]);
  const wrong = await fetch(`${service.url}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: alone, input: ["a", "b"] }),
  });
  await expect(wrong.text().then(JSON.parse)).rejects.toThrow();
  expect(await endedReceipt(service, requestIdOf(wrong))).toMatchObject({
    outcome: "failed",
    cost: { charged: dollars(0) },
  });
}, 60_000);

test("a report that is the number of characters is not believed", async () => {
  const texts = ["A canal has locks.", "A gate has two sides."];
  said = answer([vector(0), vector(1)], `,"usage":{"prompt_tokens":${texts.join("").length}}`);
  const response = await service.post("/v1/embeddings", { model: alone, input: texts });
  const { usage } = await endedReceipt(service, requestIdOf(response));
  expect(usage.source).toBe("estimated");
  expect(usage.input_tokens).toBeLessThan(texts.join("").length);
});

test("however an answer is cut, its vectors in base64 have the numbers of its lists", () => {
  const item = fc.record({ index: fc.nat(), embedding: fc.array(fc.float({ noNaN: true, noDefaultInfinity: true })) });
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.nat(10_000)), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(fc.array(item), sizes, fc.constantFrom(0, 2), (data, cuts, indent) => {
      const sieve = new Sieve({
        ...{ list: "data", keeps: ["index", "embedding"], reads: ["index"], members: [] },
        packs: "embedding",
        item: () => "",
      });
      const bytes = encoder.encode(JSON.stringify({ data }, null, indent));
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = Math.max(1, cuts[turn % cuts.length]!);
        sieve.push(bytes.subarray(at, at + size));
        at += size;
      }
      sieve.end();
      const kept = JSON.parse(`[${decoder.decode(sieve.take())}]`) as { index: number; embedding: string }[];
      const floatsIn = (text: string) => [...new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer)];
      const plain = JSON.parse(JSON.stringify(data)) as typeof data;
      expect(kept.map(({ index, embedding }) => ({ index, embedding: floatsIn(embedding) }))).toEqual(plain);
    }),
  );
});

test("however an answer is cut, the same is kept of it, and any other input is an error or the same as JSON.parse has", () => {
  const kept = (text: string, sizes: readonly number[]) => {
    const numbers: (number | undefined)[] = [];
    const sieve = new Sieve({
      list: "data",
      keeps: ["index", "embedding"],
      reads: ["index"],
      members: ["usage"],
      item(fields) {
        numbers.push(fields.get("embedding")?.numbers);
        return "";
      },
    });
    const bytes = encoder.encode(text);
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const size = sizes[turn % sizes.length]!;
      sieve.push(bytes.subarray(at, at + size));
      at += size;
    }
    sieve.end();
    return { list: `[${decoder.decode(sieve.take())}]`, usage: sieve.members.get("usage"), numbers };
  };
  const item = fc.record({
    index: fc.nat(),
    embedding: fc.oneof(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })), fc.string({ unit: "binary" })),
    other: fc.jsonValue(),
  });
  // Chunks of various sizes, because a number within one chunk is parsed by other code than a number that is split
  // across two.
  const size = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 10_000 }));
  const sizes = fc.array(size, { minLength: 1, maxLength: 5 });
  const whole = fc.record({ data: fc.array(item), usage: fc.jsonValue(), x: fc.jsonValue() });
  fc.assert(
    fc.property(whole, sizes, fc.constantFrom(0, 2), (value, cuts, indent) => {
      const { list, usage, numbers } = kept(JSON.stringify(value, null, indent), cuts);
      const plain = JSON.parse(JSON.stringify(value)) as typeof value;
      expect(JSON.parse(list)).toEqual(plain.data.map(({ index, embedding }) => ({ index, embedding })));
      expect(usage).toEqual(plain.usage);
      expect(numbers).toEqual(value.data.map(({ embedding }) => (Array.isArray(embedding) ? embedding.length : -1)));
    }),
  );
  fc.assert(
    fc.property(whole, fc.nat(), fc.string({ maxLength: 2 }), sizes, (value, place, junk, cuts) => {
      const text = JSON.stringify(value);
      const at = place % text.length;
      const broken = text.slice(0, at) + junk + text.slice(at + 1);
      let isJson = true;
      try {
        JSON.parse(broken);
      } catch {
        isJson = false;
      }
      if (!isJson) expect(() => kept(broken, cuts)).toThrow();
    }),
  );
});

/**
 * A request that reaches an engine in the caller's own bytes means the same as the one that the service would have
 * serialized, and no other parser reads it differently.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { jsonPieces } from "../../../src/core/body/json-pieces.ts";
import { joinedBody, OwnBytes } from "../../../src/core/body/own-bytes.ts";
import { BodyScan } from "../../../src/core/body/scan.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { decodeRequest as decodeMessages } from "../../../src/core/protocol/anthropic-messages/decode-request.ts";
import { singleForms, type UpstreamCodec } from "../../../src/core/protocol/codec.ts";
import { parsedWithInputs } from "../../../src/core/protocol/tool-input.ts";
import { soundText, textOf, type Written, written } from "../../fuzz/json-text.ts";
import { cutAt } from "../../harness/cut.ts";
import { callers, upstreams, validated } from "../protocol/codecs.ts";
import { forAll } from "../protocol/for-all.ts";

type Fields = Record<string, unknown>;

function ownOf(
  text: string,
  cuts: readonly number[] = [],
  value: unknown = JSON.parse(text.replace(/^\ufeff/, "")),
): OwnBytes {
  const bytes = new TextEncoder().encode(text);
  const scan = new BodyScan();
  for (const piece of cutAt(bytes, cuts)) scan.take(piece);
  return new OwnBytes(bytes, scan.marks!, value);
}

/** The body that is sent to the engine, and the pieces of it that are in the caller's own bytes. */
function sent(own: OwnBytes, asked: Fields, forms = singleForms, bytes_min = 0): { text: string; handed: string[] } {
  const { rest, handed } = own.handOn(asked, forms, bytes_min);
  const text = Buffer.concat(joinedBody([...jsonPieces(rest)], handed)).toString();
  return { text, handed: handed.map((piece) => Buffer.from(piece).toString()) };
}

const ordinary = (asked: Fields) => JSON.parse(JSON.stringify(asked));

/** Whether a name repeats in an object: then the text has more members than the parsed value. */
function namesRepeat(text: string): boolean {
  const scan = new BodyScan();
  scan.take(new TextEncoder().encode(text));
  const count = (value: unknown): number => {
    if (typeof value !== "object" || value === null) return 0;
    const inside = Object.values(value).reduce((sum: number, item) => sum + count(item), 0);
    return inside + (Array.isArray(value) ? 0 : Object.keys(value).length);
  };
  return scan.members !== count(JSON.parse(text));
}

const body = (members: [string, Written][]) => ({
  members: [["model", "acme/one"], ...members] as [string, Written][],
});
const cuts = fc.array(fc.nat(), { maxLength: 6 });

/** Writes some letters of strings and names as escape sequences. */
const escaped = (text: string) =>
  text.replace(/"(?:[^"\\]|\\.)*"/g, (string, at: number) =>
    at % 3 === 0 ? string.replace(/(?<!\\)[a-m]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`) : string,
  );

describe("any body, cut anywhere", () => {
  const members = fc.array(fc.tuple(fc.constantFrom("a", "b", "__proto__", "messages", "tools"), written), {
    maxLength: 6,
  });
  /** Members in which the engine's request differs from the caller's. */
  const changes = fc.dictionary(
    fc.constantFrom("a", "b", "messages"),
    fc.oneof(fc.jsonValue(), fc.constant(undefined)),
    {
      maxKeys: 2,
    },
  );

  test("is the engine's question, whichever members are handed on", () => {
    let count = 0;
    forAll([members, fc.constantFrom("", " ", "\r\n\t"), changes, cuts], 5_000, (own, blank, changed, at) => {
      const text = escaped(`\ufeff${blank}${textOf(body(own), blank)}\n `);
      const asked = { ...JSON.parse(text.slice(1)), model: "engine", ...changed };
      const { text: question, handed } = sent(ownOf(text, at), asked);
      expect(JSON.parse(question)).toEqual(ordinary(asked));
      for (const piece of handed) expect(namesRepeat(`{${piece.slice(0, -1)}}`)).toBe(false);
      count += handed.length;
    });
    expect(count).toBeGreaterThan(1_000);
  });

  test("and something else is asked: nothing is taken for it", () => {
    forAll([soundText, fc.jsonValue()], 2_000, (text, other) => {
      const asked = { model: "engine", messages: other };
      const { text: question } = sent(ownOf(`{"messages":${text}}`), asked);
      expect(JSON.parse(question)).toEqual(ordinary(asked));
    });
  });
});

describe("a list", () => {
  const list = (text: string) => `{"model":"acme/one", "messages":${text}, "tools" : [ ] }`;
  const handedOf = (text: string, asked: Fields = { ...JSON.parse(list(text)), model: "engine" }) =>
    sent(ownOf(list(text)), asked).handed;

  test.each([
    ["an integer that no double holds", '[{"seed":9007199254740993}]'],
    ["both halves of a pair", '[{"content":"\\ud83d\\ude00"}]'],
    ["escapes, blanks, and a name in escapes", '[ { "r\\u006fle" : "us\\u0065r"\n}\t]'],
    ["names that repeat in different objects", '[{"a":{"a":[]}},{"a":1}]'],
    ["marks in strings", '[{"a":"{\\"b\\":1,\\\\"}]'],
  ])("with %s goes on as it was written", (_, text) => {
    expect(handedOf(text)).toEqual([` "messages":${text}, "tools" : [ ] }`]);
  });

  test.each([
    ["a name that repeats", '[{"content":"metered","content":"read"}]'],
    ["a name that repeats in escapes", '[{"content":"metered","c\\u006fntent":"read"}]'],
    ["a name that repeats deep inside", '[{"a":[[{"b":{"c":1,"d":2,"c":1}}]]}]'],
    ["a name that the parser's objects have by themselves", '[{"__proto__":{"a":1}}]'],
    ["a number beyond a double, which is written as null", '[{"a":1e999}]'],
  ])("with %s is written anew", (_, text) => {
    expect(handedOf(text)).toEqual([` "tools" : [ ] }`]);
  });

  test.each([
    ["a member less", '[{"role":"user","name":"n"}]', [{ role: "user" }]],
    ["a member more", '[{"role":"user"}]', [{ role: "user", name: "n" }]],
    ["another item", '["a","b"]', ["a"]],
    ["another kind", "[[]]", [{}]],
    ["another text", '[{"content":"a"}]', [{ content: "b" }]],
    ["null, which the caller left out", "[{}]", [{ content: null }]],
    ["nothing where the caller wrote null", '[{"content":null}]', [{ content: undefined }]],
  ])("of which the engine is asked %s is written anew", (_, text, messages) => {
    expect(handedOf(text, { model: "engine", messages })).toEqual([]);
  });

  test("whose name repeats is written anew, though both say the same", () => {
    const own = ownOf('{"messages":["a"],"model":"m","messages":["a"],"tools":["b"]}');
    const { handed, text } = sent(own, { model: "engine", messages: ["a"], tools: ["b"] });
    expect(handed).toEqual(['"tools":["b"]}']);
    expect(text).toBe('{"model":"engine","messages":["a"],"tools":["b"]}');
  });

  test("with a long number in a call's input is written anew, because a name might repeat beside it", () => {
    const text = '{"messages":[{"type":"tool_use","input":{"id":1790123456789012345},"name":"metered","name":"read"}]}';
    const value = parsedWithInputs(text) as Fields;
    const { handed, text: written } = sent(ownOf(text, [], value), value);
    expect(handed).toEqual([]);
    expect(written).toBe('{"messages":[{"type":"tool_use","input":{"id":1790123456789012345},"name":"read"}]}');
  });

  test("whose value came with other requests is compared with each one's own bytes", () => {
    const properties = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`p${at}`, { type: "string" }]));
    const schema = { type: "object", properties };
    const [plain, repeated] = [JSON.stringify(schema), JSON.stringify(schema).replace("{", '{"type":"array",')];
    const handed = [plain, repeated, plain].map((bytes) => {
      const own = ownOf(`{"tools":[{"schema":${bytes}}]}`, [], { tools: [{ schema }] });
      return sent(own, { tools: [{ schema }] }).handed.length;
    });
    expect(handed).toEqual([1, 0, 1]);
  });

  test("is handed on once, and when it was let go not at all", () => {
    const asked = { model: "engine", messages: ["a"] };
    const [own, gone] = [ownOf('{"messages":["a"]}'), ownOf('{"messages":["a"]}')];
    expect(sent(own, asked).handed).toEqual(['"messages":["a"]}']);
    expect(sent(own, asked)).toEqual({ text: '{"model":"engine","messages":["a"]}', handed: [] });
    gone[Symbol.dispose]();
    expect(sent(gone, asked).handed).toEqual([]);
  });

  test("that is small is written", () => {
    const small = ownOf(list('["a"]'));
    expect(sent(small, { model: "engine", messages: ["a"] }, singleForms, 4096).handed).toEqual([]);
  });
});

describe("a text", () => {
  const system = '"system":"Re\\u0061d \\"it\\" \\ud83d\\ude00"';
  const said = 'Read "it" \ud83d\ude00';

  test("that is asked in the same letters goes on as it was written", () => {
    const { handed, text } = sent(ownOf(`{"model":"acme/one",${system}}`), { model: "engine", system: said });
    expect(handed).toEqual([`${system}}`]);
    expect(JSON.parse(text)).toEqual({ model: "engine", system: said });
  });

  test.each([
    ["another", `{${system}}`, { system: `${said}.` }],
    ["one whose name repeats", `{"system":"not metered",${system}}`, { system: said }],
    ["a list of it where a protocol has one form", `{${system}}`, { system: [{ type: "text", text: said }] }],
  ])("is written anew: %s", (_, text, asked) => {
    const { handed, text: question } = sent(ownOf(text), asked);
    expect(handed).toEqual([]);
    expect(JSON.parse(question)).toEqual(asked);
  });
});

test.each([
  ["first", (large: string, small: string) => [large, small]],
  ["last", (large: string, small: string) => [small, large]],
] as const)("a name that repeats is written anew, however small one of the two: the large one %s", (_, ordered) => {
  const [one, two] = ordered(`"system":"${"x".repeat(5_000)}"`, '"system":"short"');
  const text = `{${one},"model":"acme/one",${two}}`;
  const asked = { model: "engine", system: JSON.parse(text).system };
  const { handed, text: question } = sent(ownOf(text), asked, singleForms, 4096);
  expect(handed).toEqual([]);
  expect(JSON.parse(question)).toEqual(asked);
});

test("what stands between members that are handed on is left out", () => {
  const text = '{"messages":["a"],"user":"not forwarded","model":"acme/one","max_tokens":7,"tools":["b"]}';
  const asked = { model: "engine", max_tokens: 3, messages: ["a"], tools: ["b"] };
  expect(sent(ownOf(text), asked)).toEqual({
    text: '{"model":"engine","max_tokens":3,"messages":["a"],"tools":["b"]}',
    handed: ['"messages":["a"],', '"tools":["b"]}'],
  });
});

test("a body of very many members is written anew", () => {
  const scan = new BodyScan();
  scan.take(
    new TextEncoder().encode(JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [at, 0])))),
  );
  expect(scan.marks).toBeNull();
});

describe("what an agent sends", () => {
  const tools = { name: "read", description: "Reads.", schema: { type: "object", properties: { path: {} } } };
  const chat = {
    messages: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "image_url", image_url: { url: "https://x" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "read", arguments: '{"n":1}' } }],
      },
      { role: "tool", tool_call_id: "c", content: "text" },
    ],
    tools: [{ type: "function", function: { name: tools.name, description: "Reads.", parameters: tools.schema } }],
  };
  const messages = {
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: [{ type: "text", text: "a" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "s" },
          { type: "tool_use", id: "c", name: "read", input: { n: 1 } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "text" }] },
    ],
    tools: [{ name: tools.name, description: "Reads.", input_schema: tools.schema }],
  };
  const responses = {
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "a" }] },
      { type: "function_call", call_id: "c", name: "read", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "text" },
    ],
    tools: [{ type: "function", name: tools.name, description: "Reads.", parameters: tools.schema, strict: false }],
  };

  const cases: [string, Fields, (wire: never) => InferenceRequest, UpstreamCodec, Fields][] = [
    ["chat", chat, callers.chat.request.decode, upstreams.chat, { max_tokens: 9, user: "u", metadata: { a: "b" } }],
    ["Messages", messages, (wire) => decodeMessages(wire), upstreams.messages, { max_tokens: 9 }],
    ["Responses", responses, callers.responses.request.decode, upstreams.responses, { store: false, user: "u" }],
  ];

  describe.each(cases)("in %s", (_name, conversation, decode, codec, fields) => {
    const wire = { model: "acme/one", temperature: 0.5, ...fields, ...conversation };
    const ask = { model: "engine", stream: true, outputTokens_max: 1024 };

    test("goes on as it was written, with our model, stream and cap", () => {
      const text = JSON.stringify(wire, null, 1);
      const asked = codec.request.encode(decode(wire as never), ask) as Fields;
      const { text: question, handed } = sent(ownOf(text), asked);
      expect(JSON.parse(question)).toEqual(ordinary(asked));
      expect(JSON.parse(`{${handed.join("").slice(0, -1)}}`)).toEqual(conversation);
      for (const piece of handed) expect(text).toContain(piece.slice(0, -1));
    });

    test("with a name that repeats, wherever it stands, goes on as it was metered", () => {
      const text = JSON.stringify(wire);
      const places = [...text.matchAll(/[{,]"([a-z_]+)":(?=["\d])/g)].map(({ index }) => index + 1);
      for (const at of places) {
        const name = /^"[a-z_]+":/.exec(text.slice(at))![0];
        const twice = `${text.slice(0, at)}${name}"not metered",${text.slice(at)}`;
        const asked = codec.request.encode(decode(JSON.parse(twice) as never), ask) as Fields;
        const { text: question } = sent(ownOf(twice), asked);
        expect(JSON.parse(question)).toEqual(ordinary(asked));
        expect(question).not.toContain("not metered");
      }
    });
  });

  test.each(cases)(
    "%s, for an engine of each other protocol, is what was translated",
    (_name, conversation, decode, own) => {
      for (const codec of Object.values(upstreams)) {
        if (codec === own) continue;
        const wire = { model: "acme/one", max_tokens: 9, ...conversation };
        const request = { ...decode(wire as never), nativeNeeds: [] };
        const asked = codec.request.encode(request, { model: "engine", stream: true, outputTokens_max: 9 }) as Fields;
        const { text } = sent(ownOf(JSON.stringify(wire)), asked);
        expect(JSON.parse(text)).toEqual(ordinary(asked));
      }
    },
  );
});

describe("what a protocol lets a caller write in two ways", () => {
  const ask = { model: "engine", stream: true, outputTokens_max: 1024 };
  const text = soundText.map((written) => `said ${written}`);
  const name = fc.constantFrom("read", "write");
  const plain = (type: string, of: fc.Arbitrary<string>) => of.map((said) => [{ type, text: said }]);

  const decodeResponses = (wire: unknown) => callers.responses.request.decode(validated.responses(wire));

  /**
   * Turns of a question, a call and its result. Each text is given as a string, in a list of one, or in a list of two.
   */
  const messages = fc.array(
    fc.record({
      question: fc.oneof(text, plain("text", text)),
      said: text,
      name,
      result: fc.oneof(text, plain("text", text)),
      isTold: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  );
  const messagesOf = (rounds: typeof messages extends fc.Arbitrary<infer Of> ? Of : never) => ({
    max_tokens: 9,
    messages: rounds.flatMap(({ question, said, name, result, isTold }, at) => [
      { role: "user", content: question },
      {
        role: "assistant",
        content: [
          { type: "text", text: said },
          { type: "tool_use", id: `c${at}`, name, input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: `c${at}`, content: result, ...(isTold ? { is_error: false } : {}) },
        ],
      },
      { role: "assistant", content: said },
    ]),
  });

  const responses = fc.array(
    fc.record({
      question: fc.oneof(text, plain("input_text", text)),
      said: fc.oneof(
        text,
        text.map((said) => [{ type: "output_text", text: said }]),
        text.map((said) => [{ type: "output_text", text: said, annotations: [] }]),
      ),
      name,
      result: fc.oneof(text, plain("input_text", text)),
      isTyped: fc.boolean(),
      image: fc.option(fc.constantFrom({}, { detail: "auto" }, { detail: "low" }), { nil: null }),
    }),
    { minLength: 1, maxLength: 4 },
  );
  const responsesOf = (rounds: typeof responses extends fc.Arbitrary<infer Of> ? Of : never) => ({
    store: false,
    input: rounds.flatMap(({ question, said, name, result, isTyped, image }, at) => {
      const typed = isTyped ? { type: "message" } : {};
      const shown = image ? [{ type: "input_image", image_url: "data:image/png;base64,AAAA", ...image }] : null;
      return [
        { ...typed, role: "user", content: shown ?? question },
        { ...typed, role: "assistant", content: said },
        { type: "function_call", call_id: `c${at}`, name, arguments: "{}" },
        { type: "function_call_output", call_id: `c${at}`, output: result },
      ];
    }),
  });

  /**
   * Checks that the engine's request, once decoded, equals the caller's, and that the whole conversation reaches the
   * engine in the caller's bytes.
   */
  function holds(wire: Fields, decode: (wire: never) => InferenceRequest, codec: UpstreamCodec, member: string) {
    const told = { model: "acme/one", ...wire };
    const asked = codec.request.encode(decode(told as never), ask) as Fields;
    const { text, handed } = sent(ownOf(JSON.stringify(told)), asked, codec.request.forms);
    const meant = decode({ ...told, model: "engine", stream: true } as never);
    expect(decode(JSON.parse(text) as never)).toEqual(meant);
    expect(handed.flatMap((piece) => Object.keys(JSON.parse(`{${piece.slice(0, -1)}}`)))).toContain(member);
  }

  test("goes on in the caller's form: Messages", () => {
    forAll([messages], 1_000, (rounds) =>
      holds(messagesOf(rounds), (wire) => decodeMessages(wire), upstreams.messages, "messages"),
    );
  });

  test("goes on in the caller's form: Responses", () => {
    forAll([responses], 1_000, (rounds) => holds(responsesOf(rounds), decodeResponses, upstreams.responses, "input"));
  });

  test("but with a name that repeats in an item without a type it is written anew", () => {
    const text =
      '{"model":"acme/one","store":false,"input":[{"role":"user","content":"not metered","content":"metered"}]}';
    const body = JSON.parse(text);
    const own = ownOf(text, [], body);
    const asked = upstreams.responses.request.encode(decodeResponses(body), ask) as Fields;
    expect(sent(own, asked, upstreams.responses.request.forms).text).not.toContain("not metered");
  });

  test.each([
    ["another text", '[{"role":"user","content":"a"}]', [{ role: "user", content: [{ type: "text", text: "b" }] }]],
    [
      "a mark on the text",
      '[{"role":"user","content":"a"}]',
      [{ role: "user", content: [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }] }],
    ],
    ["a list of a text and more", '["a"]', [[{ type: "text", text: "a" }, {}]]],
    ["a result that failed", '[{"is_error":false}]', [{ is_error: true }]],
    ["a result that did not", '[{"is_error":true}]', [{}]],
    ["a repeated name", '[{"content":[{"type":"text","text":"a","text":"b"}]}]', [{ content: "b" }]],
  ])("but %s is another thing", (_, text, asked) => {
    const { handed } = sent(ownOf(`{"messages":${text}}`), { messages: asked }, upstreams.messages.request.forms);
    expect(handed).toEqual([]);
  });

  const block = (more: object = {}) => ({ type: "text", text: "a", ...more });
  const input = (more: object = {}) => ({ type: "input_text", text: "a", ...more });
  const output = (more: object = {}) => ({ type: "output_text", text: "a", annotations: [], ...more });
  test.each<[string, string, object, "messages" | "responses"]>([
    ["a text", "nothing", { content: [] }, "messages"],
    ["a text", "two texts", { content: [block(), block()] }, "messages"],
    ["a text", "a thought", { content: [block({ type: "thinking" })] }, "messages"],
    ["a text", "a string in a list", { content: ["a"] }, "messages"],
    ["no type", "one", { content: "a", type: "message" }, "messages"],
    ["a text", "nothing", { content: [] }, "responses"],
    ["a text", "two texts", { content: [input(), input()] }, "responses"],
    ["a text", "an input with annotations", { content: [input({ annotations: [] })] }, "responses"],
    ["a text", "a text with a citation", { content: [output({ annotations: [{}] })] }, "responses"],
    ["a text", "a text with log probabilities", { content: [output({ logprobs: [] })] }, "responses"],
    ["a text", "a block of Messages", { content: [block()] }, "responses"],
    ["no detail", "a high one", { content: "a", detail: "high" }, "responses"],
    ["no annotations", "some", { content: "a", annotations: [{}] }, "responses"],
  ])("%s is not %s: %j in %s", (_said, _asked, item, protocol) => {
    const { forms } = upstreams[protocol].request;
    expect(sent(ownOf('{"input":[{"content":"a"}]}'), { input: [item] }, forms).handed).toEqual([]);
  });
});

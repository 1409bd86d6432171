// Attacks by an engine's responses, as large, as deep and as odd as allowed: as an unstreamed response, as an event of
// a stream, and as the arguments of a tool call. Whatever an engine sends, only its own request may fail.

import { bytesPerMember, bytesPerName, bytesPerValue } from "../../src/core/body/scan.ts";
import { upstreamProtocols } from "../../src/core/upstream/codecs.ts";
import { answerLimits } from "../../src/core/upstream/engine-json.ts";
import type { Attack, Sent, Target } from "./attack.ts";
import { filled, listed, mib, paths } from "./body.ts";
import { answerOf, type Content } from "./engine-words.ts";

interface Shape {
  name: string;
  /** The size of the response or the event. The default is just below the largest size that the service reads. */
  size_mib?: number;
  /** Whether the request must fail. If neither this nor `isPassed` is set, both outcomes are allowed. */
  isRefused?: boolean;
  /** Whether every client must get the response. */
  isPassed?: boolean;
  caller?: (typeof paths)[keyof typeof paths];
  content(bytes: number): Content;
}

const largest_mib = 7.9;
const small_mib = 2;

const documents: readonly Shape[] = [
  { name: "60 MiB of [", size_mib: 60, isRefused: true, content: (bytes) => ({ document: filled("[", bytes) }) },
  { name: "brackets", isRefused: true, content: (bytes) => ({ document: filled("[", bytes) }) },
  { name: "empty lists", isRefused: true, content: (bytes) => ({ document: `[${filled("[],", bytes)}[]]` }) },
  { name: "deep objects", isRefused: true, content: (bytes) => ({ document: filled('{"a":', bytes) }) },
  { name: "blanks", isRefused: true, content: (bytes) => ({ document: filled(" ", bytes) }) },
];

const fields: readonly Shape[] = [
  { name: "names of their own", content: (bytes) => inside(`{${listed(bytes / 13, (at) => `"k${at}":0`)}}`) },
  { name: "a name again and again", content: (bytes) => inside(`{${listed(bytes / 6, () => '"k":0')}}`) },
  { name: "numbers", content: (bytes) => inside(`[${listed(bytes / 24, () => "1.2345678901234567e-30")}]`) },
  { name: "small strings", content: (bytes) => inside(`[${listed(bytes / 11, (at) => `"s${at}"`)}]`) },
  { name: "chains of names", content: (bytes) => inside(`[${listed(bytes / 560, chain)}]`) },
  { name: "objects of one name each", content: (bytes) => inside(`[${listed(bytes / 8, () => '{"k":0}')}]`) },
  { name: "a number of many digits", content: (bytes) => inside(filled("7", bytes)) },
  { name: "not closed", isRefused: true, content: (bytes) => inside(`[${filled("1,", bytes)}`) },
];

/** A JSON document of this size, padded with blanks, just within the limits of values, members and names. */
const within = (bytes: number, value: string) => inside(`${value}${filled(" ", bytes - value.length)}`);
const { body_values_max, body_members_max, body_names_max } = answerLimits;
const few = 100;
const values = (bytes: number) => Math.min(body_values_max + bytes / bytesPerValue - few, bytes / 24);
const members = (bytes: number) => Math.min(body_members_max + bytes / bytesPerMember - few, bytes / 24);
const names = (bytes: number) => Math.floor(body_names_max + bytes / bytesPerName - few);
const allowed: readonly Shape[] = [
  {
    name: "as many numbers as may be",
    content: (bytes) => within(bytes, `[${listed(values(bytes), () => "1.25e-30")}]`),
  },
  {
    name: "as many small strings",
    content: (bytes) => within(bytes, `[${listed(values(bytes), (at) => `"s${at}"`)}]`),
  },
  { name: "as many empty lists", content: (bytes) => within(bytes, `[${listed(values(bytes) / 2, () => "[]")}]`) },
  {
    name: "as many members",
    content: (bytes) => within(bytes, `[${listed(members(bytes) / 2, (at) => `{"k${at % names(bytes)}":0}`)}]`),
  },
  { name: "as many names", content: (bytes) => within(bytes, `{${listed(names(bytes), (at) => `"k${at}":0`)}}`) },
];

const texts: readonly Shape[] = [
  { name: "a long text", content: (bytes) => ({ text: `"${filled("hello world ", bytes)}"` }) },
  { name: "escapes", content: (bytes) => ({ text: `"${filled("\\n\\t", bytes)}"` }) },
  { name: "escaped nothing", content: (bytes) => ({ text: `"${filled("\\u0000", bytes)}"` }) },
  { name: "escaped quotes", content: (bytes) => ({ text: `"${filled('\\"', bytes)}"` }) },
  { name: "beyond Latin", content: (bytes) => ({ text: `"${filled("é€😀", bytes * 0.4)}"` }) },
];

/**
 * A response with a tool call, whose arguments `written` returns. The client uses Messages, so the service parses the
 * arguments as an object.
 */
const argued = (name: string, written: (bytes: number) => string): Shape => ({
  name: `arguments: ${name}`,
  caller: paths.messages,
  content: (bytes) => ({ arguments: written(bytes / 2) }),
});
const args: readonly Shape[] = [
  argued("brackets", (bytes) => `{"x":${filled("[", bytes / 2)}${filled("]", bytes / 2)}}`),
  argued("names of their own", (bytes) => `{${listed(bytes / 13, (at) => `"k${at}":0`)}}`),
  argued("small strings", (bytes) => `{"x":[${listed(bytes / 11, (at) => `"s${at}"`)}]}`),
  argued("empty lists", (bytes) => `{"x":[${filled("[],", bytes)}[]]}`),
  argued("a long text", (bytes) => `{"x":"${filled("hello world ", bytes)}"}`),
  argued("escapes", (bytes) => `{"x":"${filled("\\n", bytes / 2)}"}`),
];

const honest: readonly Shape[] = [
  ...[
    argued("as many values as may be", () => `{"x":[${listed(99_000, () => "1")}]}`),
    argued("as many members as may be", () => `{"x":[${listed(49_000, (at) => `{"k${at % 9_000}":0}`)}]}`),
  ],
  {
    name: "1,000 calls",
    caller: paths.messages,
    content: () => calls((at) => ({ id: `call_${at}`, name: "run", written: '{"a":1}' }), 1_000),
  },
  { name: "1,000 parts in turns", content: () => ({ turns: 1_000 }) },
  { name: "log probabilities of 4,000 tokens", content: () => ({ logprobs: `[${listed(4_000, probability)}]` }) },
];

const count = 20_000;
const counted = (name: string, content: () => Content): Shape => ({ name: `20,000 ${name}`, content });
function calls(call: (at: number) => NonNullable<Content["calls"]>[number], length = count): Content {
  return { calls: Array.from({ length }, (_, at) => call(at)) };
}
const parts: readonly Shape[] = [
  counted("calls", () => calls((at) => ({ id: `call_${at}`, name: "run", written: '{"a":1}' }))),
  counted("calls of one id", () => calls(() => ({ id: "call", name: "run", written: '{"a":1}' }))),
  counted("calls without an id", () => calls(() => ({ name: "run", written: '{"a":1}' }))),
  counted("calls without a name", () => calls((at) => ({ id: `call_${at}`, written: '{"a":1}' }))),
  counted("parts in turns", () => ({ turns: count })),
  counted("log probabilities", () => ({ logprobs: `[${listed(count, probability)}]` })),
];

function inside(value: string): Content {
  return { fields: `"x":${value}` };
}

/** Nested objects, each with a member name of its own. */
function chain(at: number): string {
  const depth = 50;
  const opening = Array.from({ length: depth }, (_, level) => `{"a${at * depth + level}":`).join("");
  return `${opening}0${"}".repeat(depth)}`;
}

function probability(at: number): string {
  const top = Array.from({ length: 5 }, (_, rank) => `{"token":"t${rank}","logprob":-${rank}.25,"bytes":[116,48]}`);
  return `{"token":"w${at % 100}","logprob":-0.5,"bytes":[119,49],"top_logprobs":[${top.join(",")}]}`;
}

const passed = [...allowed, ...texts, ...honest].map((shape) => ({ ...shape, isPassed: true }));
const shapes = [...documents, ...fields, ...passed, ...args, ...parts];

export const engineAnswers: readonly Attack[] = shapes.flatMap((shape) => [
  attackOf(shape, false),
  attackOf(shape, true),
  ...(shape.size_mib === undefined ? [quick(shape, false), quick(shape, true)] : []),
]);

function quick(shape: Shape, isStream: boolean): Attack {
  const name = `${shape.name}, ${small_mib} MiB`;
  return { ...attackOf({ ...shape, name, size_mib: small_mib }, isStream), isQuick: true };
}

/**
 * An attack in which an engine of each protocol sends this response, one after the other. A small request of another
 * client must be served meanwhile.
 */
function attackOf(
  { name, size_mib = largest_mib, isRefused, isPassed, caller = paths.chat, content }: Shape,
  isStream: boolean,
) {
  return {
    name: `an engine's ${isStream ? "event" : "answer"}: ${name}`,
    async run(target: Target): Promise<Sent> {
      const sent: Sent = { bytes: 0, unpackedBytes: 0, answers: [], problems: [] };
      const told = content(size_mib * mib);
      for (const protocol of upstreamProtocols) {
        const answer = answerOf(protocol, told, isStream);
        target.engineSays(() => answer);
        const answers = await Promise.all([
          asked(target, caller, target.hostileModels[protocol], isStream),
          asked(target, paths.chat, target.model, false),
        ]);
        target.engineSays(null);
        sent.bytes += answer.bytes.length;
        sent.unpackedBytes = Math.max(sent.unpackedBytes, answer.bytes.length);
        sent.answers.push(answers[0]);
        if (answers[1] !== "200") sent.problems?.push(`${protocol}: another request was answered ${answers[1]}`);
        if (isPassed && answers[0] !== "200") sent.problems?.push(`${protocol}: it was refused: ${answers[0]}`);
        if (isRefused && answers[0] === "200") sent.problems?.push(`${protocol}: the answer was passed on`);
      }
      return sent;
    },
    bounds: ({ unpackedBytes }: Sent) => ({ step_ms: 100, growth_bytes: 4 * unpackedBytes + 64 * mib }),
  };
}

/** Sends a request. Returns 200, or the code of the error, which in a stream may come at the end of the response. */
async function asked({ url, key }: Target, path: string, model: string, stream: boolean): Promise<string> {
  const tools =
    path === paths.messages
      ? [{ name: "run", input_schema: { type: "object" } }]
      : [{ type: "function", function: { name: "run", parameters: { type: "object" } } }];
  const messages = [{ role: "user", content: "hi" }];
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, max_tokens: 100, stream, messages, tools }),
    signal: AbortSignal.timeout(120_000),
  });
  const text = await answer.text();
  const end = answer.ok ? text.slice(-2000) : text;
  return /"(?:error_)?code":"(\w+)"/.exec(end)?.[1] ?? String(answer.status);
}

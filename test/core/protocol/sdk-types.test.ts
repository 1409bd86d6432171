/**
 * Completeness: each type that the pinned SDKs know is carried, left out, or refused by its name. A new version of an
 * SDK that brings a new type fails here until someone has decided how to treat it. Each decision is tested; for types
 * that are carried, by losses.test.ts.
 */
import { describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { StreamEncoder } from "../../../src/core/protocol/codec.ts";
import { faultOf } from "../../harness/faults.ts";
import { callers, upstreams, validated } from "./codecs.ts";
import { type Answer, chatAnswers, messagesAnswers, responsesAnswers } from "./losses/answers.ts";
import { chatProbes } from "./losses/chat-client.ts";
import { messagesProbes } from "./losses/messages-client.ts";
import type { Probe } from "./losses/probe.ts";
import { responsesProbes } from "./losses/responses-client.ts";
import { ask, decoders, encoders, identity, wires } from "./losses/sides.ts";
import { engineNames } from "./pairs/wires.ts";
import { folded } from "./reading.ts";
import { chatPlaces } from "./sdk-types/chat.ts";
import { allTypes, type File } from "./sdk-types/declarations.ts";
import { elsewhere } from "./sdk-types/elsewhere.ts";
import { messagesPlaces } from "./sdk-types/messages.ts";
import { type AnswerPlace, type EventPlace, type RequestPlace, type SdkName, typesIn } from "./sdk-types/place.ts";
import { responsesPlaces } from "./sdk-types/responses.ts";

const places = { ...messagesPlaces, ...chatPlaces, ...responsesPlaces };

describe.each(Object.entries(places))("%s", (_, place) => {
  test("each type that the SDKs know is decided", () =>
    expect(Object.keys(place.rows).sort()).toEqual([...place.known].sort()));

  if (place.kind === "request") requestRows(place);
  else if (place.kind === "answer") answerRows(place);
  else eventRows(place);
});

const bodiesIn = (probes: Record<string, Probe>) =>
  Object.values(probes).flatMap((probe) =>
    probe.flatMap(([body, seen, but]) => (typeof seen === "string" && !but ? [] : [body])),
  );
const repliesIn = (answers: Record<string, Answer>) => Object.values(answers).map(([reply]) => reply);
/** The bodies and replies of losses.test.ts, without bodies that every engine refuses. */
const tried = {
  request: { chat: bodiesIn(chatProbes), messages: bodiesIn(messagesProbes), responses: bodiesIn(responsesProbes) },
  answer: {
    chat: repliesIn(chatAnswers),
    messages: repliesIn(messagesAnswers),
    responses: repliesIn(responsesAnswers),
  },
};

function expectTried({ kind, client, at }: RequestPlace | AnswerPlace, type: string): void {
  const wanted = at.map((place) => `${place}<${type}>`);
  expect(typesIn(tried[kind][client]).filter((one) => wanted.includes(one))).not.toEqual([]);
}

// ---- requests --------------------------------------------------------------------------------------------------------

/**
 * The engines' requests for this body, one for each engine that can be asked for it. An engine of the client's own
 * protocol is not among them, because it may get fields that the others cannot express.
 */
function asked(client: SdkName, body: object): string[] {
  const request = decoders[client](body);
  return engineNames.flatMap((engine) => {
    if (engine === client) return [];
    const { refusal, encode } = upstreams[engine].request;
    return refusal(request) ? [] : [JSON.stringify(encode(request, ask))];
  });
}

function requestRows(place: RequestPlace): void {
  const { client, refusals, rows } = place;
  test.each(Object.entries(rows))("%s", (type, row) => {
    if (row.verdict === "carried") expectTried(place, type);
    else if (row.verdict === "left out") expect(asked(client, row.body)).toEqual(asked(client, row.plain));
    else {
      const wanted = refusals(type);
      expect(wanted.length).toBeGreaterThan(0);
      for (const { body, param } of wanted) {
        const { code, details, message } = faultOf(() => decoders[client](body))!;
        expect([code, details.param]).toEqual(["unsupported_feature", param]);
        expect(message).toContain(type);
      }
    }
  });
}

// ---- answers ---------------------------------------------------------------------------------------------------------

function told(client: SdkName, reply: object): string {
  const answer = folded(upstreams[client].response.decode(JSON.parse(JSON.stringify(reply)), identity));
  return JSON.stringify(encoders[client](answer));
}

function answerRows(place: AnswerPlace): void {
  const { client, reply, rows } = place;
  test.each(Object.entries(rows))("%s", (type, row) => {
    if (row.verdict === "carried") expectTried(place, type);
    else {
      expect(told(client, reply(type))).toContain("TEXT");
      expect(told(client, reply(type))).not.toContain(`"${type}"`);
    }
  });
}

// ---- streams ---------------------------------------------------------------------------------------------------------

const summarized = validated.responses({ model: "a/b", input: "a", reasoning: { summary: "auto" } });
const context = { requestId: "r", identity, inputTokensEstimate: 1 };
const streamEncoders: Record<SdkName, (() => StreamEncoder)[]> = {
  chat: [() => callers.chat.stream.encoder(wires.chat, context)],
  messages: [() => callers.messages.stream.encoder(wires.messages, context)],
  responses: [wires.responses, summarized].map((wire) => () => callers.responses.stream.encoder(wire, context)),
};

const citation = { protocol: "anthropic-messages" as const, wire: { type: "char_location", cited_text: "a" } };
const parts: InferenceEvent[][] = [
  [{ type: "part-start", index: 0, part: { kind: "reasoning" } }],
  [{ type: "part-start", index: 1, part: { kind: "text" } }],
  [{ type: "part-start", index: 2, part: { kind: "refusal" } }],
  [{ type: "part-start", index: 3, part: { kind: "tool-call", callId: "c1", toolName: "f" } }],
  [{ type: "part-start", index: 4, part: { kind: "tool-call", callId: "c2", toolName: "g", custom: true } }],
].map(([start], index) => [
  start as InferenceEvent,
  { type: "part-delta", index, delta: "{}" },
  index === 1 ? { type: "part-end", index, citations: [citation] } : { type: "part-end", index },
]);
const ends: InferenceEvent[] = [
  { type: "response-end", reason: "stop" },
  { type: "response-end", reason: "length" },
  { type: "response-failed", fault: new Fault("overloaded", "Busy.", { retryAfterSeconds: 1 }) },
];

/** The types in all streams that the service writes for a client. */
function writtenTypes(client: SdkName): Set<string> {
  const types = new Set<string>();
  for (const begin of streamEncoders[client])
    for (const end of ends) {
      const encoder = begin();
      for (const event of [{ type: "response-start" as const, ...identity }, ...parts.flat(), end])
        for (const { data } of encoder.push(event))
          for (const [, type] of data.matchAll(/"type":"([\w.]+)"/g)) types.add(type!);
    }
  return types;
}

function eventRows({ client, rows }: EventPlace): void {
  const written = writtenTypes(client);
  test.each(Object.entries(rows))("%s", (type, { verdict }) => expect(written.has(type)).toBe(verdict === "carried"));

  test("no other event is written", () => {
    const known = new Set(Object.values(places).flatMap((place) => (place.client === client ? [...place.known] : [])));
    // The protocols also have these types, which are in no union of the SDKs.
    for (const type of ["message", "error", "overloaded_error", "text"]) known.add(type);
    expect([...written].filter((type) => !known.has(type))).toEqual([]);
  });
}

// ---- the whole of the files ------------------------------------------------------------------------------------------

test.each(Object.entries(elsewhere) as [File, Record<string, readonly string[]>][])(
  "what else the types of %s know stands within one of these, or is no concern of a request",
  (file, groups) => {
    const client = file === "chat" ? "chat" : file.endsWith("essages") ? "messages" : "responses";
    const decided = new Set(
      Object.values(places).flatMap((place) => (place.client === client ? [...place.known] : [])),
    );
    const rest = allTypes(file).filter((type) => !decided.has(type));
    expect(Object.values(groups).flat().sort()).toEqual(rest);
  },
);

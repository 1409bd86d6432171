/**
 * A codec translates one protocol to the centre (the protocol-independent request and answer) and back. All codecs have
 * the interfaces of this file, and none knows another. They are pure: time and ids are arguments, and there is no I/O.
 * Property tests hold each to four laws (docs/design/architecture.md, The four laws of a codec).
 */
import type { InferenceEvent, PartDelta } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { Result } from "../inference/result.ts";
import type { SseMessage } from "../sse/decode.ts";
import type { Dialect } from "./dialect.ts";
import type { JsonObject } from "./json.ts";

/** Turns a series of inputs into outputs; one input may give any number. `end` is called once, after the last input. */
interface Transducer<In, Out> {
  push(input: In): Out[];
  end(): Out[];
}

/** The fields by which a response identifies itself. They are made once for a request, and are the same in all its events. */
export interface ResponseIdentity {
  responseId: string;
  createdAtSeconds: number;
  /** The public model id. */
  model: string;
}

/** The facts about one engine that a request is encoded by. */
export interface UpstreamAsk {
  /** The engine's name for the model. */
  model: string;
  stream: boolean;
  /** The cap on output that model and context leave. Protocols that require a cap send it if the caller gave none. */
  outputTokens_max: number;
  /** False if the engine's chat template takes instructions only at the head of a conversation. */
  instructionsInside?: boolean | undefined;
  /** The engine's dialect; `generic` if it is absent. */
  dialect?: Dialect | undefined;
  /** Called for each kind of difference between what the caller wrote and what the engine is sent. */
  lost?: ((loss: Loss) => void) | undefined;
}

/**
 * The changes to a request that are allowed without a refusal (docs/protocols.md, What an engine is not sent), in the
 * order of the list:
 *
 * - reasoning that the engine does not read;
 * - opaque values that another engine made;
 * - calls that the caller wrote before their turn's text, which then come after it;
 * - lone surrogates;
 * - fields that the engine is known to refuse;
 * - a field that the engine has just refused.
 */
export const losses = ["thoughts", "carried", "order", "surrogates", "stripped", "refused"] as const;
export type Loss = (typeof losses)[number];

/** The facts that the decoder of an answer needs in addition to the answer itself. */
export interface AnswerContext {
  /** The public id of the model. `model` in the `ResponseIdentity` may be an alias of it. */
  model?: string | undefined;
  /** The cap on output that the engine was sent: some engines do not report that the cap ended an answer. */
  outputTokens_max?: number | undefined;
  /** The engine's dialect; `generic` if it is absent. */
  dialect?: Dialect | undefined;
  /** Called with the name of each field of an answer that is not passed on to the caller, each time that it occurs. */
  leftOut?: ((field: string) => void) | undefined;
}

/** The facts that the encoder of a stream needs in addition to the request. */
export interface StreamContext {
  /** The request's id, which is part of the protocol's error. */
  requestId: string;
  identity: ResponseIdentity;
  /** The number of input tokens to report until the engine has reported its own. At least 1. */
  inputTokensEstimate: number;
  /**
   * Returns the Unix seconds at which the answer ended; called when the answer ends. Absent: the response has no such
   * time.
   */
  endedAtSeconds?(): number;
}

/** Writes a stream that ends with the protocol's terminal marker, or with its error. */
export interface StreamEncoder extends Transducer<InferenceEvent, SseMessage> {
  /**
   * A shorter way than `push`, for nearly every event of a stream: takes a delta and returns its frame. Returns null,
   * and takes nothing, if the delta has more than its text, has to wait, or needs further frames; then `push` takes the
   * delta.
   */
  frame(event: PartDelta): string | null;
  /** Whole frames, or "", to write while the model is silent. Clients of the protocol count them as activity. */
  heartbeat(): string;
}

/** Reads an engine's stream. */
export interface EngineDecoder extends Transducer<EngineEvent, InferenceEvent> {
  /** Whether the decoder uses the data of events with this name. If not, the data need not be parsed. */
  reads(name: string): boolean;
}

/** The side of a codec that faces callers. A `Wire` is a body that has passed the validator. */
export interface CallerCodec<Wire, Reply> {
  request: {
    decode(wire: Wire): InferenceRequest;
    /**
     * Does the same as `decode`, in steps between which other work can run. For protocols that limit a conversation
     * only by its body's size.
     */
    decodingSteps?(wire: Wire): Generator<void, InferenceRequest, void>;
    /**
     * The part of the request that is needed to encode its answer. The rest, which is most of the request, can be freed
     * once the request is decoded.
     */
    remainder(wire: Wire): Wire;
  };
  response: { encode(result: Result, wire: Wire, endedAtSeconds?: number): Reply };
  stream: {
    encoder(wire: Wire, context: StreamContext): StreamEncoder;
  };
  fault: { encode(fault: Fault, requestId: string): unknown };
}

/** Reads an engine's answer as it arrives. Throws UnreadableAnswer. */
export interface AnswerReader {
  /** The events that these bytes complete, in order. */
  push(pieces: readonly Uint8Array[]): InferenceEvent[] | Promise<InferenceEvent[]>;
  /** Called at the end of the answer. Returns the last events. */
  end(): InferenceEvent[] | Promise<InferenceEvent[]>;
  /** The number of bytes that wait for more to arrive. */
  readonly held_bytes: number;
  /** The most bytes that the next `push` should get. */
  readonly next_bytes: number;
}

/**
 * The side of a codec that faces engines. Any input decodes to events that follow the grammar of inference/event.ts. An
 * input that was cut off ends in `response-failed`. An answer with too many parts throws UnreadableAnswer (codec.ts).
 */
export interface UpstreamCodec {
  /** The path below the upstream's base URL. */
  path: string;
  /** The header in which callers name betas of the protocol, if it has one. */
  betasHeader?: string;
  /** The headers of the protocol for each request. `key`: null for an engine that needs none. */
  headers(key: string | null): Record<string, string>;
  request: {
    /** Encodes a request for the engine. Throws the fault of `refusal`, if there is one. */
    encode(request: InferenceRequest, ask: UpstreamAsk): Readonly<JsonObject>;
    /**
     * The fault `unsupported_feature` if the request has something that would change the answer and that cannot be
     * expressed to this engine; else null.
     */
    refusal(request: InferenceRequest, dialect?: Dialect): Fault | null;
    /**
     * The different forms in which callers of this protocol may write a value that `encode` always writes in one form.
     */
    forms: WireForms;
  };
  response: {
    decode(reply: unknown, identity: ResponseIdentity, context?: AnswerContext): InferenceEvent[];
    /**
     * Returns a reader for answers that arrive as one JSON body and are passed on piece by piece. `decode` is then not
     * called.
     */
    reader?(identity: ResponseIdentity, context?: AnswerContext): AnswerReader;
  };
  /**
   * Decodes a stream. A frame that differs from the last one only in the text of its delta (and in `sequence_number`)
   * may bypass the decoder, because it would decode to the same event with that text: upstream/stream-reader.ts. This
   * holds for texts, and not for the arguments of calls.
   */
  stream: { decoder(identity: ResponseIdentity, context?: AnswerContext): EngineDecoder };
  /** An engine's refusal as a fault. `body` is the JSON of its answer, or the text if that was not JSON. */
  fault: { decode(status: number, body: unknown, dialect?: Dialect): Fault };
}

/**
 * One event of an engine's stream, as a decoder gets it. The JSON of a large event is parsed beforehand, in steps.
 * Pure.
 */
export interface EngineEvent extends SseMessage {
  parsed?: { value: unknown };
}

/** Thrown if an answer cannot be read further, because it breaks the engine's protocol or exceeds a limit. */
export class UnreadableAnswer extends Error {
  override readonly name = "UnreadableAnswer";
}

/** The header `authorization` for engines of both OpenAI protocols; none without a key. */
export function bearer(key: string | null): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

/**
 * The different forms in which a protocol lets a caller write the same thing. Engines of the protocol read them alike.
 */
export interface WireForms {
  /** The plain text that means the same as this list, which has one object with a text; null if no plain text does. */
  textOf(list: readonly unknown[]): string | null;
  /** Reports whether a member with this value means the same as its absence. */
  isImplied(name: string, value: unknown): boolean;
}

/** The forms of a protocol in which everything can be written in only one way. */
export const singleForms: WireForms = { textOf: () => null, isImplied: () => false };

/**
 * PROTOCOL: three codecs of one shape, each translating one wire to the centre and back; none knows another.
 * Pure: time and ids are arguments, no I/O. Four laws hold for each, as property tests (docs/design/architecture.md,
 * The four laws of a codec).
 */
import type { InferenceEvent, PartDelta } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { Result } from "../inference/result.ts";
import type { SseMessage } from "../sse/message.ts";
import type { EngineEvent } from "./engine-event.ts";
import type { JsonObject } from "./json.ts";
import type { WireForms } from "./wire-forms.ts";

/** Turns one input into any number of outputs; `end` is called once, after the last input. */
export interface Transducer<In, Out> {
  push(input: In): Out[];
  end(): Out[];
}

/** What a response says of itself: made once per request, constant across a stream. */
export interface ResponseIdentity {
  responseId: string;
  createdAtSeconds: number;
  /** The public model id. */
  model: string;
}

/** How an engine wants to be asked. */
export interface UpstreamAsk {
  /** The engine's name for the model. */
  model: string;
  stream: boolean;
  /** The cap where the caller gave none, for protocols that cannot do without: what model and context leave. */
  outputTokens_max: number;
  /** False for engines whose chat template takes instructions at the head of a conversation alone. */
  instructionsInside?: boolean | undefined;
}

/** What the writer of a stream knows beside the request. */
export interface StreamContext {
  /** Stands in the protocol's own error. */
  requestId: string;
  identity: ResponseIdentity;
  /** At least 1; what is shown of the input until the engine has reported. */
  inputTokensEstimate: number;
  /** Unix seconds; asked when the answer ends. Without it that is not told. */
  endedAtSeconds?(): number;
}

/** Ends with the protocol's own terminal marker, or its own error. */
export interface StreamEncoder extends Transducer<InferenceEvent, SseMessage> {
  /**
   * A delta as it is written, with all that `push` would do: a shorter way for nearly every event of a stream. Null, and
   * nothing done, where it says more than its text, has to wait, or comes with other frames: then it is to be pushed.
   */
  frame(event: PartDelta): string | null;
  /** What is written while the model is silent, in the form that this protocol's clients count: whole frames, or "". */
  heartbeat(): string;
}

/** The side that faces our callers. `Wire` has been validated against the contract. */
export interface CallerCodec<Wire, Reply> {
  request: {
    decode(wire: Wire): InferenceRequest;
    /** The same in steps, of protocols whose conversations are bounded by the body's size alone. */
    decodingSteps?(wire: Wire): Generator<void, InferenceRequest, void>;
    /** What is left of it once it is decoded: what an answer still shows or is read by. The conversation is most of it. */
    remainder(wire: Wire): Wire;
  };
  response: { encode(result: Result, wire: Wire, endedAtSeconds?: number): Reply };
  stream: { encoder(wire: Wire, context: StreamContext): StreamEncoder };
  fault: { encode(fault: Fault, requestId: string): unknown };
}

/**
 * The side that faces engines. Any input whatever decodes to a grammatical stream; truncation ends in response-failed.
 * An answer with more parts than are read throws UnreadableAnswer (parts-bound.ts).
 * `outputTokens_max` is the cap that the engine was asked to keep, for those that do not tell when it ended an answer.
 */
export interface UpstreamCodec {
  /** Path below the upstream's base URL. */
  path: string;
  request: {
    /** Throws what `refusal` answers. */
    encode(request: InferenceRequest, ask: UpstreamAsk): Readonly<JsonObject>;
    /** What the protocol has no words for though it would change the answer, as `unsupported_feature`; else null. */
    refusal(request: InferenceRequest): Fault | null;
    /** What callers of this protocol may have written otherwise than `encode` does. */
    forms: WireForms;
  };
  response: { decode(reply: unknown, identity: ResponseIdentity, outputTokens_max?: number): InferenceEvent[] };
  /**
   * Where a frame said one delta of a text, and the next one differs in that text alone (and in `sequence_number`), it says the
   * same with its own text, and the decoder need not have seen it: upstream/delta-frames.ts. Not so of a call's arguments.
   */
  stream: { decoder(identity: ResponseIdentity, outputTokens_max?: number): Transducer<EngineEvent, InferenceEvent> };
  /** An engine's refusal: `status` of the answer, `body` its JSON, or its text where it was none. */
  fault: { decode(status: number, body: unknown): Fault };
}

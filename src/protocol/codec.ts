/** The one shape that the three codecs have. Pure: time and ids are arguments, no I/O. */
import type { InferenceEvent } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { SseMessage } from "../sse/message.ts";

/** Turns one input into any number of outputs; `end` is called once, after the last input. */
export interface Transducer<In, Out> {
  push(input: In): Out[];
  end(): Out[];
}

/** What a response says about itself: made once per request, constant across a stream. */
export interface ResponseIdentity {
  responseId: string;
  createdAtSeconds: number;
  /** The public model id. */
  model: string;
}

/** What only the caller's side of a codec needs to write an answer. */
export interface EncodeContext {
  requestId: string;
}

export interface Codec<Wire, Reply> {
  request: {
    decode(wire: Wire): InferenceRequest;
    encode(request: InferenceRequest, options: UpstreamOptions): unknown;
  };
  response: {
    encode(events: InferenceEvent[], wire: Wire): Reply;
    decode(reply: unknown, identity: ResponseIdentity): InferenceEvent[];
  };
  stream: {
    encoder(wire: Wire, context: EncodeContext): Transducer<InferenceEvent, SseMessage>;
    decoder(identity: ResponseIdentity): Transducer<SseMessage, InferenceEvent>;
  };
  fault: { encode(fault: Fault, requestId: string): unknown; decode(status: number, body: unknown): Fault };
}

/** How an engine wants to be asked. */
export interface UpstreamOptions {
  /** The engine's own name of the model. */
  model: string;
  stream: boolean;
}

/** The part that talks to engines, for one request of an operation whose answer is passed on (passing.ts). */
import type { InferenceRequest } from "../../core/inference/request.ts";
import {
  type AnswerContext,
  type AnswerReader,
  bearer,
  type EngineDecoder,
  type ResponseIdentity,
  singleForms,
  type UpstreamAsk,
  type UpstreamCodec,
} from "../../core/protocol/codec.ts";
import type { Dialect } from "../../core/protocol/dialect.ts";
import { dialects } from "../../core/protocol/dialects.ts";
import { unsupportedByEngine } from "../../core/protocol/engine-options.ts";
import { compact, type JsonObject } from "../../core/protocol/json.ts";
import { errorOf, refusalFault } from "../../core/protocol/refusal.ts";

/** Holds the client's request until it is not needed any more. */
export class HeldWire<Wire> {
  #wire: Wire | null;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  get isReleased(): boolean {
    return this.#wire === null;
  }

  get wire(): Wire {
    if (this.#wire !== null) return this.#wire;
    throw new Error("the request was let go, and is needed again");
  }

  release(): void {
    this.#wire = null;
  }
}

/** How a request is written for an engine, and how the engine's answer is checked. */
export interface EngineShape<Wire> {
  path: string;
  /** The engine's request: the client's fields in the engine's names. */
  encode(wire: Wire, ask: UpstreamAsk, request: InferenceRequest): JsonObject;
  /**
   * A field of the request that engines of this dialect do not support: its name in words, and its path; null: they
   * support all fields.
   */
  lacks?(wire: Wire, dialect: Dialect): { feature: string; param: string } | null;
  reader(wire: Wire, identity: ResponseIdentity, context: AnswerContext, answer_bytes_max: number): AnswerReader;
  decoder?(wire: Wire, identity: ResponseIdentity, context: AnswerContext): EngineDecoder;
}

export function engineCodec<Wire>(
  { path, encode, lacks, reader, decoder }: EngineShape<Wire>,
  held: HeldWire<Wire>,
  answer_bytes_max: number,
): UpstreamCodec {
  return {
    path,
    headers: bearer,
    request: {
      // Strict engines refuse a null, which means the same as an absent field.
      encode: (request, ask) => compact(encode(held.wire, ask, request)),
      refusal(_, dialect = dialects.generic) {
        const lack = lacks?.(held.wire, dialect);
        return lack ? unsupportedByEngine(lack.feature, lack.param) : null;
      },
      forms: singleForms,
    },
    response: {
      decode() {
        throw new Error("an answer that is passed on is read piece by piece");
      },
      reader: (identity, context = {}) => reader(held.wire, identity, context, answer_bytes_max),
    },
    stream: {
      decoder(identity, context = {}) {
        if (decoder) return decoder(held.wire, identity, context);
        throw new Error("this answer is not streamed");
      },
    },
    fault: {
      decode: (status, body, { refusals } = dialects.generic) => refusalFault(status, errorOf(body), refusals),
    },
  };
}

/** The side of a passed operation that faces engines, for one request. */
import type { InferenceRequest } from "../../core/inference/request.ts";
import { bearer } from "../../core/protocol/bearer.ts";
import type { UpstreamCodec } from "../../core/protocol/codec.ts";
import { dialects } from "../../core/protocol/dialects.ts";
import { errorOf, refusalFault } from "../../core/protocol/refusal.ts";
import { unsupportedByEngine } from "../../core/protocol/unsupported.ts";
import { singleForms } from "../../core/protocol/wire-forms.ts";
import type { PassedWire, Passing } from "./passing.ts";
import { PassedReader } from "./reader.ts";

/** The client's request, until it is let go. */
export class HeldWire<Wire> {
  #wire: Wire | null;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  get isLetGo(): boolean {
    return this.#wire === null;
  }

  get wire(): Wire {
    if (this.#wire !== null) return this.#wire;
    throw new Error("the request was let go, and is needed again");
  }

  letGo(): void {
    this.#wire = null;
  }
}

export function engineCodec<Wire extends PassedWire>(
  passing: Passing<Wire>,
  held: HeldWire<Wire>,
  answer_bytes_max: number,
): UpstreamCodec {
  return {
    path: passing.path,
    headers: bearer,
    request: {
      encode: (_: InferenceRequest, ask) => passing.encode(held.wire, ask),
      refusal(_, dialect = dialects.generic) {
        const lack = passing.lacks?.(held.wire, dialect);
        return lack ? unsupportedByEngine(lack.feature, lack.param) : null;
      },
      forms: singleForms,
    },
    response: {
      decode() {
        throw new Error("an answer that is passed on is read piece by piece");
      },
      reader: (identity) => new PassedReader({ identity, checking: passing.checking(held.wire), answer_bytes_max }),
    },
    stream: {
      decoder() {
        throw new Error("an embedding is not streamed");
      },
    },
    fault: {
      decode: (status, body, { refusals } = dialects.generic) => refusalFault(status, errorOf(body), refusals),
    },
  };
}

/** The differences between the inference operations: protocol, wording, and storage. */

import type { Principal } from "../auth/verdict.ts";
import type { CallerCodec, ResponseIdentity } from "../protocol/codec.ts";
import type { ResponseObject } from "../protocol/openai-responses/contract.ts";
import type { CallerOrganization } from "../store/directory.ts";
import type { Operation } from "../store/ledger.ts";
import type { Maker } from "../store/maker.ts";

export interface InferenceWire {
  model: string;
  stream?: boolean | null;
}

/** The owner of the request, and whether anything of it may be stored. */
export type ContentOwner = Pick<CallerOrganization, "id" | "keepsContent">;

export interface Adapter<Wire extends InferenceWire, Reply> {
  operation: Operation;
  /** Prefix of the response's id, such as `chatcmpl-`. */
  idPrefix: string;
  codec: CallerCodec<Wire, Reply>;
  /** The request with stored items in place of the references to them; `bytes` is their size. */
  resolve?(wire: Wire, caller: Principal): Promise<{ wire: Wire; bytes: number }>;
  /** How its requests run in the background, if they can. */
  background?: {
    /** Whether a request is to run in the background. Throws a Fault if it may not. */
    isAsked(wire: Wire): boolean;
    /** The response before it has any output. */
    begun(wire: Wire, identity: ResponseIdentity): ResponseObject;
  };
  /** Stores the whole answer before its caller has its end; null if it is not to be stored. It never throws. */
  saver?(wire: Wire, maker: Maker): ((answer: Reply) => Promise<void>) | null;
}

/** The differences between the inference operations: protocol, ids, headers, and the storage of responses. */

import type { Principal } from "../auth/verdict.ts";
import type { CallerCodec, ResponseIdentity } from "../protocol/codec.ts";
import type { ResponseObject } from "../protocol/openai-responses/contract.ts";
import type { CallerOrganization } from "../store/directory.ts";
import type { Granted, Operation } from "../store/ledger.ts";
import type { Maker } from "../store/maker.ts";

export interface InferenceWire {
  model: string;
  stream?: boolean | null;
}

/** The organization that sends the request, and whether any of its content may be stored. */
export type ContentOwner = Pick<CallerOrganization, "id" | "keepsContent">;

export interface Adapter<Wire extends InferenceWire, Reply> {
  operation: Operation;
  /** The prefix of the response's id, such as `chatcmpl-`. */
  idPrefix: string;
  codec: CallerCodec<Wire, Reply>;
  /** Headers that a feature adds to an answer for some of the clients (src/features/claude-code). */
  headers?(request: Request, granted: Granted): Record<string, string>;
  /**
   * Returns the request with stored items in place of the references to them; `bytes` is the size of the stored items.
   */
  resolve?(wire: Wire, caller: Principal): Promise<{ wire: Wire; bytes: number }>;
  /** How requests of this operation run in the background, if they can. */
  background?: {
    /** Whether the request asks to run in the background. Throws a Fault if it may not. */
    isAsked(wire: Wire): boolean;
    /** The response before there is any output. */
    begun(wire: Wire, identity: ResponseIdentity): ResponseObject;
  };
  /**
   * Returns the function that stores the whole answer before its end is sent to the caller; null if it is not to be
   * stored. The function never throws.
   */
  saver?(wire: Wire, maker: Maker): ((answer: Reply) => Promise<void>) | null;
}

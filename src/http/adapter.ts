/** What differs between the inference operations: a protocol, its words, and what it stores. */
import type { CallerCodec } from "../protocol/codec.ts";
import type { Operation } from "../store/ledger.ts";

export interface InferenceWire {
  model: string;
  stream?: boolean | null;
}

export interface Adapter<Wire extends InferenceWire, Reply> {
  operation: Operation;
  /** Prefix of the response's id, such as `chatcmpl-`. */
  idPrefix: string;
  codec: CallerCodec<Wire, Reply>;
  /** The request with what is stored in place of what refers to it; `bytes` is the size of that. */
  resolve?(wire: Wire, organizationId: string): Promise<{ wire: Wire; bytes: number }>;
  /** What has the whole answer before its caller has the end of it; null where it is not to be kept. It never throws. */
  saver?(wire: Wire, organizationId: string): ((answer: Reply) => Promise<void>) | null;
}

/** The differences between the inference operations: protocol, wording, and storage. */
import type { CallerCodec } from "../protocol/codec.ts";
import type { Organization } from "../store/directory.ts";
import type { Operation } from "../store/ledger.ts";

export interface InferenceWire {
  model: string;
  stream?: boolean | null;
}

/** Whose request it is, and whether anything of it may be kept. */
export type ContentOwner = Pick<Organization, "id" | "keepsContent">;

export interface Adapter<Wire extends InferenceWire, Reply> {
  operation: Operation;
  /** Prefix of the response's id, such as `chatcmpl-`. */
  idPrefix: string;
  codec: CallerCodec<Wire, Reply>;
  /** The request with what is stored in place of what refers to it; `bytes` is the size of that. */
  resolve?(wire: Wire, owner: ContentOwner): Promise<{ wire: Wire; bytes: number }>;
  /** Stores the whole answer before its caller has the end of it; null if it is not to be stored. It never throws. */
  saver?(wire: Wire, organizationId: string): ((answer: Reply) => Promise<void>) | null;
}

/**
 * Stored responses that can be continued (docs/design/protocols.md, Responses state): each with the content of its
 * request, for one organization, for some days, within a limit of bytes; the oldest make room. Input, output and the
 * rest of the response are JSON texts, which the store does not read.
 */
import type { Maker } from "../../../core/store/maker.ts";

/** The turn that a response adds to its conversation. */
export interface KeptTurn {
  /** `resp_` + UUIDv7 hex. */
  id: string;
  /** The response that it continues. */
  previousId: string | null;
  /** An array of items, each with its id. */
  input: string;
  /** An array of items. */
  output: string;
}

export interface KeptResponse extends KeptTurn {
  /** The response without its output. */
  response: string;
}

/**
 * Whose responses a caller reads, continues and deletes: a person the person's own, and a caller without a person all of the
 * organization.
 */
export interface Reader {
  organizationId: string;
  personId: string | null;
}

export interface ResponseStore {
  /**
   * Stores a response that was made by this key; sent twice, it counts once. The oldest of the organization make room within `bytes_max`; false
   * if this one alone is larger. It may be lost if the database's machine fails at the same moment.
   */
  keep(maker: Maker, kept: KeptResponse, bytes_max: number): Promise<boolean>;
  /**
   * The turns that lead to a response, the oldest first and itself last. `not_found` if it, or one that it continues,
   * is unknown, not one of the reader's, or expired; `too_long` if they are more than `bytes_max` together.
   */
  conversation(reader: Reader, id: string, bytes_max: number): Promise<KeptTurn[] | "not_found" | "too_long">;
  /**
   * Reads the responses that exist, in any order. Their inputs are "[]" unless they are requested. `too_long` as above.
   */
  turns(
    reader: Reader,
    ids: readonly string[],
    options: { inputs: boolean; bytes_max: number },
  ): Promise<KeptTurn[] | "too_long">;
  find(reader: Reader, id: string): Promise<KeptResponse | null>;
  /** Returns whether it existed. */
  remove(reader: Reader, id: string): Promise<boolean>;
  /** Deletes some that have expired. Returns whether there may be more. */
  forget(): Promise<boolean>;
}

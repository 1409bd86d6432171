/**
 * Stored responses that can be continued (docs/design/protocols.md, Responses state): each with the content of its
 * request, for one organization, for some days. They are limited in bytes, and the oldest are removed for new ones.
 * Input, output and the rest of the response are JSON texts, which the store does not read.
 */
import type { Maker } from "../../../core/store/maker.ts";

/** The turn that a response adds to its conversation, as it is stored. */
export interface KeptTurn {
  /** The id of the response: `resp_` + UUIDv7 hex. */
  id: string;
  /** The id of the response that this one continues; null: none. */
  previousId: string | null;
  /** A JSON array of items, each with its id. */
  input: string;
  /** A JSON array of items. */
  output: string;
}

export interface KeptResponse extends KeptTurn {
  /** The response object without its output. */
  response: string;
}

/**
 * Which responses a caller may read, continue and delete: a person only their own; a caller without a person all of the
 * organization.
 */
export interface Reader {
  organizationId: string;
  personId: string | null;
}

export interface ResponseStore {
  /**
   * Stores a response that was made with the key of `maker`; a response that is sent twice is stored once. The oldest
   * responses of the organization are removed to stay within `bytes_max`; false if this response alone is larger. A
   * stored response may be lost if the database's machine fails at the same moment.
   */
  keep(maker: Maker, kept: KeptResponse, bytes_max: number): Promise<boolean>;
  /**
   * The turns up to a response, the oldest first and the response last. `not_found` if the response, or one that it
   * continues, is unknown, not one of the reader's, or expired; `too_long` if all turns together exceed `bytes_max`.
   */
  conversation(reader: Reader, id: string, bytes_max: number): Promise<KeptTurn[] | "not_found" | "too_long">;
  /**
   * The responses with these ids that exist, in any order. Their inputs are "[]" unless they are requested. `too_long`:
   * as in `conversation`.
   */
  turns(
    reader: Reader,
    ids: readonly string[],
    options: { inputs: boolean; bytes_max: number },
  ): Promise<KeptTurn[] | "too_long">;
  find(reader: Reader, id: string): Promise<KeptResponse | null>;
  /** Deletes a response. Returns whether it existed. */
  remove(reader: Reader, id: string): Promise<boolean>;
  /** Deletes a number of expired responses. Returns whether there may be more. */
  forget(): Promise<boolean>;
}

/**
 * Responses that can be continued (docs/design/protocols.md, Responses state): each with what its request said, for one
 * organization alone, for some days, within a limit of bytes, of which the oldest make room. Input, output and the rest
 * of the response are JSON texts: the store looks into none of them.
 */

/** The turn that a response adds to its conversation. */
export interface KeptTurn {
  /** `resp_` + UUIDv7 hex. */
  id: string;
  /** The response that it went on from. */
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

export interface ResponseStore {
  /**
   * Keeps a response; sent twice, it counts once. The oldest of the organization make room within `bytes_max`; false where
   * this one alone is larger. It may be lost where the database's machine fails in the same moment.
   */
  keep(organizationId: string, kept: KeptResponse, bytes_max: number): Promise<boolean>;
  /**
   * The turns that lead to a response, oldest first, it last. `not_found` where it, or one that it went on from, is unknown,
   * another organization's, or kept no longer; `too_long` where they are more than `bytes_max` together.
   */
  conversation(organizationId: string, id: string, bytes_max: number): Promise<KeptTurn[] | "not_found" | "too_long">;
  /**
   * Reads those of the responses that exist, in any order. Their inputs are "[]" unless they are asked for. `too_long`
   * as above.
   */
  turns(
    organizationId: string,
    ids: readonly string[],
    options: { inputs: boolean; bytes_max: number },
  ): Promise<KeptTurn[] | "too_long">;
  find(organizationId: string, id: string): Promise<KeptResponse | null>;
  /** Answers whether it was there. */
  remove(organizationId: string, id: string): Promise<boolean>;
  /** Drops some of those that have had their days; answers whether there may be more. */
  forget(): Promise<boolean>;
}

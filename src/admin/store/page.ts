/** Types for pages of lists, and for requests that create something and may be sent again. */

/** The request for a page of a list: at most `limit` items, after the item with the id `after`. */
export interface Page {
  after?: string | undefined;
  limit: number;
}
/** Filters a list: only subjects that have used at least this percentage of the limit of one of their usage windows. */
export interface OverShare {
  overPercent?: number | undefined;
}
export interface PageOf<Item> {
  items: Item[];
  hasMore: boolean;
}

/** Two SHA-256 hashes that identify a request that creates something, so that a repeated request is recognised. */
export interface Repeat {
  keyHash: Uint8Array;
  requestHash: Uint8Array;
}
/**
 * The outcome of a repeated creation. `repeated`: the id of the object that the first request created. `reused`: the
 * idempotency key belongs to a different request.
 */
export type Repeated = { repeated: string } | "reused";
